"""Each command that may take long shows a bar on stderr of a terminal, and nothing elsewhere."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer.testing

from carillon.cli import polling
from carillon.cli.options_table import DEFAULTS
from carillon.settings import Settings
from carillon.smoke.smoke import Result, Smoke
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.rendered import OPERATION
from tests.unit.cli.test_admin import deployment

__all__ = ["deployment"]

JOB = {"schedule": "every 1h", "target": {"type": "task", "name": "echo"}}
ITEM = {"kind": "job", "name": "a", "action": "none", "changes": [], "warnings": []}
APPLIED = {"items": [ITEM], "digest": "d", "complete": True, "written": True}
CHANGED = {"changed": 1, "managed": 0, "complete": True, "next_cursor": None}
BARS = {
    "export": "jobs read",
    "diff FILE": "compared 1 of 1",
    "apply FILE": "applied 1 of 1",
    "operations show o1 --wait": "redrive: 12000 done",
    "jobs delete --parent p --yes": "deleted 1 jobs so far",
    "jobs pause --all": "paused 1 jobs so far",
    "admin audit": "comparing",
    "admin reindex": "reading jobs",
    "admin spread": "reading jobs",
    "admin smoke": "1 of 1 checks",
}


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("command", BARS)
def test_long_work_shows_a_bar(
    signed_in: Run,
    api: FakeApi,
    deployment: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    is_terminal: bool,
) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"manifest": "m", "jobs": {"a": JOB}}))
    stored = {**DEFAULTS, **JOB, "name": "a", "state": "active"}
    api.answer("GET", "/jobs", {"items": [stored], "next_cursor": None})
    api.answer("POST", "/apply", APPLIED)
    operation = OPERATION | {"operation_id": "o1"}
    api.answer("GET", "/operations/o1", operation | {"state": "running"})
    api.then("GET", "/operations/o1", operation)
    monkeypatch.setattr(polling, "INTERVAL_SECONDS", 0.01)
    api.answer("DELETE", "/jobs", CHANGED)
    api.answer("POST", "/jobs/pause", CHANGED)
    smoke = sys.modules["carillon.cli.commands.admin.smoke"]
    monkeypatch.setattr(smoke, "open_unchecked", lambda options: (deployment, None))
    monkeypatch.setattr(smoke, "_probes", lambda *parts: ["a probe"])
    monkeypatch.setattr(smoke, "_receiver", lambda *parts: nullcontext())
    monkeypatch.setattr(Smoke, "run", lambda self, probes: iter([Result("a", True, "b")]))
    monkeypatch.setattr(Smoke, "clean_up", lambda self: Result("clean-up", True, "c"))
    stream = typer.testing._NamedTextIOWrapper
    monkeypatch.setattr(stream, "isatty", lambda self: is_terminal and self.name == "<stderr>")
    monkeypatch.setenv("TERM", "xterm-256color")

    told = signed_in(*command.replace("FILE", str(file)).split(" "))

    assert told.exit_code == 0, told.output
    assert (BARS[command] in told.stderr) is is_terminal, told.stderr
    assert "\x1b" not in told.stdout
    assert ("ok    a" in told.stdout) is (command == "admin smoke")
