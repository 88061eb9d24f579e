"""Start MiniStack quickened. Runs as a script inside MiniStack's own interpreter.

MiniStack is slower than what it imitates in three places. Rules are swept every ten seconds from
the start of the process, so a minutely rule fires up to ten seconds into the minute. An idle event
source mapping looks for messages once a second, while Lambda long-polls. And each look at a queue
completes the fields of all its messages: 10 ms where 7,000 are delayed, while SQS does not mind how
many are. This script shortens the first, wakes the second, lets the third pass over messages that
are complete, and refuses to start if the names that it changes are gone.

Standard input is a pipe whose other end the starter holds: when that end closes, however the
starter died, MiniStack saves its state and stops, and what is left of the process group is ended.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
import threading
import time
from types import FunctionType, ModuleType

#: How long an orphaned MiniStack may take to save its state.
ORPHAN_GRACE_SECONDS = 20.0


def shorten_rule_sweep(eventbridge: ModuleType, interval_seconds: float) -> None:
    """Sweep scheduled rules every `interval_seconds`. Raises SystemExit if that is not possible."""
    _require_reads(eventbridge, "_scheduler_loop", "_SCHEDULER_TICK_INTERVAL")
    eventbridge._SCHEDULER_TICK_INTERVAL = interval_seconds  # type: ignore[attr-defined]


def keep_poller_awake(lambda_service: ModuleType, interval_seconds: float) -> None:
    """Wake the event source poller every `interval_seconds`, from a thread of its own.

    Raises SystemExit if the poller does not wait for the event that is set here.
    """
    _require_reads(lambda_service, "_poll_loop", "_esm_wake")
    wake = lambda_service._esm_wake
    if not isinstance(wake, threading.Event):
        _give_up(f"{lambda_service.__name__}._esm_wake is not an Event")

    def wake_for_ever() -> None:
        while True:
            time.sleep(interval_seconds)
            wake.set()

    threading.Thread(target=wake_for_ever, daemon=True, name="carillon-poller-wake").start()


def pass_over_complete_messages(sqs: ModuleType) -> None:
    """Let a look at a queue complete only messages that lack fields, as those from SNS do.

    Raises SystemExit if a look does not complete messages by the function that is changed here.
    """
    _require_reads(sqs, "_collect_msgs", "_ensure_msg_fields")
    complete = sqs._ensure_msg_fields

    def complete_if_needed(message: dict[str, object]) -> None:
        # Whoever gives both gives all: SendMessage, and a look before this one.
        if "first_receive_at" not in message or "seq" not in message:
            complete(message)

    sqs._ensure_msg_fields = complete_if_needed  # type: ignore[attr-defined]


def _require_reads(module: ModuleType, function_name: str, name: str) -> None:
    function = getattr(module, function_name, None)
    if not isinstance(function, FunctionType) or not hasattr(module, name):
        _give_up(f"{module.__name__} has no {function_name} with {name}")
    elif name not in function.__code__.co_names:
        _give_up(f"{module.__name__}.{function_name} does not read {name} any more")


def _give_up(reason: str) -> None:
    raise SystemExit(f"launcher: this MiniStack cannot be quickened: {reason}")


def stop_with_starter(orphaned: threading.Event) -> None:
    """Wait for the end of standard input, then stop this process as SIGTERM would."""
    while os.read(0, 1024):
        pass
    orphaned.set()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_SECONDS)
    _end_group()


def _end_group() -> None:
    # Only ever the group that the starter made for this process.
    if os.getpgrp() == os.getpid():
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Quicken MiniStack, then hand over to its own entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweep-seconds", type=float, required=True)
    parser.add_argument("--wake-seconds", type=float, required=True)
    options = parser.parse_args()
    sys.argv = ["ministack"]  # its entry point parses the command line too

    orphaned = threading.Event()
    threading.Thread(target=stop_with_starter, args=(orphaned,), daemon=True).start()
    shorten_rule_sweep(
        importlib.import_module("ministack.services.eventbridge"), options.sweep_seconds
    )
    keep_poller_awake(
        importlib.import_module("ministack.services.lambda_svc"), options.wake_seconds
    )
    pass_over_complete_messages(importlib.import_module("ministack.services.sqs"))
    try:
        importlib.import_module("ministack.app").main()
    finally:
        if orphaned.is_set():
            _end_group()


if __name__ == "__main__":
    main()
