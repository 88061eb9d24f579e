"""`carillon top` in a pseudo terminal: it shows what runs, and gives the terminal back."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.unit.cli.conftest import FakeApi
from tests.unit.cli.test_new_commands import PICTURE

_SECONDS = 30.0


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "Ctrl-C"])
def test_top_ends_at_a_key_and_restores_the_terminal(
    api: FakeApi, tmp_path: Path, key: bytes
) -> None:
    for path, answer in PICTURE.items():
        api.answer("GET", path, answer)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    settings = {"CARILLON_API_URL": api.url, "CARILLON_TOKEN": "t", "TERM": "xterm-256color"}
    top = subprocess.Popen(
        [sys.executable, "-m", "carillon.cli.main", "top"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, **settings, "XDG_CONFIG_HOME": str(tmp_path)},
        # Ctrl-C interrupts whom the terminal belongs to.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    try:
        shown = _read(ours, b"sync")
        assert b"nightly [red]" in shown
        assert termios.tcgetattr(theirs) != before
        os.write(ours, key)
        rest = _read(ours, b"\x1b[?1049l")
        assert top.wait(_SECONDS) == 0
        assert b"\x1b[?25h" in rest + _read(ours, b"")
        assert termios.tcgetattr(theirs) == before
    finally:
        top.kill()
        top.wait()
        os.close(ours)
        os.close(theirs)


def _read(terminal: int, until: bytes) -> bytes:
    """What is shown until this is; for b"", what is there to read."""
    shown, end = b"", time.monotonic() + _SECONDS
    while not until or until not in shown:
        if not select.select([terminal], [], [], end - time.monotonic() if until else 0)[0]:
            assert not until, shown
            break
        shown += os.read(terminal, 65_536)
    return shown
