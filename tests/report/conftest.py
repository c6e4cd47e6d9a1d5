"""The browser, for the tests of pages."""

from browser import browser  # noqa: F401
