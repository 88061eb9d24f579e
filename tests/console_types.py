"""The types of the API for the console, by openapi-typescript: `make check` writes them anew and
checks the console against them, so that nothing can drift."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import carillon.console
from tests.unit.api.conftest import new_world

ROOT = Path(__file__).resolve().parents[1]
TYPES = carillon.console.FOLDER / "types" / "api.d.ts"

if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        described = Path(directory) / "openapi.json"
        described.write_text(json.dumps(new_world().api().describe()))
        TYPES.parent.mkdir(exist_ok=True)
        command = ["node", "node_modules/openapi-typescript/bin/cli.js", str(described)]
        subprocess.run([*command, "-o", str(TYPES)], cwd=ROOT, check=True, capture_output=True)
