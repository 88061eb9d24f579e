"""Forms and questions: what is written in them is saved, kept or asked about."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, Route, expect
from playwright.sync_api import Request as PageRequest

from carillon.console import Site
from carillon.console.loopback import Loopback
from tests.browser.conftest import Visit


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
        # It is out of sight before it has said that it was closed.
        expect(page.locator("dialog")).to_have_count(0)
    left.wait_for()
    assert page.url.endswith("#/jobs")
    page.get_by_role("link", name="New job").click()
    expect(name).to_have_value("")


def _fill(page: Page, group: str, label: str, text: str) -> None:
    page.locator("summary", has_text=group).last.click()
    page.get_by_label(label).fill(text)


@pytest.mark.parametrize("button", ["Pause…", "Run now…", "Delete…"])
def test_questions_can_be_answered_by_everybody(
    visit: Visit, console: Loopback, button: str
) -> None:
    visit.open(console)
    visit.page.locator("table a", has_text="reindex search").click()
    visit.page.get_by_role("button", name=button).click()
    visit.page.get_by_role("dialog").wait_for()
    assert visit.findings() == []
