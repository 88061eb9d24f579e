"""Tasks that behave as badly as tasks can; only child processes of tests import this."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from carillon.tasks import Fail, Retry, TaskContext, task


@task
def nothing(payload: Any, context: TaskContext) -> None:
    """Return nothing."""


@task
def object_as_result(payload: Any, context: TaskContext) -> object:
    return {"a", "b"} & {"a"}


@task
def own_pid(payload: Any, context: TaskContext) -> int:
    return os.getpid()


@task
def spin(payload: Any, context: TaskContext) -> None:
    """Never end, and never look at the time. Writes the pid first, if asked where."""
    if payload is not None:
        _write_pids(payload, os.getpid())
    while True:
        pass


@task
def hold_interpreter(payload: Any, context: TaskContext) -> None:
    """Never end, in C code that lets no other thread run."""
    _write_pids(payload, os.getpid())
    re.match(r"(a+)+$", "a" * 60 + "b")


@task
def spin_with_offspring(payload: Any, context: TaskContext) -> None:
    offspring = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _write_pids(payload, os.getpid(), offspring.pid)
    while True:
        time.sleep(0.01)


@task
def spin_with_sessions(payload: Any, context: TaskContext) -> None:
    """Start what leaves this session: a child, and an orphan that has dropped its environment."""
    _write_pids(payload, os.getpid(), *_leave_session())
    while True:
        time.sleep(0.01)


@task
def die_beside_sessions(payload: Any, context: TaskContext) -> None:
    _write_pids(payload, os.getpid(), *_leave_session(orphans_environment=None))
    os._exit(3)


@task
def leave_children(payload: Any, context: TaskContext) -> int:
    """Start so many and wait for none."""
    for _ in range(payload):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
    return os.getpid()


@task
def environment(payload: Any, context: TaskContext) -> list[str]:
    return sorted(os.environ)


@task
def segfault(payload: Any, context: TaskContext) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


@task
def die_beside_fork(payload: Any, context: TaskContext) -> None:
    """Die while a fork of this process keeps its descriptors open."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    _write_pids(payload, pid)
    os._exit(3)


@task
def return_twice(payload: Any, context: TaskContext) -> str:
    """Return from a fork, too."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return "parent" if pid else "fork"


@task
def write_everywhere(payload: Any, context: TaskContext) -> str:
    print('{"number": 1, "result": "spoof", "error": null}')  # noqa: T201
    print("caf\u00e9 \ud800")  # noqa: T201
    os.write(1, b"to descriptor 1\n")
    os.write(2, b"to descriptor 2\n")
    return "done"


@task
def read_input(payload: Any, context: TaskContext) -> str:
    return sys.stdin.read()


@task
def log(payload: Any, context: TaskContext) -> None:
    context.logger.info("counted", extra={"rows": 12})


@task
def close_standard_error(payload: Any, context: TaskContext) -> None:
    sys.stderr.close()


@task
def leave_a_thread(payload: Any, context: TaskContext) -> None:
    """Leave a thread behind that prints and logs ever after, as a pool or a flusher may."""

    def go_on() -> None:
        while True:
            print("left behind")  # noqa: T201
            context.logger.warning("left behind")
            time.sleep(0.01)

    threading.Thread(target=go_on, daemon=True).start()


@task
def recurse(payload: Any, context: TaskContext) -> Any:
    return recurse(payload, context)


@task
def deep_result(payload: Any, context: TaskContext) -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@task
def huge_result(payload: Any, context: TaskContext) -> str:
    return "x" * 30_000_000


@task
def huge_error(payload: Any, context: TaskContext) -> None:
    raise ValueError("x" * 30_000_000)


@task
def leave(payload: Any, context: TaskContext) -> None:
    sys.exit("enough")


@task
def come_back(payload: Any, context: TaskContext) -> None:
    raise Retry(after=payload["seconds"], reason="no lock yet")


@task
def give_up(payload: Any, context: TaskContext) -> None:
    raise Fail(payload)


@task
def die_later(payload: Any, context: TaskContext) -> int:
    """Return, and die a little later while no call is running."""
    threading.Timer(0.05, os._exit, [9]).start()
    return os.getpid()


def _write_pids(path: str, *pids: int) -> None:
    with open(path + ".part", "w") as file:
        file.write(" ".join(str(pid) for pid in pids))
    os.rename(path + ".part", path)


def _leave_session(
    orphans_environment: Mapping[str, str] | None = MappingProxyType({}),
) -> list[int]:
    """The pids of a child and of an orphan, each in a session of its own."""
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeping, start_new_session=True)
    starter = (
        "import subprocess, sys; "
        "print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=2).pid)"
    )
    orphan = subprocess.run(
        [sys.executable, "-c", starter, *sleeping],
        start_new_session=True,
        env=orphans_environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [child.pid, int(orphan.stdout)]
