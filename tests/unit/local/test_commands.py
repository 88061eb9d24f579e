import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from carillon.local.deployment import DeploymentFailed, run
from carillon.local.emulator import Family
from carillon.local.run import AlreadyRunning, holding


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
    give_up_at = time.monotonic() + 60
    while family.members():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_stack_that_a_script_put_into_the_background_ends_by_signals(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    """A shell ignores SIGINT for it, and so do its children, unless it says otherwise."""
    program = (
        "import subprocess, sys, time; from carillon.local import run\n"
        "def serve(*_):\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        "    print(child.pid, flush=True); time.sleep(600)\n"
        "run._run = serve\n"
        f"sys.exit(run.main(['--state-directory', {str(tmp_path)!r}]))"
    )
    ignoring = 'trap "" INT; exec "$@"'
    stack = subprocess.Popen(
        ["sh", "-c", ignoring, "sh", sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert stack.stdout is not None
    assert stack.stdout.readline().strip().isdigit()

    # As a terminal does, and `kill -INT -- -$pid` of a script: to the whole group.
    os.killpg(stack.pid, signal_number)

    told, _ = stack.communicate(timeout=20)
    assert (stack.returncode, told.startswith("Stopped.")) == (0, True)
    assert Family(stack.pid, mark="none").members() == []


def test_two_local_stacks_cannot_share_a_state(tmp_path: Path) -> None:
    with holding(tmp_path), pytest.raises(AlreadyRunning), holding(tmp_path):
        pass
    with holding(tmp_path):
        pass
