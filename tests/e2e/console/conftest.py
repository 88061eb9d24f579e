"""The browser, once for all of these tests."""

from tests.browser.conftest import browser, visit

__all__ = ["browser", "visit"]
