"""Every page, light and dark, at a desk and on a phone, after a day of runs."""

from time import monotonic

import pytest
from playwright.sync_api import Browser, Page, expect

from carillon.console.loopback import Loopback
from tests.browser.conftest import DESK, PHONE, Visit

PAGES = {
    "jobs": ("/jobs", "table tbody tr"),
    "new": ("/new", "form input"),
}
"""By the name of its picture: the page's address, and what stands on it once it is whole."""
LOOKS = {
    "light": {"viewport": DESK},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "device_scale_factor": 2},
}


def _settled(page: Page, wanted: str) -> None:
    page.locator(wanted).first.wait_for()
    expect(page.get_by_text("Loading …")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
def test_pages_stand_and_can_be_used_by_everybody(
    browser: Browser, console: Loopback, look: str
) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        visit = Visit.in_context(context)
        visit.open(console)
        for name, (path, wanted) in {**PAGES, **_pages_of_a_job(visit)}.items():
            visit.page.goto(f"{console.origin}/#{path}")
            _settled(visit.page, wanted)
            if name == "new":
                _write_a_job(visit.page)
            assert visit.findings() == [], name
            assert _width(visit.page) <= visit.page.viewport_size["width"], name  # type: ignore[index]
            if look == "light" or name == "jobs":
                visit.picture(name if look == "light" else f"{name}-{look}")
        assert visit.complaints == []


def _pages_of_a_job(visit: Visit) -> dict[str, tuple[str, str]]:
    """Those of the job that fails, and of one of its runs."""
    page = visit.page
    page.locator("table a", has_text="sync CRM").click()
    page.locator(".timeline").wait_for()
    job = page.evaluate("location.hash.slice(1)").split("?")[0]
    page.locator("table[aria-label=Runs] a").first.click()
    page.locator("text=Attempts").first.wait_for()
    run = page.evaluate("location.hash.slice(1)").split("?")[0]
    return {
        "job": (job, ".timeline"),
        "definition": (f"{job}?tab=definition", "pre"),
        "run": (run, ".attempts"),
        "edit": (f"{job}/edit", "form input"),
    }


def _write_a_job(page: Page) -> None:
    page.get_by_label("Name").fill("nightly statement")
    page.get_by_label("URL").fill("https://billing.example.com/hooks/statement")
    page.get_by_label("Schedule").fill("30 2 * * *")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.locator("text=does not exist").first.wait_for()


def _width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_the_first_list_is_quick(visit: Visit, console: Loopback) -> None:
    """The time is told, not judged: machines differ."""
    began = monotonic()
    visit.page.goto(console.link)
    visit.page.locator("table tbody tr").first.wait_for()
    print(f"the first list stood after {monotonic() - began:.2f} s")  # noqa: T201
    visit.page.keyboard.press("?")
    visit.page.locator("dialog kbd").first.wait_for()
    assert visit.findings() == []


def test_the_search_and_filters_are_part_of_the_address(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("nightly")
    visit.page.locator("tbody tr:only-child").wait_for()
    assert visit.page.url.endswith("#/jobs?q=nightly")
    visit.page.reload()
    visit.page.locator("tbody tr:only-child").wait_for()
    assert visit.page.locator("[data-search]").input_value() == "nightly"


def test_the_face_of_the_clock_and_the_theme_stay(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    for key in "tu":
        visit.page.keyboard.press(key)
    visit.page.reload()
    visit.page.locator("tbody tr").first.wait_for()
    assert visit.page.locator("html").get_attribute("data-theme") == "dark"
    kept = visit.page.evaluate("Object.keys(localStorage).sort().join()")
    assert kept == "carillon-clock,carillon-theme"


def test_who_may_only_read_has_no_buttons_that_write(visit: Visit, rehearsed: str) -> None:
    with Loopback(rehearsed, "a-token", "key", read_only=True) as loopback:
        visit.open(loopback)
        visit.page.locator("tbody tr").first.wait_for()
        assert visit.page.get_by_role("link", name="New job").count() == 0
        assert visit.page.get_by_text("read only").is_visible()
