"""The browser, once for all of these tests. It waits while functions start cold beside others."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit, browser, visit

__all__ = ["browser", "visit"]

PATIENCE_MS = 90_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(autouse=True)
def patient(visit: Visit) -> None:
    visit.page.set_default_timeout(PATIENCE_MS)
