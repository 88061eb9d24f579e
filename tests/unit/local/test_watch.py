from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.local.live_view import LagSummary, SeenRun, Watch

STARTED_AT = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
WARM_AT = STARTED_AT + timedelta(seconds=30)


def answer(offset_seconds: float, status: str = "succeeded", **more: Any) -> dict[str, Any]:
    fire_at = WARM_AT + timedelta(seconds=offset_seconds)
    return {
        "run_id": f"job.{fire_at:%H%M%S}",
        "fire_at": f"{fire_at:%Y-%m-%dT%H:%M:%SZ}",
        "status": status,
        "attempt": 1,
        "updated_at": f"{fire_at:%Y-%m-%dT%H:%M:%S}.300Z",
        "lag_seconds": 0.25,
        "error": None,
        "reason": None,
        "covers_count": None,
        "kind": "scheduled",
        "redrive": 0,
        **more,
    }


def seen(offset_seconds: float, status: str = "succeeded", **more: Any) -> SeenRun:
    return SeenRun.from_answer("beat", answer(offset_seconds, status, **more))


def test_a_run_is_news_once_per_state_and_the_earliest_comes_first() -> None:
    watch = Watch(STARTED_AT, WARM_AT)
    assert [run.fire_at for run in watch.news([seen(10), seen(5)])] == [
        WARM_AT + timedelta(seconds=5),
        WARM_AT + timedelta(seconds=10),
    ]
    assert watch.news([seen(10), seen(5)]) == []


def test_every_attempt_of_a_failing_run_is_news() -> None:
    watch = Watch(STARTED_AT, WARM_AT)
    looks = [
        seen(5, "retrying"),
        seen(5, "running", attempt=2),
        seen(5, "retrying", attempt=2),
        seen(5, "dead", attempt=3),
    ]
    news = [run for look in looks for run in watch.news([look])]
    assert [(run.status, run.attempt) for run in news] == [
        ("retrying", 1),
        ("retrying", 2),
        ("dead", 3),
    ]
    assert watch.lags == [0.25]  # its first start counts, once


def test_what_ended_before_the_start_is_no_news() -> None:
    watch = Watch(STARTED_AT, WARM_AT)
    assert watch.news([seen(-60)]) == []


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (seen(5, kind="callback", lag_seconds=9.0), "callback"),
        (seen(6, redrive=1, lag_seconds=60.0), "redrive"),
        (
            seen(-600, updated_at="2026-11-20T12:00:20Z", lag_seconds=590.0),
            "lag 590.000 s  catch-up",
        ),
        (seen(-10, lag_seconds=2.0), "lag  2.000 s  not warm yet"),
        (
            seen(
                -60,
                "skipped",
                reason="missed",
                covers_count=12,
                lag_seconds=None,
                updated_at="2026-11-20T12:00:20Z",
            ),
            "missed: covers 12 occurrences",
        ),
    ],
)
def test_what_is_not_of_its_own_time_is_news_and_marked_but_has_no_lag(
    run: SeenRun, told: str
) -> None:
    watch = Watch(STARTED_AT, WARM_AT)
    assert watch.news([run]) == [run]
    assert watch.line(run, WARM_AT).endswith(told)
    assert watch.lags == []


def test_a_line_tells_name_fire_time_status_attempt_lag_and_error() -> None:
    run = seen(5, "dead", attempt=3, error={"kind": "ValueError", "message": "as asked"})
    line = Watch(STARTED_AT, WARM_AT).line(run, WARM_AT + timedelta(seconds=9))
    expected = "12:00:39 beat fire 12:00:35 dead attempt 3 lag 0.250 s ValueError: as asked"
    assert " ".join(line.split()) == expected


def test_the_summary_of_lags() -> None:
    summary = LagSummary.of([0.1, 0.4, 0.2, 0.3])
    assert summary is not None
    assert (summary.count, summary.least, summary.most) == (4, 0.1, 0.4)
    assert summary.median == 0.25
    assert summary.kept
    assert "4 runs on time: lag median 0.250 s, max 0.400 s, min 0.100 s" in str(summary)


def test_one_early_or_late_run_breaks_the_promise() -> None:
    for lags in ([0.1, -0.01], [0.1, 1.51]):
        summary = LagSummary.of(lags)
        assert summary is not None
        assert not summary.kept
        assert str(summary).endswith("BROKEN")


def test_no_runs_no_summary() -> None:
    assert LagSummary.of([]) is None
