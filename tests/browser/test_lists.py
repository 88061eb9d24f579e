"""Lists and questions where answers are slow, come in pages, or have something behind nothing."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Route, expect

from carillon.console.loopback import Loopback
from tests.browser.conftest import Visit

AT = "2026-11-23T06:00:00Z"
LOOK_ANEW = "document.dispatchEvent(new Event('visibilitychange'))"
"""Pages that are live ask at once."""


def _job(name: str) -> dict[str, Any]:
    return {"job_id": name, "name": name, "state": "active", "tags": {}, "sentence": "daily"}


def _letter(name: str) -> dict[str, Any]:
    return {
        "run_id": name, "job_id": "j", "kind": "scheduled", "status": "dead", "fire_at": AT,
        "attempt": 1, "error": {"kind": name, "message": ""}, "reason": "exhausted",
    }  # fmt: skip


def _ended(name: str) -> dict[str, Any]:
    return {
        "run_id": name, "job_id": "j", "job_name": name, "kind": "scheduled", "status": "dead",
        "attempt": 1, "at": AT, "fire_at": AT, "lag_seconds": 0, "duration_seconds": 1,
        "reason": None, "error_kind": None,
    }  # fmt: skip


LISTS = {
    "/jobs": ("**/api/jobs?*", _job, "State", "paused"),
    "/dead-letters": ("**/api/dead-letters?*", _letter, "Reason", "refused"),
    "/activity": ("**/api/runs?*", _ended, "Status", "dead"),
}


@pytest.fixture(autouse=True)
def a_job(visit: Visit) -> None:
    """The one whose letters are shown."""
    visit.page.route("**/api/jobs/j", lambda route: route.fulfill(json=_job("j")))


def _query(route: Route) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(route.request.url).query))


def fulfil(route: Route, items: list[dict[str, Any]], cursor: str | None = None) -> None:
    more = {"as_of": AT, "successes": "all"}
    route.fulfill(json={"items": items, "next_cursor": cursor, **more})


@pytest.mark.parametrize("path", LISTS)
def test_what_lies_behind_an_empty_page_is_not_nothing(
    visit: Visit, console: Loopback, path: str
) -> None:
    """A filter looks through so many rows at once."""
    pattern, made, *_ = LISTS[path]

    def answer(route: Route) -> None:
        query = _query(route)
        if "after" in query:
            return fulfil(route, [])
        return fulfil(route, [made("found")]) if "cursor" in query else fulfil(route, [], "more")

    visit.page.route(pattern, answer)
    visit.open(console, path)
    visit.page.get_by_role("button", name="Show more").click()
    expect(visit.page.get_by_role("table").get_by_text("found").first).to_be_visible()


@pytest.mark.parametrize("path", LISTS)
def test_a_page_that_comes_late_is_not_shown_under_another_filter(
    visit: Visit, console: Loopback, path: str
) -> None:
    pattern, made, label, value = LISTS[path]
    late: list[Route] = []

    def answer(route: Route) -> None:
        query = _query(route)
        if "cursor" in query:
            late.append(route)
        elif "after" in query:
            fulfil(route, [])
        elif value in query.values():
            fulfil(route, [made("chosen")])
        else:
            fulfil(route, [made("first")], "more")

    page = visit.page
    page.route(pattern, answer)
    visit.open(console, path)
    with page.expect_request(lambda asked: "cursor=" in asked.url):
        page.get_by_role("button", name="Show more").click()
    own = page.locator(".filters label", has=page.get_by_text(label, exact=True))
    own.locator("select").select_option(value)
    rows = page.locator("main .card > table tbody tr")
    expect(rows).to_contain_text(["chosen"])
    fulfil(late[0], [made("excluded")])
    page.evaluate(LOOK_ANEW)
    page.wait_for_timeout(300)
    expect(rows).to_contain_text(["chosen"])


@pytest.mark.parametrize("path", ["/jobs", "/dead-letters"])
def test_what_comes_and_goes_in_a_list_leaves_no_hole_and_no_double(
    visit: Visit, console: Loopback, path: str
) -> None:
    pattern, made, *_ = LISTS[path]
    names = [f"{number:03}" for number in range(10, 120)]

    def answer(route: Route) -> None:
        begin = int(_query(route).get("cursor", 0))
        cursor = str(begin + 50) if begin + 50 < len(names) else None
        fulfil(route, [made(name) for name in names[begin : begin + 50]], cursor)

    page = visit.page
    page.route(pattern, answer)
    visit.open(console, path)
    rows = page.locator("main .card > table tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(100)
    for changed in (["000", *names], ["000", *names[2:]]):
        names[:] = changed
        page.evaluate(LOOK_ANEW)
        expect(rows.first).to_contain_text(names[0])
        expect(rows.nth(1)).to_contain_text(names[1])
        shown = rows.locator("input").count()
        expect(rows).to_contain_text(names[:shown])
    assert shown == 99


def test_a_job_is_chosen_by_the_whole_text(visit: Visit, console: Loopback) -> None:
    """Not by what was found for its beginning, and however late its own answer comes."""
    late: list[Route] = []

    def answer(route: Route) -> None:
        if _query(route)["q"] == "nightly":
            return fulfil(route, [_job("nightly backup")])
        return late.append(route)

    page = visit.page
    visit.open(console, "/dead-letters")
    page.route("**/api/jobs?*", answer)
    field = page.get_by_label("Job")
    field.fill("nightly")
    page.locator("datalist option").wait_for(state="attached")
    with page.expect_request(lambda asked: asked.url.endswith("q=nightly+report&limit=10")):
        field.fill("nightly report")
    field.blur()
    page.wait_for_timeout(300)
    assert "job_id" not in page.url
    for route in late:
        fulfil(route, [_job("nightly report")])
    expect(field).to_have_value("nightly report")
    page.wait_for_url("**job_id=nightly+report")


@pytest.mark.parametrize("label", ["Job", "Tag"])
def test_a_filter_stays_while_it_is_written(visit: Visit, console: Loopback, label: str) -> None:
    """Though the page is live."""
    page = visit.page
    visit.open(console, "/activity")
    page.locator("tbody tr").first.wait_for()
    field = page.get_by_label(label)
    field.press_sequentially("hear", delay=100)
    for _ in range(2):
        with page.expect_response("**/api/runs?*"):
            page.evaluate(LOOK_ANEW)
        page.wait_for_timeout(100)
    expect(field).to_have_value("hear")


def _operation(name: str) -> dict[str, Any]:
    return {
        "operation_id": name, "kind": "backfill", "state": "succeeded", "created_at": AT, "done": 1,
        "passed_over": 0, "per_minute": 60, "left": [], "job_id": "j", "note": name, "tags": {},
    }  # fmt: skip


def _calendar(name: str) -> dict[str, Any]:
    return {"name": name, "weekdays": [], "dates": [], "ranges": [], "updated_at": AT}


def _change(name: str) -> dict[str, Any]:
    by = {"kind": "user", "name": name, "id": name}
    return {"change_id": name, "at": AT, "by": by, "via": "api", "action": "change", "changed": []}


def test_how_far_an_operation_is_takes_one_count(visit: Visit, console: Loopback) -> None:
    work = {**_operation("o"), "kind": "redrive", "state": "running", "job_id": None}
    counts: list[str] = []

    def count(route: Route) -> None:
        counts.append(route.request.url)
        cursor = None if "cursor" in _query(route) else "more"
        fulfil(route, [_letter(f"{cursor}{number}") for number in range(100)], cursor)

    page = visit.page
    page.route("**/api/operations?*", lambda route: fulfil(route, [work]))
    page.route("**/api/operations/o", lambda route: route.fulfill(json=work))
    page.route("**/api/dead-letters?*", count)
    visit.open(console, "/operations")
    expect(page.get_by_text("1 of 201 redriven")).to_be_visible()
    for done in (50, 101):
        work["done"] = done
        page.evaluate(LOOK_ANEW)
        expect(page.get_by_text(f"{done} of 201 redriven")).to_be_visible()
    assert len(counts) == 2


@pytest.mark.parametrize(
    ("pattern", "made", "path"),
    [
        ("**/api/operations?*", _operation, "/operations"),
        ("**/api/calendars?*", _calendar, "/calendars"),
        ("**/changes?*", _change, None),
    ],
)
def test_what_does_not_fit_a_page_is_shown_on_demand(
    visit: Visit, console: Loopback, pattern: str, made: Any, path: str | None
) -> None:
    def answer(route: Route) -> None:
        is_second = "cursor" in _query(route)
        fulfil(route, [made("later" if is_second else "first")], None if is_second else "more")

    page = visit.page
    page.route(pattern, answer)
    visit.open(console, path or "/jobs")
    if path is None:
        page.locator("table a", has_text="heartbeat").click()
        page.get_by_role("button", name="Changes").click()
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("main").get_by_text("later")).to_be_visible()
    expect(page.locator("main").get_by_text("first")).to_be_visible()


def test_jobs_that_were_not_looked_at_may_follow_a_calendar(
    visit: Visit, console: Loopback
) -> None:
    page = visit.page
    page.route("**/api/calendars/latvia", lambda route: route.fulfill(json=_calendar("latvia")))
    page.route("**/api/jobs?*", lambda route: fulfil(route, [_job("other")], "more"))
    visit.open(console, "/calendars/latvia")
    expect(page.get_by_text("Only the first 1,000 jobs were looked at")).to_be_visible()
    expect(page.get_by_text("None yet")).to_have_count(0)


def test_earlier_runs_stay_however_many_somebody_wants_to_see(
    visit: Visit, console: Loopback
) -> None:
    runs = [
        {"run_id": f"r{at}", "job_id": "j", "fire_at": AT, "kind": "scheduled",
         "status": "succeeded", "attempt": 1}
        for at in range(1000)
    ]  # fmt: skip

    def answer(route: Route) -> None:
        query = _query(route)
        if "from" in query:
            return route.continue_()
        begin, limit = int(query.get("cursor", 0)), int(query["limit"])
        return fulfil(route, runs[begin : begin + limit], str(begin + limit))

    page = visit.page
    visit.open(console)
    page.route("**/runs?*", answer)
    page.locator("table a", has_text="heartbeat").click()
    rows = page.locator("table[aria-label=Runs] tbody tr")
    for count in range(20, 400, 50):
        expect(rows).to_have_count(count)
        page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(420)
    page.evaluate(LOOK_ANEW)
    page.wait_for_timeout(300)
    expect(rows).to_have_count(420)


def test_a_feed_that_is_paused_stays_however_much_somebody_wants_to_see(
    visit: Visit, console: Loopback
) -> None:
    def answer(route: Route) -> None:
        begin = int(_query(route).get("cursor", 0))
        fulfil(route, [_ended(f"{at:04}") for at in range(begin, begin + 400)], str(begin + 400))

    page = visit.page
    page.route("**/api/runs?*", answer)
    visit.open(console, "/activity")
    rows = page.locator("table[aria-label=Activity] tbody tr")
    expect(rows).to_have_count(400)
    page.get_by_role("button", name="Pause", exact=True).click()
    for count in (800, 1200):
        page.get_by_role("button", name="Show more").click()
        expect(rows).to_have_count(count)
    page.evaluate(LOOK_ANEW)
    page.wait_for_timeout(300)
    expect(rows).to_have_count(1200)


def test_a_question_that_comes_late_does_not_take_the_place_of_another(
    visit: Visit, console: Loopback
) -> None:
    """Yes to one dead letter must not be yes to all."""
    late: list[Route] = []

    def answer(route: Route) -> None:
        if _query(route)["limit"] == "100":
            late.append(route)
        else:
            fulfil(route, [_letter("a"), _letter("b")])

    page = visit.page
    page.route("**/api/dead-letters?*", answer)
    visit.open(console, "/dead-letters")
    with page.expect_request(lambda asked: "limit=100" in asked.url):
        page.get_by_role("button", name="Discard all…").click()
    page.keyboard.press("j")
    page.keyboard.press("d")
    title = page.get_by_role("dialog").get_by_role("heading")
    expect(title).to_have_text("Discard this dead letter?")
    fulfil(late[0], [_letter("a"), _letter("b")])
    page.wait_for_timeout(300)
    expect(title).to_have_text("Discard this dead letter?")


@pytest.mark.parametrize("way", ["Cancel", "Close", "Escape", "Pause"])
def test_a_question_gives_the_focus_back(visit: Visit, console: Loopback, way: str) -> None:
    page = visit.page
    page.route("**/pause", lambda route: route.fulfill(json=_job("held")))
    visit.open(console)
    page.locator("tbody tr").nth(2).wait_for()
    for key in "jjp":
        page.keyboard.press(key)
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    if way == "Escape":
        page.keyboard.press(way)
    else:
        dialog.get_by_role("button", name=way, exact=True).press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("tbody tr").nth(1).locator(".main a")).to_be_focused()


def test_all_that_cannot_be_paused_is_told(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    refusal = {"title": "Overloaded", "status": 503}
    visit.page.route("**/jobs?*limit=100*", lambda route: route.fulfill(status=503, json=refusal))
    visit.page.get_by_role("button", name="Pause all matching…").click()
    expect(visit.page.get_by_role("status").get_by_text("Overloaded")).to_be_visible()
    assert [each for each in visit.complaints if "503" not in each] == []
    visit.complaints.clear()


def test_a_run_of_one_job_has_one_line_in_its_activity(visit: Visit, console: Loopback) -> None:
    """As it is now; across jobs each end of an attempt has a line."""
    found = [_ended("j") | {"status": "scheduled", "attempt": 0}]
    visit.page.route("**/api/runs?*", lambda route: fulfil(route, found))
    visit.open(console, "/activity?job=j")
    expect(visit.page.locator("tbody tr")).to_contain_text("waiting")
    for status, attempt, told in (("running", 1, "running"), ("retrying", 1, "retrying")):
        found[0] = _ended("j") | {"status": status, "attempt": attempt}
        visit.page.evaluate(LOOK_ANEW)
        expect(visit.page.locator("tbody tr")).to_have_count(1)
        expect(visit.page.locator("tbody tr")).to_contain_text(told)


def test_a_far_day_has_the_year_of_the_clock_that_is_shown(
    browser: Browser, console: Loopback
) -> None:
    """New Year at midnight, far from UTC."""
    job = {**_job("yearly"), "next_fire_at": "2027-12-31T23:00:00Z"}
    with browser.new_context(timezone_id="Europe/Berlin") as context:
        visit = Visit.in_context(context)
        visit.page.clock.set_fixed_time(datetime(2026, 11, 23, tzinfo=UTC))
        visit.page.route("**/api/jobs?*", lambda route: fulfil(route, [job]))
        visit.open(console)
        expect(visit.page.locator("tbody tr")).to_contain_text("31 Dec 2027")
        visit.page.keyboard.press("u")
        expect(visit.page.locator("tbody tr")).to_contain_text("1 Jan 2028")


@pytest.mark.parametrize("path", ["/jobs", "/activity"])
def test_a_tag_is_found_by_a_value_with_any_letters(
    visit: Visit, console: Loopback, path: str
) -> None:
    pattern, made, *_ = LISTS[path]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(_query(route).get("tag", ""))
        fulfil(route, [made("found")])

    visit.page.route(pattern, answer)
    visit.open(console, f"{path}?tag=to%3Da%3Db")
    visit.page.locator("main .card > table").wait_for()
    assert asked[0] == "to:a=b"
