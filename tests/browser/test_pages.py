"""Every page, light and dark, at a desk and on a phone, after a day of runs."""

from datetime import UTC, datetime, timedelta
from time import monotonic
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from carillon.console.loopback import Loopback
from tests.browser.conftest import DESK, PHONE, Visit

PAGES = {
    "jobs": ("/jobs", "table tbody tr"),
    "new": ("/new", "form input"),
}
"""By the name of its picture: the page's address, and what stands on it once it is whole."""
SEPTEMBER = 9
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
        for name, (path, wanted) in {**PAGES, **pages_of_a_job(visit)}.items():
            visit.page.goto(f"{console.origin}/#{path}")
            _settled(visit.page, wanted)
            if name == "new":
                _write_a_job(visit.page)
            assert visit.findings() == [], name
            assert _width(visit.page) <= visit.page.viewport_size["width"], name  # type: ignore[index]
            if look == "light" or name == "jobs":
                visit.picture(name if look == "light" else f"{name}-{look}")
            if name == "new":
                visit.page.get_by_label("Name").press("Escape")
                visit.page.keyboard.press("g")
                visit.page.keyboard.press("j")
                visit.page.get_by_role("button", name="Leave").wait_for()
                assert visit.findings() == []
                visit.page.get_by_role("button", name="Leave").click()
                visit.page.locator("table tbody tr").first.wait_for()
        assert visit.complaints == []


def pages_of_a_job(visit: Visit) -> dict[str, tuple[str, str]]:
    """Those of the job that fails, and of one of its runs."""
    page = visit.page
    page.locator("table a", has_text="sync CRM").click()
    page.locator(".timeline").wait_for()
    job = page.evaluate("location.hash.slice(1)").split("?")[0]
    page.locator("table[aria-label=Runs] a").first.click()
    page.locator("text=Attempts").first.wait_for()
    page.get_by_text("No log is kept of a run whose target is webhook").wait_for()
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


def test_an_address_that_is_no_text_is_no_page(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    visit.page.goto(f"{console.origin}/#/jobs/%/edit/%")
    visit.page.get_by_text("No such page").wait_for()


def test_a_filter_leaves_nothing_of_what_it_excludes(visit: Visit, console: Loopback) -> None:
    visit.open(console, "/activity")
    statuses = visit.page.locator("table[aria-label=Activity] .status")
    statuses.get_by_text("succeeded").first.wait_for()
    visit.page.get_by_label("Status").select_option("dead")
    expect(statuses.get_by_text("succeeded")).to_have_count(0)
    expect(statuses.get_by_text("dead").first).to_be_visible()


def test_runs_that_come_leave_no_hole_before_the_earlier_ones(
    visit: Visit, console: Loopback
) -> None:
    """A run a second for an hour, of which ten more are there each time that one looks."""
    begun = datetime(2026, 11, 23, tzinfo=UTC)
    runs = [
        {"run_id": f"r{at}", "job_id": "j", "fire_at": (begun + timedelta(seconds=at)).isoformat(),
         "kind": "scheduled", "status": "succeeded", "attempt": 1}
        for at in range(3600)
    ]  # fmt: skip
    newest = 100

    def answer(route: Route) -> None:
        nonlocal newest
        query = dict(parse_qsl(urlsplit(route.request.url).query))
        if "from" in query:
            return route.continue_()
        newest += 0 if "cursor" in query else 10
        until = int(query.get("cursor", newest))
        page = runs[until - int(query["limit"]) : until][::-1]
        cursor = str(until - int(query["limit"]))
        return route.fulfill(json={"items": page, "next_cursor": cursor})

    visit.open(console)
    visit.page.route("**/runs?*", answer)
    visit.page.locator("table a", has_text="heartbeat").click()
    rows = visit.page.locator("table[aria-label=Runs] tbody tr")
    expect(rows).to_have_count(20)
    visit.page.get_by_role("button", name="Show more").click()
    visit.page.locator("table[aria-label=Runs] a").nth(75).wait_for()
    expect(rows).not_to_have_count(70)
    shown = rows.locator("time").evaluate_all("all => all.map((each) => each.dateTime)")
    assert shown == [runs[newest - 1 - at]["fire_at"] for at in range(len(shown))]


def test_days_of_the_forecast_follow_each_other_far_from_utc(
    browser: Browser, console: Loopback
) -> None:
    """Where noon in UTC is midnight, the day of an instant is easily taken for the next one."""
    zone = "Pacific/Fiji"
    with browser.new_context(viewport=DESK, timezone_id=zone) as context:
        visit = Visit.in_context(context)
        visit.open(console, "/forecast")
        visit.page.keyboard.press("u")
        today = datetime.now(ZoneInfo(zone)).date()
        for key, days in (("]", 1), ("]", 2), ("[", 1), ("[", 0), ("[", -1)):
            visit.page.keyboard.press(key)
            day = today + timedelta(days=days)
            month = "Sept" if day.month == SEPTEMBER else f"{day:%b}"  # as en-GB has it
            told = f"{day:%a} {day.day} {month} {day.year}, {zone}"
            expect(visit.page.get_by_text(told)).to_be_visible()


def test_a_job_whose_occurrences_left_no_run_has_no_rate(visit: Visit, console: Loopback) -> None:
    """Hours without executors are never shown as a success."""
    gone = (datetime.now(UTC) - timedelta(hours=2)).replace(microsecond=0)
    missed = {"items": [{"fire_at": gone.isoformat()}], "complete": True}
    visit.page.route("**/missed?*", lambda route: route.fulfill(json=missed))
    visit.open(console)
    visit.page.locator("table a", has_text="nightly backup").click()
    visit.page.get_by_text("1 left no run").wait_for()
    expect(visit.page.get_by_text("100 %")).to_have_count(0)


def test_a_job_s_changes_name_who_made_them(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    visit.page.locator("table a", has_text="sync CRM").click()
    visit.page.locator(".timeline").wait_for()
    visit.page.get_by_role("button", name="Pause…").click()
    visit.page.locator("dialog").get_by_role("button", name="Pause").click()
    visit.page.get_by_role("button", name="Resume").wait_for()
    visit.page.get_by_role("button", name="Changes").click()

    newest = visit.page.locator("table[aria-label=Changes] tbody tr").first
    expect(newest).to_contain_text("pause")
    expect(newest).to_contain_text('state: "active" → "paused"')
    visit.page.get_by_role("button", name="Resume").click()
    expect(newest).to_contain_text("resume")
    assert visit.findings() == []


def test_the_log_of_a_task_is_shown(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    visit.page.locator("table a", has_text="reindex search").click()
    visit.page.locator("table[aria-label=Runs] a").first.click()
    visit.page.get_by_role("region", name="Log").get_by_text("is slow to answer").wait_for()
    assert visit.findings() == []


def test_a_backfill_of_more_than_the_page_has_read_says_so(visit: Visit, console: Loopback) -> None:
    missed = {"fire_at": "2026-11-27T00:00:00Z", "status": None, "reason": None, "run_id": None}
    answer = {"items": [missed] * 100, "complete": False}
    visit.page.route("**/missed?*", lambda route: route.fulfill(json=answer))
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    visit.page.get_by_role("button", name="Run them…").click()
    expect(visit.page.get_by_text("Run at least 100 missed occurrences?")).to_be_visible()
