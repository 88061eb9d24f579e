"""Pages in Chromium: one browser for the session, and pages that must not complain."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from carillon.console.loopback import Loopback
from carillon.local.emulator import REPOSITORY
from tests.browser.chromium import chromium
from tests.browser.rehearsed import served

AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
IMAGES = "CARILLON_SCREENSHOTS"
"""Names the folder for screenshots, where they are wanted (`make screenshots`)."""
_TOLD = """({ violations }) => violations.flatMap(
    ({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`))"""
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def rehearsed() -> Iterator[str]:
    """The address of an API behind which a day has passed."""
    with served() as url:
        yield url


@pytest.fixture(scope="session")
def console(rehearsed: str) -> Iterator[Loopback]:
    with Loopback(rehearsed, "a-token", "k" * 32) as loopback:
        yield loopback


@dataclass
class Visit:
    """A page, and all that it complains of: errors, and violations of its policy."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def in_context(cls, context: BrowserContext) -> "Visit":
        page = context.new_page()
        visit = cls(page)
        page.on(
            "console", lambda said: visit._hear(said.type, f"{said.text} {said.location['url']}")
        )
        page.on("pageerror", lambda error: visit._hear("error", str(error)))
        return visit

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def open(self, loopback: Loopback, path: str = "/jobs") -> None:
        """A page of the console by its link."""
        self.page.goto(f"{loopback.link}&to={path}")
        self.page.locator("main h1").wait_for()

    def findings(self) -> list[str]:
        """The findings of axe: rule and element."""
        self.page.evaluate(AXE.read_text())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        found: Any = self.page.evaluate(f"tags => axe.run({{ runOnly: tags }}).then({_TOLD})", tags)
        return list(found)

    def picture(self, name: str) -> None:
        """A screenshot, where they are wanted."""
        if folder := os.environ.get(IMAGES):
            self.page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A page at a desk; nothing that it complains of passes."""
    with browser.new_context(viewport=DESK) as context:
        visit = Visit.in_context(context)
        yield visit
        assert visit.complaints == []
