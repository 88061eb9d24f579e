"""Who uses the console: sign-in, roles, and the team they act for."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from carillon.console import Site
from carillon.console.loopback import Loopback
from tests.browser.conftest import Visit
from tests.browser.test_pages import pages_of_a_job

VERBS = ("Redrive", "Discard")
READABLE = (
    "/jobs", "/jobs?q=no-such", "/new", "/activity", "/forecast", "/dead-letters", "/calendars",
    "/operations", "/notifications", "/notifications/new", "/quotas", "/segments",
)  # fmt: skip
WRITING = re.compile(
    "^(New |Make |Pause all|Pause…|Resume|Run |Edit|Delete|Save|Create|Cancel|"
    "Redrive|Discard|Spread|Send|Tag$|Take in)"
)


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
        pages = [*READABLE, *(path for path, _ in pages_of_a_job(visit).values())]
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
