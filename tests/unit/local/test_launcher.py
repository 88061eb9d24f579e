import threading
from types import ModuleType

import pytest

from carillon.local.launcher import (
    keep_poller_awake,
    pass_over_complete_messages,
    shorten_rule_sweep,
)

SWEEP = """
_SCHEDULER_TICK_INTERVAL = 10
def _scheduler_loop():
    return _SCHEDULER_TICK_INTERVAL
"""


def module(source: str, **names: object) -> ModuleType:
    made = ModuleType("service")
    exec(source, made.__dict__)
    made.__dict__.update(names)
    return made


def test_the_sweep_interval_is_what_the_loop_reads() -> None:
    service = module(SWEEP)
    shorten_rule_sweep(service, 0.2)
    assert service._scheduler_loop() == 0.2


@pytest.mark.parametrize(
    "source",
    [
        "_SCHEDULER_TICK_INTERVAL = 10",
        "def _scheduler_loop(): return 10",
        "_SCHEDULER_TICK_INTERVAL = 10\ndef _scheduler_loop(): return 10",
    ],
    ids=["no loop", "no interval", "interval not read"],
)
def test_a_changed_sweep_is_refused_clearly(source: str) -> None:
    with pytest.raises(SystemExit, match="cannot be quickened"):
        shorten_rule_sweep(module(source), 0.2)


def test_the_poller_is_woken_again_and_again() -> None:
    wake = threading.Event()
    keep_poller_awake(module("def _poll_loop(): _esm_wake.wait()", _esm_wake=wake), 0.001)
    for _ in range(2):
        assert wake.wait(timeout=5)
        wake.clear()


@pytest.mark.parametrize(
    "service",
    [
        module("def _poll_loop(): pass", _esm_wake=threading.Event()),
        module("def _poll_loop(): _esm_wake.wait()"),
        module("def _poll_loop(): _esm_wake.wait()", _esm_wake=object()),
    ],
    ids=["event not read", "no event", "another kind of event"],
)
def test_a_changed_poller_is_refused_clearly(service: ModuleType) -> None:
    with pytest.raises(SystemExit, match="cannot be quickened"):
        keep_poller_awake(service, 0.001)


LOOK = """
completed = []
def _ensure_msg_fields(message):
    completed.append(message["id"])
    message.setdefault("first_receive_at", None)
    message.setdefault("seq", None)
def _collect_msgs(messages):
    for message in messages:
        _ensure_msg_fields(message)
"""


def test_a_look_completes_each_message_once() -> None:
    service = module(LOOK)
    pass_over_complete_messages(service)
    sent = {"id": "sent", "seq": None, "first_receive_at": None}
    messages = [{"id": "from SNS"}, {"id": "from a rule", "seq": "1"}, sent]
    for _ in range(2):
        service._collect_msgs(messages)
    assert service.completed == ["from SNS", "from a rule"]


@pytest.mark.parametrize(
    "source",
    ["def _collect_msgs(): _ensure_msg_fields()", "def _ensure_msg_fields(message): pass"],
    ids=["nothing completes", "no look"],
)
def test_a_changed_look_is_refused_clearly(source: str) -> None:
    with pytest.raises(SystemExit, match="cannot be quickened"):
        pass_over_complete_messages(module(source))
