"""For the tests of the reproduction's page: the browser."""

from browser import browser  # noqa: F401  a fixture
