"""A working day at the console of a deployed stack, by the keyboard alone."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from carillon.console.loopback import Loopback
from carillon.local.deployment import Deployment
from carillon.local.receiver import Receiver
from tests.browser.conftest import Visit
from tests.e2e.conftest import NEVER, Person, person, post, task

"""A job that fires every minute, and the page that shows it."""


@pytest.fixture
def carol(deployment: Deployment) -> Iterator[Person]:
    """Somebody whose jobs nobody else touches: all of them are paused here."""
    with person(deployment, "carol") as carol:
        yield carol
        for job in list(carol.every("/jobs")):
            with suppress(AssertionError):
                carol.delete(job)


@pytest.fixture
def console(carol: Person) -> Iterator[Loopback]:
    token = carol.http.headers["authorization"].removeprefix("Bearer ")
    with Loopback(str(carol.http.base_url), token, "k" * 32) as loopback:
        yield loopback


def _press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def _into(page: Page, label: str, text: str) -> None:
    """Tab on until the field of this label has the focus, and write.

    All at once: half a schedule, looked at where a machine is slow between two keys, is refused.
    """
    field = page.get_by_label(label, exact=True)
    for _ in range(40):
        if field.evaluate("own => own === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def _onto(page: Page, name: str) -> None:
    """Tab on until a button of this name has the focus, and press it."""
    button = page.get_by_role("button", name=name, exact=True).first
    for _ in range(60):
        if button.evaluate("own => own === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def test_a_day_at_the_console(
    carol: Person, console: Loopback, visit: Visit, receiver: Receiver
) -> None:
    page = visit.page
    for name in ("alpha", "nightly report", "zulu"):
        post(carol, "/jobs", {"name": name, "schedule": NEVER, "target": task("echo")}, 201)
    visit.open(console)
    expect(page.locator("tbody tr")).to_have_count(3)

    # Found by `/`, opened by Enter.
    _press(page, "/")
    page.keyboard.type("nightly")
    expect(page.locator("tbody tr")).to_have_count(1)
    _press(page, "Escape", "j", "Enter")
    expect(page.get_by_role("heading", name="nightly report")).to_be_visible()

    # Made, with its sentence and what the clocks do to it.
    _press(page, "n")
    expect(page.get_by_label("Name")).to_be_focused()
    _into(page, "Name", "pulse")
    _into(page, "URL", receiver.url)
    _into(page, "Schedule", "30 2 * * *")
    _into(page, "Time zone", "Europe/Berlin")
    expect(page.locator(".outlook .sentence")).to_have_text("every day at 02:30 in Europe/Berlin")
    expect(page.locator(".outlook")).to_contain_text("02:30 does not exist on")
    page.keyboard.press("Shift+Tab")
    _into(page, "Schedule", "every 1m")
    expect(page.locator(".outlook .sentence")).to_contain_text("every minute")
    _press(page, "Enter")
    expect(page.get_by_role("heading", name="pulse", exact=True)).to_be_visible()

    # Seen to fire, without a reload.
    expect(page.locator("table[aria-label=Runs] tbody tr").first).to_contain_text("succeeded")
    job_id = page.url.partition("/jobs/")[2].partition("?")[0]
    (fired, *_) = carol.runs({"job_id": job_id})
    assert datetime.fromisoformat(fired["fire_at"]) <= datetime.now(UTC)

    # Broken: nobody listens there; run by hand.
    _press(page, "e")
    expect(page.get_by_role("heading", name="Edit pulse")).to_be_visible()
    _into(page, "URL", "http://127.0.0.1:9/hook")
    _press(page, "Enter")
    expect(page.get_by_role("heading", name="pulse", exact=True)).to_be_visible()
    _press(page, "r")
    _onto(page, "Run now")
    dead = page.locator("table[aria-label=Runs] tbody tr", has_text="dead").first
    expect(dead).to_be_visible()

    # Mended, and redriven from the page of the run.
    _press(page, "e")
    _into(page, "URL", receiver.url)
    _press(page, "Enter")
    expect(page.get_by_role("heading", name="pulse", exact=True)).to_be_visible()
    expect(dead).to_be_visible()
    row = next(
        number
        for number, text in enumerate(
            page.locator("table[aria-label=Runs] tbody tr").all_inner_texts()
        )
        if "dead" in text
    )
    _press(page, *["j"] * (row + 1), "Enter")
    expect(page.get_by_role("heading", name="Run of pulse")).to_be_visible()
    _press(page, "r")
    expect(page.locator("header.head")).to_contain_text("_1")
    expect(page.locator("header.head")).to_contain_text("succeeded")

    # Everything is paused.
    _press(page, "g", "j")
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(4)
    _onto(page, "Pause all matching…")
    expect(page.get_by_role("dialog")).to_contain_text("Pause all 4 jobs")
    _onto(page, "Pause")
    expect(page.locator("tbody tr", has_text="paused")).to_have_count(4)

    assert visit.findings() == []
    stored = page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    token = carol.http.headers["authorization"].removeprefix("Bearer ")
    assert token not in stored
    assert token not in page.url
    assert "key=" not in page.url
    assert page.context.cookies() == []
