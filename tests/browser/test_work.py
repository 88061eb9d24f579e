"""What one does when something has gone wrong, or would: a herd is spread, dead letters are run
again, runs are seen as they end. A world of its own: the others keep their few jobs."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from carillon.console.loopback import Loopback
from carillon.manifest.yaml_text import document_of
from tests.browser.conftest import Visit
from tests.browser.rehearsed import jobs, served
from tests.browser.test_pages import LOOKS

HERD = 700
SATURDAY = 5
CALENDAR: dict[str, Any] = {
    "description": "Public holidays",
    "weekdays": ["sat", "sun"],
    "dates": ["2026-06-23", "2026-06-24", "2026-11-18", "2026-12-31"],
    "ranges": [{"from": "2026-12-24", "to": "2026-12-26"}],
}
NOTIFICATION = {
    "on": ["run.dead", "run.missed", "run.recovered"],
    "to": {"type": "slack", "url": {"secret": "slack-ops"}},
}
WITHIN = timedelta(seconds=3)
"""From the end of a run until it stands on the live page."""


def ask(url: str, method: str, path: str, body: object = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = Request(url + path, content, {"Content-Type": "application/json"}, method=method)
    with urlopen(request) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    """The address of an API with a herd at 09:00, and a calendar."""
    with served() as url:
        ask(url, "PUT", "/calendars/latvia", CALENDAR)
        herd = [
            {
                "name": f"sync customer {number}",
                "schedule": "0 9 * * *",
                "target": {"type": "task", "name": "echo"},
                "calendar": {"name": "latvia", "rule": "skip"} if number < 3 else None,
            }
            for number in range(HERD)
        ]
        made = ask(url, "POST", "/jobs/bulk", {"items": [_without_nulls(each) for each in herd]})
        assert made["created"] == HERD
        ask(url, "PUT", "/notifications/ops", NOTIFICATION)
        limits = {"starts_per_minute": 600, "concurrent_runs": 40}
        ask(url, "PUT", "/owners/team/billing/quota", limits)
        yield url


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


@pytest.fixture(scope="module")
def console(busy: str) -> Iterator[Loopback]:
    with Loopback(busy, "a-token", "k" * 32) as loopback:
        yield loopback


def workday() -> str:
    """The next day on which the whole herd starts: the calendar is open."""
    days = (datetime.now(UTC).date() + timedelta(days=ahead) for ahead in range(1, 15))
    return next(day.isoformat() for day in days if not _is_closed(day))


def _is_closed(day: date) -> bool:
    ranges = ((each["from"], each["to"]) for each in CALENDAR["ranges"])
    within = any(first <= day.isoformat() <= last for first, last in ranges)
    return day.weekday() >= SATURDAY or day.isoformat() in CALENDAR["dates"] or within


PAGES = {
    "activity": ("/activity", "table tbody tr"),
    "forecast": (f"/forecast?day={workday()}&minute={workday()}T09:00Z", ".who-in li"),
    "dead-letters": ("/dead-letters", "table tbody tr"),
    "calendars": ("/calendars", "table tbody tr"),
    "calendar": ("/calendars/latvia?year=2026", ".plain-list li"),
    "operations": ("/operations", ".empty, progress"),
    "segments": ("/segments", "table tbody tr"),
    "quotas": ("/quotas?owner=team/billing", "input"),
    "notifications": ("/notifications", "table tbody tr"),
    "notification": ("/notifications/new", ".fields"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_these_pages_can_be_used_by_everybody(
    browser: Browser, console: Loopback, look: str
) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        visit = Visit.in_context(context)
        visit.open(console)
        for name, (path, wanted) in PAGES.items():
            visit.page.goto(f"{console.origin}/#{path}")
            visit.page.locator(wanted).first.wait_for()
            expect(visit.page.get_by_text("Loading …")).to_have_count(0)
            assert visit.findings() == [], name
            width = visit.page.evaluate("document.documentElement.scrollWidth")
            assert width <= visit.page.evaluate("innerWidth"), name
            if look == "light":
                visit.picture(name)
        assert visit.complaints == []


def test_a_herd_is_spread_and_the_map_changes(visit: Visit, console: Loopback) -> None:
    page = visit.page
    visit.open(console, f"/forecast?day={workday()}")
    peaks = page.get_by_role("region", name="Peaks")
    peaks.get_by_role("button", name="09:00").click()
    before = _map(page)

    who = page.get_by_role("region", name="Who is in this minute")
    who.get_by_role("button", name=f"Spread {HERD} jobs…").click()
    page.get_by_label("Window").select_option("30m")
    assert visit.findings() == []
    page.get_by_role("button", name="Spread", exact=True).click()
    expect(page.get_by_role("status").get_by_text("over 30m")).to_be_visible(timeout=120_000)

    expect(page.get_by_role("slider")).not_to_have_attribute("aria-valuetext", before[0])
    assert _map(page)[1] != before[1]
    starts = page.get_by_role("slider").get_attribute("aria-valuetext") or ""
    assert int(starts.split(": ")[1].split()[0]) < HERD / 5
    assert visit.findings() == []
    visit.picture("forecast-spread")


def _map(page: Page) -> tuple[str, list[str]]:
    """The words of the chosen minute; the shapes of the map."""
    words = page.get_by_role("slider").get_attribute("aria-valuetext") or ""
    return words, page.locator(".heat path").evaluate_all("all => all.map(e => e.outerHTML)")


def test_the_map_is_read_by_the_keyboard(visit: Visit, console: Loopback) -> None:
    visit.open(console)
    visit.page.keyboard.press("g")
    visit.page.keyboard.press("f")
    slider = visit.page.get_by_role("slider")
    slider.focus()
    at = int(slider.get_attribute("aria-valuenow") or 0)
    step = ("ArrowUp", -60) if at >= 60 else ("ArrowDown", 60)
    slider.press(step[0])
    expect(slider).to_have_attribute("aria-valuenow", str(at + step[1]))
    slider.press("Enter")
    expect(visit.page.get_by_role("region", name="Who is in this minute")).to_be_visible()


def test_dead_letters_are_redriven_with_their_progress(visit: Visit, console: Loopback) -> None:
    page = visit.page
    visit.open(console, "/dead-letters?error=http_503")
    page.locator("tbody tr").nth(3).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_text("Redriven: it starts in a moment")).to_be_visible()

    page.get_by_role("button", name="Redrive all matching…").click()
    page.get_by_label("At most, a minute").fill("1000")
    page.get_by_role("button", name="Redrive", exact=True).click()
    progress = page.get_by_role("region", name="Progress")
    expect(progress.get_by_role("progressbar")).to_be_visible()
    expect(progress.get_by_text("succeeded")).to_be_visible(timeout=90_000)
    expect(progress.get_by_role("progressbar")).to_have_attribute("value", "1")
    assert visit.findings() == []
    page.goto(f"{console.origin}/#/operations")
    expect(page.get_by_text("Redrive of dead letters")).to_be_visible()


def test_a_run_is_on_the_live_page_soon_after_its_end(
    visit: Visit, console: Loopback, busy: str
) -> None:
    (job,) = ask(busy, "GET", "/jobs?view=summary&q=reindex")["items"]
    visit.open(console, "/activity?kind=manual")
    visit.page.locator(".empty").wait_for()
    run = ask(busy, "POST", f"/jobs/{job['job_id']}/run")
    visit.page.get_by_role("link", name="reindex search").wait_for()
    shown_at = datetime.now(UTC)
    ended = ask(busy, "GET", f"/runs/{run['run_id']}")["finished_at"]
    assert shown_at - datetime.fromisoformat(ended) <= WITHIN


def test_an_operator_sets_what_a_team_may_have(visit: Visit, console: Loopback, busy: str) -> None:
    page = visit.page
    visit.open(console, "/quotas")
    mine = page.get_by_role("row", name="Jobs that are not deleted")
    expect(mine).to_contain_text(f"{HERD + len(list(jobs()))}")

    page.get_by_label("Owner").fill("billing")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Limits of team/billing alone").wait_for()
    assert page.url.endswith("#/quotas?owner=billing")
    theirs = page.get_by_role("row", name="Jobs that are not deleted")
    expect(theirs).to_contain_text("all owners")
    page.get_by_role("spinbutton", name="Jobs").fill("20000000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("less than or equal to")
    assert [each for each in visit.complaints if "422" not in each] == []
    visit.complaints.clear()
    page.get_by_role("spinbutton", name="Jobs").fill("25")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("within half a minute")).to_be_visible()
    expect(theirs).to_contain_text("this owner")
    expect(page.get_by_role("progressbar", name="Jobs: 0 of 25")).to_be_visible()
    assert visit.findings() == []
    stored = ask(busy, "GET", "/owners/team/billing/quota")["quotas"]
    assert [(each["limit"], each["own"]) for each in stored if each["name"] == "jobs"] == [
        (25, True)
    ]

    page.get_by_role("spinbutton", name="Jobs").fill("")
    page.get_by_role("button", name="Save").click()
    expect(theirs).to_contain_text("all owners")


def test_a_payload_is_kept_to_its_last_digit_and_letter(
    visit: Visit, console: Loopback, busy: str
) -> None:
    payload = {"account": 12345678901234567891, "words": "a\x7fb\x85c\u2028d\uffff"}
    page = visit.page
    visit.open(console, "/new")
    page.get_by_label("Name").fill("exact")
    page.get_by_label("URL").fill("https://billing.example.com/hooks/exact")
    page.get_by_label("Schedule").fill("0 0 1 1 *")
    page.get_by_label("Payload").fill(json.dumps(payload))
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Created exact").wait_for()
    (job,) = ask(busy, "GET", "/jobs?q=exact")["items"]
    assert job["payload"] == payload
    page.get_by_role("button", name="Definition").click()
    text = page.locator("pre").text_content()
    assert text is not None
    assert document_of(text)["jobs"]["exact"]["payload"] == payload


def test_what_is_copied_for_a_shell_acts_for_the_team(
    visit: Visit, console: Loopback, busy: str
) -> None:
    (job,) = ask(busy, "GET", "/jobs?view=summary&q=reindex")["items"]
    page = visit.page

    def without_team(route: Route) -> None:
        headers = route.request.headers
        headers.pop("carillon-team", None)
        route.continue_(headers=headers)

    page.route("**/*", without_team)  # nobody is in that team here
    visit.open(console, f"/jobs/{job['job_id']}?tab=definition")
    page.evaluate("sessionStorage.setItem('carillon-team', \"it's\")")
    page.get_by_role("button", name="curl").click()
    expect(page.locator("pre")).to_contain_text("-H 'Carillon-Team: it'\\''s' \\\n")
    page.get_by_role("button", name="Command line").click()
    expect(page.locator("pre")).to_contain_text("carillon --team 'it'\\''s' apply jobs.yaml")


def test_a_name_is_no_earlier_command_of_a_shell(
    visit: Visit, console: Loopback, busy: str
) -> None:
    (job,) = ask(busy, "GET", "/jobs?q=reindex")["items"]
    page = visit.page
    page.route(
        f"**/api/jobs/{job['job_id']}",
        lambda route: route.fulfill(json={**job, "name": "wow!ls"}),
    )
    visit.open(console, f"/jobs/{job['job_id']}?tab=definition")
    page.get_by_role("button", name="curl").click()
    expect(page.locator("pre")).to_contain_text('/jobs/named/wow%21ls"')


def test_a_page_without_runs_is_not_the_end_of_them(
    visit: Visit, console: Loopback, busy: str
) -> None:
    """As in an outage that has lasted for long."""
    (job,) = ask(busy, "GET", "/jobs?view=summary&q=reindex")["items"]
    page = visit.page

    def empty_first(route: Route) -> None:
        if "cursor=" in route.request.url:
            route.fulfill(json={"items": [], "next_cursor": None})
        else:
            route.fulfill(json={"items": [], "next_cursor": "more"})

    page.route(f"**/jobs/{job['job_id']}/runs?**", empty_first)
    visit.open(console, f"/jobs/{job['job_id']}")
    more = page.get_by_role("button", name="More")
    more.wait_for()
    assert page.get_by_text("No runs yet").count() == 0
    more.click()
    page.get_by_text("No runs yet").wait_for()


def test_lines_of_a_log_are_shown_though_they_come_late_behind_an_empty_page(
    visit: Visit, console: Loopback, busy: str
) -> None:
    line = {"at": "2026-11-28T00:00:00Z", "level": "INFO", "message": "at last", "attempt": 1}
    answers = iter([([], None), ([], "more"), ([line], None)])
    asked: list[str] = []

    def answer(route: Route) -> None:
        items, cursor = next(answers, ([line], None))
        asked.append(route.request.url.partition("?")[2])
        route.fulfill(json={"items": items, "next_cursor": cursor})

    (job,) = ask(busy, "GET", "/jobs?view=summary&q=reindex")["items"]
    run = ask(busy, "POST", f"/jobs/{job['job_id']}/run")
    visit.page.route("**/logs*", answer)
    visit.open(console, f"/jobs/{job['job_id']}/runs/{run['run_id']}")
    expect(visit.page.get_by_text("at last")).to_be_visible(timeout=20_000)
    assert asked[:3] == ["", "", "cursor=more"]


def test_a_tag_without_a_value_is_not_left_out(visit: Visit, console: Loopback, busy: str) -> None:
    """A notification without tags tells of all jobs."""
    page = visit.page
    visit.open(console, "/notifications/new")
    page.get_by_label("Name").fill("tagged")
    page.get_by_label("Secret with the webhook's URL").fill("slack-ops")
    page.get_by_label("Tags").fill("urgent, team=a:b")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="tagged").wait_for()
    assert ask(busy, "GET", "/notifications/tagged")["tags"] == {"urgent": "", "team": "a:b"}
    expect(page.get_by_label("Tags")).to_have_value("urgent=, team=a:b")


def test_a_payload_that_is_no_json_is_said_to_be_none(visit: Visit, console: Loopback) -> None:
    """It is neither sent as something else in silence, nor lost with the question."""
    page = visit.page
    visit.open(console, "/new")
    page.get_by_label("Payload").fill('{"a": 1,}')
    expect(page.get_by_text("the target gets this as text, not as JSON")).to_be_visible()
    page.get_by_label("Payload").fill('{"a": 1}')
    expect(page.get_by_text("what the target gets: JSON, or text")).to_be_visible()

    page.goto(f"{console.origin}/#/jobs?q=reindex")
    page.get_by_role("button", name="Leave").click()
    page.locator("table a", has_text="reindex search").click()
    page.get_by_role("button", name="Run now…").click()
    payload = page.get_by_role("dialog").get_by_label("Payload")
    payload.fill('{"a": 1,}')
    page.get_by_role("button", name="Run now", exact=True).click()
    expect(payload).to_have_value('{"a": 1,}')
    payload.fill('{"a": 1}')
    page.get_by_role("button", name="Run now", exact=True).click()
    expect(page.get_by_text("Sent: it starts in a moment")).to_be_visible()
