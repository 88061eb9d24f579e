"""The runner of `make test`: what is red, and that nothing outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

from tests.lanes import ROOT, Lane, Lanes, Part

RUNNER = """
import sys
from tests import lanes
lanes.STACKS = []
lanes.REST = lanes.EVERYTHING = [
    lanes.Part(words, command=("sh", "-c", words)) for words in sys.argv[1:]
]
raise SystemExit(lanes.main([]))
"""


def runner(*commands: str) -> "subprocess.Popen[str]":
    """The runner with shell commands in place of its parts."""
    words = [sys.executable, "-c", RUNNER, *commands]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def is_gone(process_id: int) -> bool:
    """Once it was killed: on a busy machine the kernel takes its time."""
    deadline = monotonic() + 5
    while is_alive(process_id) and monotonic() < deadline:
        sleep(0.01)
    return not is_alive(process_id)


def is_alive(process_id: int) -> bool:
    """Also false of one that nobody has waited for yet."""
    try:
        os.kill(process_id, 0)
        return ") Z " not in Path(f"/proc/{process_id}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # gone meanwhile, or a system without /proc
        return not Path("/proc/self").exists()


def test_all_green() -> None:
    process = runner("true", "echo fine")
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "fine\n" not in said.replace("echo fine", "")
    assert said.splitlines()[-1].startswith("green; ")


def test_what_is_red_is_named_and_shown_when_all_has_ended() -> None:
    process = runner("echo wrong; exit 3", "sleep 0.2; echo right", "no-such-command")
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "\nwrong\n" in said
    assert "\nright\n" not in said
    assert said.splitlines()[-1].startswith("red: echo wrong; exit 3, no-such-command; ")


def test_an_interruption_ends_what_is_under_way_and_begins_nothing(tmp_path: Path) -> None:
    notes = [tmp_path / name for name in ("first", "second", "third", "fourth")]
    process = runner(*(f"echo $$ > {note}; sleep 60" for note in notes))
    give_up_at = monotonic() + 60
    while not all(note.exists() and note.read_text() for note in notes[:3]):
        assert monotonic() < give_up_at
        sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "interrupted" in said
    assert not notes[3].exists()
    assert all(is_gone(int(note.read_text())) for note in notes[:3])


def test_a_part_beyond_the_limit_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "child"
    lanes = Lanes(tmp_path, limit_seconds=0.5)
    endless = Part("endless", command=("sh", "-c", f"sleep 60 & echo $! > {note}; wait"))
    lanes.run([Lane([endless], 1, 0)])
    (ended,) = lanes.ended
    assert ended.code == -signal.SIGKILL
    assert is_gone(int(note.read_text()))


def test_a_part_is_its_folders_without_what_is_apart() -> None:
    part = Part("some", ("tests/unit",), without=("tests/unit/api",))
    assert part.holds(ROOT / "tests/unit/test_lanes.py")
    assert not part.holds(ROOT / "tests/unit/api/jobs/test_jobs.py")
    assert not part.holds(ROOT / "tests/infra/test_project.py")
    assert part.words[2:4] == ["pytest", "tests/unit"]
    assert part.words[-1] == "--ignore=tests/unit/api"
