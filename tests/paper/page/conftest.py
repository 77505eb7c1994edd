"""The browser, for tests of pages."""

from browser import browser, visit  # noqa: F401
