"""What `make smoke` takes for right, and for wrong."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.smoke import judging
from carillon.smoke.judging import Judge
from carillon.smoke.probes import target_of

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def run(second: int = 0, **members: Any) -> dict[str, Any]:
    at = (NOON + timedelta(seconds=second)).isoformat()
    made = {
        "kind": "scheduled",
        "status": "succeeded",
        "fire_at": at,
        "effective_at": at,
        "started_at": at,
        "updated_at": at,
        "finished_at": at,
        "lag_seconds": 0.1,
        "attempt": 1,
        "reason": None,
        "error": None,
    }
    return made | members


TIMED_OUT = run(status="timed_out", error={"kind": "timeout"})
DEAD = run(status="dead", reason="exhausted", attempt=3, error={"kind": "RuntimeError"})
CALLBACK = run(kind="callback")
RANG = run(kind="watch", status="missed", updated_at=(NOON + timedelta(seconds=61)).isoformat())
EVERY = [run(2 * n) for n in range(20)]
ONCE, KILLED = judging.one_run("succeeded"), judging.one_run("timed_out", error="timeout")
STEADY, CHAIN = judging.steady(2, 20, 3.0), judging.chain(3)
LATE = [run(2 * n, lag_seconds=4.0) for n in range(20)]
PATIENT = judging.steady(2, 20, 9.0)
SLOW_START = [run(0, lag_seconds=9.0), *EVERY[1:]]
FORKED = [run(0), run(0), run(1), run(2)]


@pytest.mark.parametrize(
    ("judge", "runs", "holds", "said"),
    [
        (ONCE, [run()], True, "succeeded, lag 0.1 s"),
        (ONCE, [DEAD], False, "dead, exhausted (RuntimeError)"),
        (ONCE, [run(), run(1)], False, "succeeded"),
        (KILLED, [TIMED_OUT], True, "timed_out (timeout)"),
        (KILLED, [run()], False, "succeeded"),
        (STEADY, EVERY, True, "20 starts, lag p50 0.10 s, p99 0.10 s, longest 0.10 s, no gap"),
        (STEADY, [*EVERY[:9], *EVERY[10:], run(40)], False, "1 gaps"),
        (STEADY, LATE, False, "p50 4.00 s"),
        (STEADY, SLOW_START, False, "longest 9.00 s"),
        (PATIENT, SLOW_START, True, "longest 9.00 s"),
        (PATIENT, LATE, False, "p50 4.00 s"),
        (CHAIN, [run(n * 2) for n in range(4)], True, "3 hops in a row, one in 2.00 s"),
        (CHAIN, FORKED, False, "3 hops"),
        (judging.missed, [DEAD, RANG], True, "told 61.0 s after"),
        (judging.missed, [DEAD, RANG, RANG], False, "told"),
        (judging.called_back, [DEAD, CALLBACK], True, "after 3 attempts; callback succeeded"),
        (judging.called_back, [DEAD | {"attempt": 2}, CALLBACK], False, "after 2"),
        (judging.called_back, [DEAD, CALLBACK | {"status": "dead"}], False, "callback dead"),
        (judging.retried_late, [run(attempt=2)], True, "after 2 attempts, ended at"),
        (judging.retried_late, [run(attempt=1)], False, "succeeded"),
    ],
)
def test_what_holds_and_what_does_not(
    judge: Judge, runs: Sequence[dict[str, Any]], holds: bool, said: str
) -> None:
    found = judge(runs)
    assert found is not None
    assert (found.holds, said in found.text) == (holds, True), found


@pytest.mark.parametrize(
    ("judge", "runs"),
    [
        (ONCE, []),
        (ONCE, [run(status="running")]),
        (KILLED, [run(status="retrying")]),
        (STEADY, EVERY[:-1]),
        (CHAIN, [run(n) for n in range(3)]),
        (judging.missed, [DEAD]),
        (judging.called_back, [DEAD]),
        (judging.called_back, [DEAD, CALLBACK | {"status": "running"}]),
        (judging.retried_late, [run(status="retrying")]),
    ],
)
def test_what_cannot_be_told_yet(judge: Judge, runs: Sequence[dict[str, Any]]) -> None:
    assert judge(runs) is None


def test_percentiles() -> None:
    ascending = [float(n) for n in range(1, 101)]
    assert judging.percentile(ascending, 0.5) == 50
    assert judging.percentile(ascending, 0.99) == 99
    with pytest.raises(ValueError, match="no values"):
        judging.percentile([], 0.5)


@pytest.mark.parametrize(
    ("arn", "kind"),
    [
        ("arn:aws:sqs:eu-west-1:1:queue", "sqs"),
        ("arn:aws:lambda:eu-west-1:1:function:f", "lambda"),
        ("arn:aws:events:eu-west-1:1:event-bus/b", "eventbridge"),
        ("arn:aws:states:eu-west-1:1:stateMachine:m", "stepfunctions"),
        ("arn:aws:sns:eu-west-1:1:topic", "sns"),
    ],
)
def test_a_target_is_made_of_an_arn(arn: str, kind: str) -> None:
    assert target_of(arn)["type"] == kind


@pytest.mark.parametrize(
    "text", ["queue", "arn:aws:s3:::bucket", "{", '{"type": "task"}', '{"a": "arn:aws:x"}']
)
def test_what_jobs_cannot_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is none of lambda|is no target|Expecting"):
        target_of(text)
