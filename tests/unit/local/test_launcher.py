import threading
from types import ModuleType

import pytest

from carillon.local.launcher import keep_poller_awake, shorten_rule_sweep

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
