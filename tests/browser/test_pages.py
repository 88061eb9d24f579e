"""Every page, light and dark, at a desk and on a phone, after a day of runs."""

import json
import re
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from playwright.sync_api import Request as PageRequest

from carillon.console import Site
from carillon.console.loopback import Loopback
from tests.browser.conftest import DESK, PHONE, Visit

PAGES = {
    "jobs": ("/jobs", "table tbody tr"),
    "new": ("/new", "form input"),
}
"""By the name of its picture: the page's address, and what stands on it once it is whole."""
SEPTEMBER = 9
VERBS = ("Redrive", "Discard")
READABLE = (
    "/jobs", "/jobs?q=no-such", "/new", "/activity", "/forecast", "/dead-letters", "/calendars",
    "/operations", "/notifications", "/notifications/new", "/quotas", "/segments",
)  # fmt: skip
WRITING = re.compile(
    "^(New |Make |Pause all|Pause…|Resume|Run |Edit|Delete|Save|Create|Cancel|"
    "Redrive|Discard|Spread|Send|Tag$|Take in)"
)
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
            if name == "new":
                visit.page.get_by_label("Name").press("Escape")
                visit.page.keyboard.press("g")
                visit.page.keyboard.press("j")
                visit.page.get_by_role("button", name="Leave").wait_for()
                assert visit.findings() == []
                visit.page.get_by_role("button", name="Leave").click()
                visit.page.locator("table tbody tr").first.wait_for()
        assert visit.complaints == []


def _pages_of_a_job(visit: Visit) -> dict[str, tuple[str, str]]:
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


def _act_for_teams(page: Page, roles: dict[str, str]) -> None:
    """Let the caller have these roles, by team; "" is the person alone."""

    def answer(route: Route) -> None:
        headers = dict(route.request.headers)
        team = headers.pop("carillon-team", "")
        if not route.request.url.endswith("/deployment"):
            return route.continue_(headers=headers)  # nobody is in a team here
        caller = {"role": roles[team], "teams": {own: roles[own] for own in roles if own}}
        return route.fulfill(json={"caller": caller})

    page.route("**/api/**", answer)


@pytest.mark.parametrize("by", ["the option", "a role"])
def test_who_may_only_read_has_no_buttons_that_write(visit: Visit, rehearsed: str, by: str) -> None:
    is_option = by == "the option"
    if not is_option:
        _act_for_teams(visit.page, {"": "viewer"})
    with Loopback(rehearsed, "a-token", "key", read_only=is_option) as loopback:
        visit.open(loopback)
        visit.page.locator("tbody tr").first.wait_for()
        expect(visit.page.get_by_text("read only")).to_be_visible()
        assert visit.page.get_by_role("button", name="Export YAML").is_visible()
        pages = [*READABLE, *(path for path, _ in _pages_of_a_job(visit).values())]
        for path in pages:
            visit.page.goto(f"{loopback.origin}/#{path}")
            visit.page.locator("main h1").first.wait_for()
            visit.page.wait_for_load_state("networkidle")
            writing = visit.page.get_by_role("button", name=WRITING).or_(
                visit.page.get_by_role("link", name=WRITING)
            )
            expect(writing).to_have_count(0)
            assert visit.page.locator("main [type=checkbox]:enabled").count() == 0 or "new" in path
            visit.page.keyboard.press("j")
            for key in "xprdce":
                visit.page.keyboard.press(key)
                expect(visit.page.locator("dialog")).to_have_count(0)
                assert visit.page.url == f"{loopback.origin}/#{path}"


def test_what_is_offered_is_what_the_role_in_the_team_allows(
    visit: Visit, console: Loopback
) -> None:
    page = visit.page
    _act_for_teams(page, {"": "admin", "billing": "editor", "sales": "viewer"})
    visit.open(console, "/dead-letters")
    every, admins = (page.get_by_role("button", name=f"{verb} all") for verb in VERBS)
    for team, shown in (("sales", (0, 0)), ("", (1, 1)), ("billing", (1, 0))):
        page.get_by_label("Act for").select_option(team)
        page.locator("tbody tr").first.wait_for()
        expect(page.get_by_text("read only")).to_have_count(int(team == "sales"))
        expect(every).to_have_count(shown[0])
        expect(admins).to_have_count(shown[1])
    page.goto(f"{console.origin}/#/notifications")
    page.get_by_text("Nobody is told").wait_for()
    expect(page.get_by_role("link", name="New notification")).to_have_count(0)
    page.goto(f"{console.origin}/#/notifications/new")
    page.get_by_label("Tags").wait_for()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)


def test_who_asks_is_asked_again_where_that_has_failed(visit: Visit, console: Loopback) -> None:
    page = visit.page
    _act_for_teams(page, {"": "admin", "billing": "editor"})
    refusal = {"title": "Overloaded", "status": 503}
    page.route("**/deployment", lambda route: route.fulfill(status=503, json=refusal), times=1)
    visit.open(console)
    expect(page.get_by_text("your teams are not known yet")).to_be_visible()
    expect(page.get_by_label("Act for")).to_be_visible(timeout=15_000)
    expect(page.get_by_text("your teams are not known yet")).to_have_count(0)
    assert [each for each in visit.complaints if "503" not in each] == []
    visit.complaints.clear()


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


def test_limits_that_cannot_be_saved_without_a_token_are_told(visit: Visit) -> None:
    there, here = "https://sign.in", "https://stack.example"
    page = visit.page
    caller = {"role": "admin", "is_operator": True, "teams": {}}
    quota = {"name": "jobs", "limit": 10, "use": 1, "own": True}
    answers: dict[str, Any] = {
        "/.well-known/carillon": {"sign_in_url": there, "console_client_id": "c"},
        "/deployment": {"caller": caller},
        "/quota": {"owner": "user/ada", "quotas": [quota]},
        "/status": {},
    }
    site = Site(api="..", sign_in="oidc", connect_to=(there,))

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith("/console/"):
            told = site.answer(path.removeprefix("/console/").replace("index.html", ""))
            route.fulfill(status=told.status, headers=dict(told.headers), body=told.body)
        elif route.request.method == "PUT":
            route.fulfill(status=401, json={"message": "Unauthorized"})
        else:
            route.fulfill(json=answers[path])

    def sign_in(route: Route) -> None:
        allowed = {"Access-Control-Allow-Origin": here}
        is_first = "authorization_code" in (route.request.post_data or "")
        told = {"access_token": "t", "refresh_token": "r"}
        route.fulfill(status=200 if is_first else 503, json=told, headers=allowed)

    page.route(f"{here}/**", answer)
    page.route(f"{there}/**", sign_in)
    page.goto(f"{here}/console/index.html#/quotas")
    page.wait_for_url(f"{there}/oauth2/authorize?*")
    asked = dict(parse_qsl(urlsplit(page.url).query))
    page.goto(f"{asked['redirect_uri']}?code=1&state={asked['state']}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("Not signed in again")).to_be_visible()
    assert [each for each in visit.complaints if "401" not in each and "503" not in each] == []
    visit.complaints.clear()


def test_a_refused_sign_in_is_said_and_tried_again_and_its_end_is_one(visit: Visit) -> None:
    there, here = "https://sign.in", "https://stack.example"
    site = Site(api="..", sign_in="oidc", connect_to=(there,))
    issuer = {"sign_in_url": there, "console_client_id": "c"}

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith("/console/"):
            told = site.answer(path.removeprefix("/console/").replace("index.html", ""))
            route.fulfill(status=told.status, headers=dict(told.headers), body=told.body)
        else:
            route.fulfill(json=issuer if "well-known" in path else {"items": [], "caller": None})

    def sign_in(route: Route) -> None:
        allowed = {"Access-Control-Allow-Origin": here}
        route.fulfill(json={"access_token": "t"}, headers=allowed)

    visit.page.route(f"{here}/**", answer)
    visit.page.route(f"{there}/**", sign_in)
    visit.page.goto(f"{here}/console/index.html?error=access_denied")
    visit.page.get_by_text("access_denied").wait_for()
    visit.page.get_by_role("button", name="Try again").click()
    visit.page.wait_for_url(f"{there}/oauth2/authorize?*code_challenge_method=S256*")
    asked = dict(parse_qsl(urlsplit(visit.page.url).query))
    visit.page.goto(f"{asked['redirect_uri']}?code=1&state={asked['state']}")
    visit.page.get_by_text("No jobs yet").wait_for()
    assert visit.page.url == f"{here}/console/index.html#/jobs"
    visit.page.get_by_role("button", name="Sign out").click()
    visit.page.wait_for_url(f"{there}/logout?client_id=c&logout_uri=*")


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


def test_what_is_taken_away_from_a_job_is_gone(visit: Visit, console: Loopback) -> None:
    """A change is merged member by member: what is not named stays."""
    sent: list[Any] = []

    def hear(asked: PageRequest) -> None:
        if asked.method == "PATCH":
            sent.append(asked.post_data_json)

    visit.page.on("request", hear)
    visit.open(console)
    visit.page.locator("table a", has_text="reindex search").click()
    visit.page.get_by_role("link", name="Edit").click()
    _fill(visit.page, "Order", "Tags", "env=prod, team=catalogue")
    visit.page.get_by_role("button", name="Save").click()
    visit.page.get_by_text("env=prod").wait_for()
    visit.page.get_by_role("link", name="Edit").click()
    _fill(visit.page, "Order", "Tags", "team=catalogue")
    visit.page.get_by_role("button", name="Save").click()
    visit.page.get_by_role("heading", name="reindex search", exact=True).wait_for()
    expect(visit.page.get_by_text("env=prod")).to_have_count(0)
    assert sent == [{"tags": {"env": "prod"}}, {"tags": {"env": None}}]


def test_what_was_written_survives_a_change_by_somebody_else(
    visit: Visit, console: Loopback, rehearsed: str
) -> None:
    page = visit.page
    visit.open(console)
    page.locator("table a", has_text="weekly report").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Time zone").fill("Europe/Riga")
    job_id = page.url.split("/")[-2]
    headers = {"Content-Type": "application/json", "If-Match": "*"}
    body = b'{"description": "To everybody"}'
    urlopen(Request(f"{rehearsed}/jobs/{job_id}", body, headers, method="PATCH")).close()

    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Save again to put it over the newer")
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Riga")
    assert [each for each in visit.complaints if "412" not in each] == []
    visit.complaints.clear()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="weekly report", exact=True).wait_for()
    with urlopen(f"{rehearsed}/jobs/{job_id}") as answer:
        job = json.load(answer)
    assert (job["timezone"], job["description"]) == ("Europe/Riga", "To everybody")


@pytest.mark.parametrize("way", ["a key", "a link", "back"])
def test_a_form_that_was_changed_is_not_left_without_a_question(
    visit: Visit, console: Loopback, way: str
) -> None:
    page = visit.page

    def leave() -> None:
        if way == "back":
            page.evaluate("history.back()")
        elif way == "a link":
            page.get_by_label("Pages").get_by_role("link", name="Jobs").click()
        else:
            page.get_by_role("heading", name="New job").click()
            page.keyboard.press("g")
            page.keyboard.press("j")

    def begin() -> None:
        page.get_by_role("link", name="New job").click()
        page.get_by_role("heading", name="New job").wait_for()

    left = page.get_by_role("button", name="Export YAML")
    visit.open(console)
    begin()
    leave()
    left.wait_for()
    begin()
    name = page.get_by_label("Name")
    name.fill("half a job")
    for answer in ("Cancel", "Leave"):
        leave()
        page.get_by_role("dialog", name="Leave without saving?").wait_for()
        assert page.url.endswith("#/new")
        expect(name).to_have_value("half a job")
        page.get_by_role("button", name=answer, exact=True).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    left.wait_for()
    assert page.url.endswith("#/jobs")
    page.get_by_role("link", name="New job").click()
    expect(name).to_have_value("")


def test_the_team_stays_with_the_form_that_is_not_left(visit: Visit, console: Loopback) -> None:
    page = visit.page
    _act_for_teams(page, {"": "admin", "billing": "editor"})
    visit.open(console, "/new")
    page.get_by_label("Name").fill("half a job")
    teams = page.get_by_label("Act for")
    for answer, team, name in (("Cancel", "", "half a job"), ("Leave", "billing", "")):
        teams.select_option("billing")
        page.get_by_role("button", name=answer, exact=True).click()
        expect(page.get_by_label("Name")).to_have_value(name)
        expect(teams).to_have_value(team)
        assert page.evaluate("sessionStorage.getItem('carillon-team')") == team


def _fill(page: Page, group: str, label: str, text: str) -> None:
    page.locator("summary", has_text=group).last.click()
    page.get_by_label(label).fill(text)


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


@pytest.mark.parametrize("button", ["Pause…", "Run now…", "Delete…"])
def test_questions_can_be_answered_by_everybody(
    visit: Visit, console: Loopback, button: str
) -> None:
    visit.open(console)
    visit.page.locator("table a", has_text="reindex search").click()
    visit.page.get_by_role("button", name=button).click()
    visit.page.get_by_role("dialog").wait_for()
    assert visit.findings() == []


def test_a_backfill_of_more_than_the_page_has_read_says_so(visit: Visit, console: Loopback) -> None:
    missed = {"fire_at": "2026-11-27T00:00:00Z", "status": None, "reason": None, "run_id": None}
    answer = {"items": [missed] * 100, "complete": False}
    visit.page.route("**/missed?*", lambda route: route.fulfill(json=answer))
    visit.open(console)
    visit.page.locator("table a", has_text="heartbeat").click()
    visit.page.get_by_role("button", name="Run them…").click()
    expect(visit.page.get_by_text("Run at least 100 missed occurrences?")).to_be_visible()


def test_the_link_says_for_which_team_the_page_acts(visit: Visit, console: Loopback) -> None:
    teams: set[str | None] = set()

    def pass_on(route: Route) -> None:
        headers = dict(route.request.headers)
        teams.add(headers.pop("carillon-team", None))
        route.continue_(headers=headers)

    visit.page.route("**/api/**", pass_on)
    visit.page.goto(f"{console.link}&team=billing&to=/jobs")
    visit.page.locator("table tbody tr").first.wait_for()
    assert teams == {"billing"}
