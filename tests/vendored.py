"""Files of the console that others have written: its libraries, as `npm ci` has installed and
checked them by the lock file, and the defaults of a job's settings.

`make vendor` writes them.
"""

import json
import re
from pathlib import Path

import carillon.console
from carillon.cli.options_table import DEFAULTS

ROOT = Path(__file__).resolve().parents[1]
MODULES = ROOT / "node_modules"
FOLDER = carillon.console.FOLDER / "vendor"
SOURCES = {
    "htm.js": "htm/dist/htm.mjs",
    "hooks.js": "preact/hooks/dist/hooks.mjs",
    "preact.js": "preact/dist/preact.mjs",
}
LICENSES = ("htm/LICENSE", "preact/LICENSE")
DEFAULTS_FILE = FOLDER / "defaults.js"
_DEFAULTS = """// @ts-check
// `make vendor` writes this file: a job's settings, each with its default.

/** @type {{Record<string, any>}} */
export const DEFAULTS = {defaults};
"""
_SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=.*\n?$")


def files() -> dict[Path, str]:
    """Each file as it should be: the package's own, without the address of a map that is not
    there, and with the path of another one where it imports a package by its name."""
    found = {FOLDER / name: _text(MODULES / path) for name, path in SOURCES.items()}
    texts = [f"{path}\n\n{(MODULES / path).read_text().strip()}\n" for path in LICENSES]
    defaults = json.dumps(DEFAULTS, indent=2, sort_keys=True, default=str)
    return found | {
        FOLDER / "LICENSES.txt": "\n\n".join(texts),
        DEFAULTS_FILE: _DEFAULTS.format(defaults=defaults),
    }


def _text(path: Path) -> str:
    text = _SOURCE_MAP.sub("\n", path.read_text())
    return text.replace('from"preact"', 'from"./preact.js"')


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
