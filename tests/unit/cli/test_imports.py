"""Previewing must start quickly: nothing of HTTP or AWS is imported for it."""

import contextlib
import json
import os
import subprocess
import sys

import pytest

# typer itself imports pydantic.
HEAVY = ("httpx2", "boto3", "botocore", "pynamodb", "rich", "ssl")
PROBE = f"""
import json, sys
from carillon.cli.main import main
try:
    main()
finally:
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["preview", "0 * * * *"], ["preview", "0 * * * *", "--json"], ["preview", "x"]]
)
def test_preview_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=False
    )

    assert done.returncode == (3 if "x" in arguments else 0), done.stderr
    assert json.loads(done.stderr.splitlines()[-1]) == []


def test_a_batch_imports_no_typer_either() -> None:
    probe = PROBE.replace(repr(HEAVY), repr((*HEAVY, "typer", "pydantic")))

    done = subprocess.run(
        [sys.executable, "-c", probe, "preview", "--batch"],
        input="", capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(done.stderr) == []


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        (["admin", "release"], "botocore", "aws"),
        (["doctor"], "botocore", "aws"),
        (["import", "eventbridge"], "botocore", "aws"),
        (["simulate", "fleet.yaml", "--for", "1d"], "greenlet", "simulate"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    arguments: list[str], missing: str, extra: str
) -> None:
    without = f"import sys; sys.modules[{missing!r}] = None\n{PROBE}"

    done = subprocess.run(
        [sys.executable, "-c", without, *arguments], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2, done.stderr
    assert f"{arguments[0]} needs more than is installed" in done.stderr
    assert f"{missing} is missing: pip install 'carillon[{extra}]'" in done.stderr


def test_a_file_gets_utf_8_whatever_the_locale_is() -> None:
    command = [sys.executable, "-m", "carillon.cli.main", "import", "crontab", "-"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    source = "# Nakts dublēšana\n0 1 * * * /bin/a\n".encode()

    done = subprocess.run(command, input=source, capture_output=True, env=environment, check=True)

    assert "Nakts dublēšana:" in done.stdout.decode()


def test_a_reader_that_goes_away_ends_a_batch_quietly() -> None:
    line = b'{"schedule": "every 7s", "after": "2026-01-01T00:00:00Z", "count": 1000}\n'
    batch = subprocess.Popen(
        [sys.executable, "-m", "carillon.cli.main", "preview", "--batch"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert batch.stdin is not None
    assert batch.stdout is not None
    batch.stdout.close()

    with contextlib.suppress(BrokenPipeError):
        batch.stdin.write(line * 100)
    _, alert = batch.communicate()

    assert (batch.returncode, alert) == (1, b"")


def test_batch_answers_thousands_of_lines_in_one_process() -> None:
    command = [sys.executable, "-m", "carillon.cli.main", "preview", "--batch"]
    lines = 5_000
    line = b'{"schedule": "every 7s", "after": "2026-01-01T00:00:00Z", "count": 3}\n'

    done = subprocess.run(command, input=line * lines, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == lines
    assert json.loads(done.stdout.splitlines()[-1])["fire_at"][0] == "2026-01-01T00:00:07Z"
