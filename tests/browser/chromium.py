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
    path = Path(os.environ.get(OTHER) or UNPACKED / "chromium")
    libraries = UNPACKED / "al2023" / "lib"
    environment = (
        {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        if not os.environ.get(OTHER)
        else {**os.environ}
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env=environment)
        try:
            yield browser
        finally:
            browser.close()
