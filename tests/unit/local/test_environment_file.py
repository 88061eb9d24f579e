"""What `make run` tells a shell, and when it tells of webhooks."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from carillon.client.sign_in import Machine
from carillon.local.receiver import Delivery
from carillon.local.run import HeldLines, environment, machine_environment


def test_a_shell_that_sources_it_has_address_token_and_commands(tmp_path: Path) -> None:
    text = environment(
        "http://127.0.0.1:4566/a b/$default", tmp_path / "token", tmp_path / "bin/py"
    )
    (tmp_path / "env").write_text(text)
    script = (
        'export CARILLON_TOKEN=old; . "$0"; '
        'echo "$CARILLON_API_URL|$CARILLON_TOKEN_FILE|${CARILLON_TOKEN-none}|${PATH%%:*}"'
    )

    told = subprocess.run(
        ["sh", "-c", script, str(tmp_path / "env")], check=True, capture_output=True, text=True
    )

    assert told.stdout.strip().split("|") == [
        "http://127.0.0.1:4566/a b/$default", str(tmp_path / "token"), "none",
        str(tmp_path / "bin"),
    ]  # fmt: skip


def test_webhooks_are_told_once_the_stack_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    delivery = Delivery(datetime(2026, 1, 1, tzinfo=UTC), "w", b"", True)
    lines = HeldLines()

    lines.take(delivery)
    assert capsys.readouterr().out == ""
    lines.release()
    lines.take(delivery)

    assert capsys.readouterr().out.count("got a webhook, signature verified") == 2


def test_a_shell_that_sources_the_machine_s_file_is_the_machine(tmp_path: Path) -> None:
    text = machine_environment("http://127.0.0.1:1", Machine("c1", "s/1+="), tmp_path / "py")
    (tmp_path / "ci.env").write_text(text)
    script = (
        'export CARILLON_TOKEN=old CARILLON_TOKEN_FILE=old; . "$0"; '
        'echo "$CARILLON_CLIENT_ID|$CARILLON_CLIENT_SECRET|$CARILLON_TEAM|'
        '${CARILLON_TOKEN-none}|${CARILLON_TOKEN_FILE-none}"'
    )
    told = subprocess.run(
        ["sh", "-c", script, str(tmp_path / "ci.env")], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() == "c1|s/1+=|demo|none|none"
