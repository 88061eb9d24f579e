import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.deployment import DeploymentFailed, run
from infra.local.processes import Family
from infra.local.run import AlreadyRunning, holding


def test_a_failed_command_shows_the_end_of_its_own_output(tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    environment = dict(os.environ)
    run([sys.executable, "-c", "print('before')"], environment, log_path)
    with pytest.raises(DeploymentFailed, match=r"ended with code 3:\nno such bucket$"):
        run(["sh", "-c", "echo no such bucket; exit 3"], environment, log_path)
    assert log_path.read_text() == "before\nno such bucket\n"


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """SIGINT interrupts, also where it is ignored from birth, as in a shell's background job."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupts")
def test_an_interrupted_command_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = ["sh", "-c", f"sleep 600 & echo $$ > {pids}; wait"]
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def interrupt() -> None:
        while not (pids.exists() and pids.read_text().strip()):
            time.sleep(0.01)
        signal.pthread_kill(main_thread, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        run(command, dict(os.environ), tmp_path / "log")
    interrupter.join()
    family = Family(int(pids.read_text().split()[0]), mark="none")
    give_up_at = time.monotonic() + 5
    while family.members():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_two_local_stacks_cannot_share_a_state(tmp_path: Path) -> None:
    with holding(tmp_path), pytest.raises(AlreadyRunning), holding(tmp_path):
        pass
    with holding(tmp_path):
        pass
