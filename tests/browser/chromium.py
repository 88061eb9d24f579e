"""Chromium of the npm package, driven by Playwright, and what its pages must not do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from carillon.local.emulator import REPOSITORY

UNPACKED = REPOSITORY / ".venv" / ".chromium"
OTHER = "CARILLON_CHROMIUM"
"""Names another Chromium, on machines for which the package has none."""
ARGUMENTS = [
    "--no-sandbox",
    "--font-render-hinting=none",
    "--use-gl=angle",
    "--use-angle=swiftshader",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    given = os.environ.get(OTHER)
    libraries = {} if given else {"LD_LIBRARY_PATH": str(UNPACKED / "al2023" / "lib")}
    environment: dict[str, str | float | bool] = {**os.environ, **libraries}
    path = Path(given) if given else UNPACKED / "chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env=environment)
        try:
            yield browser
        finally:
            browser.close()
