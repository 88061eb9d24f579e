"""One file: rehearsed, compared, applied, and then fired as rehearsed, on the deployed stack."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Person, instant, until

ECHO = {"type": "task", "name": "echo"}
SOON_SECONDS = 45
"""From the rehearsed span's beginning on: the apply is done by then."""
JOBS = 150
"""More than are applied before the first of them is seen."""


def manifest(path: Path, jobs: dict[str, Any]) -> str:
    """JSON is YAML."""
    path.write_text(json.dumps({"manifest": f"e2e-{uuid4().hex[:8]}", "jobs": jobs}))
    return str(path)


def test_a_manifest_fires_as_it_was_rehearsed(alice: Person, tmp_path: Path) -> None:
    name = f"rehearsed {uuid4().hex[:8]}"
    file = manifest(
        tmp_path / "jobs.yaml",
        {
            f"{name} every": {"schedule": "every 7s", "target": ECHO},
            f"{name} cron": {"schedule": "*/10 * * * * *", "target": ECHO, "window": "5s"},
        },
    )
    rehearsed = json.loads(
        alice.carillon("simulate", file, "--for", "2m", "--first", "100", "--json").stdout
    )
    begin = instant(rehearsed["from"]) + timedelta(seconds=SOON_SECONDS)
    assert alice.carillon("diff", file).returncode == 8
    assert alice.carillon("apply", file).returncode == 0
    assert alice.carillon("diff", file).returncode == 0

    for job in rehearsed["jobs"]:
        wanted = [at for at in job["first"] if instant(at) >= begin][:4]
        path = f"/jobs/named/{job['name']}"
        stored = alice.http.get(path).json()

        def fired(stored: Any = stored, wanted: list[str] = wanted) -> list[str]:
            runs = {run["fire_at"]: run for run in alice.runs(stored)}
            found = [at for at in wanted if runs.get(at, {}).get("status") == "succeeded"]
            return found if len(found) == len(wanted) else []

        assert until(fired, 150) == wanted
        between = sorted(
            run["fire_at"]
            for run in alice.runs(stored)
            if wanted[0] <= run["fire_at"] <= wanted[-1]
        )
        assert between == wanted, "to the second, and no other"
    assert alice.carillon("apply", file, "--prune", "--yes").returncode == 0


def test_an_apply_that_is_killed_is_repeated(alice: Person, tmp_path: Path) -> None:
    prefix = f"killed {uuid4().hex[:8]}"
    job = {"schedule": "0 3 1 1 *", "target": ECHO}
    file = manifest(tmp_path / "jobs.yaml", {f"{prefix} {n}": job for n in range(JOBS)})
    command = [sys.executable, "-m", "carillon.cli.main", "apply", file]
    environment = os.environ | {
        "CARILLON_API_URL": str(alice.http.base_url).rstrip("/"),
        "CARILLON_TOKEN": alice.http.headers["authorization"].removeprefix("Bearer "),
    }
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    found = until(lambda: list(alice.every("/jobs", name=prefix)), 60)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert found

    repeated = alice.carillon("apply", file)

    assert repeated.returncode == 0, repeated.stderr
    assert alice.carillon("diff", file).stdout == f"{JOBS} unchanged\n"
    jobs = until(lambda: _all(alice, prefix, JOBS), 30)
    assert {job["revision"] for job in jobs} == {1}, "each was written once"
    file_of_none = manifest(tmp_path / "none.yaml", {})
    document = json.loads(Path(file).read_text())
    Path(file_of_none).write_text(json.dumps({"manifest": document["manifest"], "jobs": {}}))
    assert alice.carillon("apply", file_of_none, "--prune", "--yes").stdout.endswith(
        f"{JOBS} deleted\n"
    )


def _all(person: Person, prefix: str, count: int) -> list[Any]:
    sleep(0.2)
    found = list(person.every("/jobs", name=prefix))
    return found if len(found) == count else []
