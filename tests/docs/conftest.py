"""The browser, for tests of the site."""

from browser import browser  # noqa: F401  a fixture
