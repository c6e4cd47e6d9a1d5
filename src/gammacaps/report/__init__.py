"""A run as one page that people can read: `render` turns a `Report`, which is plain data, into HTML."""

from gammacaps.report.content import Report
from gammacaps.report.page import render

__all__ = ["Report", "render"]
