"""The page of one job: what it has missed, its rate, its timeline."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from carillon.console.loopback import Loopback
from tests.browser.conftest import Visit
from tests.browser.test_lists import AT, LOOK_ANEW, fulfil


def _backfill(visit: Visit) -> dict[str, Any]:
    """The body of the backfill that the card of the missed ones asks for."""
    visit.page.get_by_role("button", name="Run them…").click()
    with visit.page.expect_request("**/backfill") as asked:
        visit.page.get_by_role("dialog").get_by_role("button", name="Run them").click()
    body = asked.value.post_data_json
    assert isinstance(body, dict)
    return body


def test_what_a_job_has_missed_is_looked_for_anew(visit: Visit, console: Loopback) -> None:
    """Whoever has had it run must not see it for as long as the page is open."""
    missed = [{"fire_at": AT, "status": None, "reason": None, "run_id": None}]
    visit.page.route(
        "**/missed?*", lambda route: route.fulfill(json={"items": missed, "complete": True})
    )
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    card = visit.page.get_by_role("region", name="Missed")
    expect(card).to_contain_text("1 occurrences")
    missed.clear()
    visit.page.evaluate(LOOK_ANEW)
    expect(card).to_have_count(0)


def test_of_a_young_job_nothing_of_before_it_was_made_is_run(
    visit: Visit, console: Loopback
) -> None:
    """Two occurrences were missed, and a backfill of the whole day ran all others, too."""
    missed = [{"fire_at": AT, "status": None, "reason": None, "run_id": None}] * 2
    made_at = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="milliseconds")

    job: dict[str, Any] = {}

    def young(route: Route) -> None:
        if not job:  # later looks may come as the page closes
            job.update(route.fetch().json(), created_at=made_at)
        route.fulfill(json=job)

    visit.page.route(
        "**/missed?*", lambda route: route.fulfill(json={"items": missed, "complete": True})
    )
    visit.page.route("**/backfill", lambda route: route.fulfill(status=202, json={}))
    visit.open(console)
    visit.page.route("**/api/jobs/*", young)
    visit.page.locator("table a", has_text="heartbeat").click()
    assert datetime.fromisoformat(_backfill(visit)["from"]) == datetime.fromisoformat(made_at)


def test_what_was_missed_is_run_though_the_clock_here_is_ahead(
    visit: Visit, console: Loopback
) -> None:
    """A backfill until now is refused by an API that says that this is to come."""
    older = "2026-11-23T05:59:00Z"
    missed = [{"fire_at": at, "status": None, "reason": None, "run_id": None} for at in (AT, older)]
    visit.page.route(
        "**/missed?*", lambda route: route.fulfill(json={"items": missed, "complete": True})
    )
    visit.page.route("**/backfill", lambda route: route.fulfill(status=202, json={}))
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    assert _backfill(visit)["to"] == AT


def test_a_dead_run_that_the_page_does_not_show_has_left_one(
    visit: Visit, console: Loopback
) -> None:
    missed = [{"fire_at": AT, "status": "dead", "reason": "exhausted", "run_id": "r"}]
    visit.page.route(
        "**/missed?*", lambda route: route.fulfill(json={"items": missed, "complete": True})
    )
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    visit.page.get_by_role("region", name="Missed").wait_for()
    visit.page.locator(".timeline").wait_for()
    expect(visit.page.get_by_text("left no run")).to_have_count(0)
    expect(visit.page.locator(".figures")).to_contain_text("%")


def _run(kind: str, status: str, redrive: int = 0, settled: str | None = None) -> dict[str, Any]:
    return {
        "run_id": f"{kind}-{redrive}", "job_id": "j", "kind": kind, "status": status, "attempt": 1,
        "fire_at": AT, "started_at": AT, "finished_at": AT, "lag_seconds": 0, "redrive": redrive,
        "settled": settled, "error": None, "reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "last", "rate"),
    [
        ([_run("callback", "succeeded"), _run("scheduled", "dead")], "dead", "0.0 %"),
        (
            [_run("scheduled", "dead", settled="redriven"), _run("scheduled", "succeeded", 1)],
            "succeeded",
            "100 %",
        ),
        ([_run("scheduled", "succeeded"), _run("watch", "missed")], "succeeded", "100 %"),
        ([_run("watch", "missed")], "none yet", "0.0 %"),
    ],
    ids=["callback", "redriven", "late", "missed"],
)
def test_the_rate_of_a_job_is_that_of_its_own_runs_each_once(
    visit: Visit, console: Loopback, runs: list[dict[str, Any]], last: str, rate: str
) -> None:
    none: dict[str, Any] = {"items": [], "complete": True}
    visit.page.route("**/missed?*", lambda route: route.fulfill(json=none))
    visit.page.route("**/api/jobs/*/runs?*", lambda route: fulfil(route, runs))
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    figures = visit.page.locator(".figures")
    expect(figures).to_contain_text(rate)
    expect(figures).to_contain_text(last)


def test_days_of_the_timeline_begin_at_midnight_on_both_sides_of_a_change_of_clocks(
    browser: Browser, console: Loopback
) -> None:
    with browser.new_context(timezone_id="Europe/Berlin") as context:
        visit = Visit.in_context(context)
        visit.page.clock.set_fixed_time(datetime(2027, 4, 1, 12, tzinfo=UTC))
        visit.open(console)
        visit.page.locator("table a", has_text="heartbeat").click()
        visit.page.keyboard.press("u")
        visit.page.get_by_role("button", name="7 days").click()
        days = visit.page.locator(".ticks span")
        shown = ["26 Mar", "27 Mar", "28 Mar", "29 Mar", "30 Mar", "31 Mar", "1 Apr", "2 Apr"]
        expect(days).to_have_text([*shown, "3 Apr"])
