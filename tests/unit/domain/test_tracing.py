"""Traces of runs: the same ids everywhere, of the form that W3C and X-Ray ask for."""

import re
from datetime import UTC, datetime

import pytest

from carillon.domain.run import RunKey, RunKind
from carillon.domain.tracing import Step, TraceContext, is_sampled, span_id, trace_id

KEY = RunKey("user/a", "job", RunKind.SCHEDULED, datetime(2026, 12, 1, 12, tzinfo=UTC))
RUN_ID = KEY.run_id


def test_ids_follow_from_the_run_alone() -> None:
    """They are in targets' logs: a change of them cuts traces of runs under way in two."""
    assert RUN_ID == "job_20261201T120000Z_scheduled_0"
    assert trace_id(RUN_ID) == "6b0eb6c0ec82227920b24b5e5715cb8f"
    assert TraceContext.of_call(RUN_ID, 1, 100).traceparent == (
        "00-6b0eb6c0ec82227920b24b5e5715cb8f-51f78ef9cef12687-01"
    )


def test_a_trace_begins_with_its_fire_time_as_x_rays_do() -> None:
    assert int(trace_id(RUN_ID)[:8], 16) == int(KEY.fire_at.timestamp())
    context = TraceContext.of_call(RUN_ID, 2, 100)
    assert context.xray == (
        f"Root=1-{context.trace_id[:8]}-{context.trace_id[8:]};Parent={context.span_id};Sampled=1"
    )


@pytest.mark.parametrize("year", [1970, 2026, 2286])
def test_whatever_the_fire_time_the_form_is_w3c_s(year: int) -> None:
    key = RunKey("user/a", "job", RunKind.MANUAL, datetime(year, 1, 2, tzinfo=UTC), "request")
    text = TraceContext.of_call(key.run_id, 1, 100).traceparent
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", text)


def test_attempts_share_the_trace_and_have_spans_of_their_own() -> None:
    contexts = [TraceContext.of_call(RUN_ID, attempt, 100) for attempt in range(1, 6)]
    assert {each.trace_id for each in contexts} == {trace_id(RUN_ID)}
    assert len({each.span_id for each in contexts}) == 5
    spans = [span_id(RUN_ID, step, attempt) for step in Step for attempt in range(6)]
    assert len({*spans}) == len(spans)


def test_other_runs_have_other_traces() -> None:
    keys = [KEY, KEY.redriven, KEY.callback, KEY.successor("other")]
    assert len({trace_id(key.run_id) for key in keys}) == 4


@pytest.mark.parametrize("percent", [1, 10, 50, 99])
def test_that_part_of_the_traces_is_kept(percent: int) -> None:
    traces = [trace_id(f"job{n}_20261201T120000Z_scheduled_0") for n in range(10_000)]
    kept = sum(is_sampled(trace, percent) for trace in traces)
    assert abs(kept / 10_000 - percent / 100) < 0.02
    assert TraceContext.of_call(RUN_ID, 1, percent).traceparent.endswith(
        "-01" if is_sampled(trace_id(RUN_ID), percent) else "-00"
    )


def test_all_are_kept_at_a_hundred_percent_and_the_least_go_first() -> None:
    """OpenTelemetry's threshold: who keeps fewer keeps some of these, and no others."""
    assert is_sampled("0" * 32, 100)
    assert not is_sampled("0" * 32, 99)
    assert is_sampled("f" * 32, 1)
