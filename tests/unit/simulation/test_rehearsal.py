"""What a rehearsal tells of a workload, beside what the recurrence engine lists by itself."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.cli.commands.simulation.live import fast_forward
from carillon.clock import utc_text
from carillon.domain.wheel.delaying import ROUNDED_UP_SECONDS
from carillon.manifest.manifest import ManifestRefusedError
from carillon.schedules import parse_schedule
from carillon.schedules.insight.cost import DEFAULT, Line, fires, idle, lasted
from carillon.simulation.faults import Faults
from carillon.simulation.run import Plan, Simulation
from tests.support.manifests import workload_of

MIDNIGHT = datetime(2026, 10, 25, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
Json = dict[str, Any]


def job(name: str = "job", schedule: Any = "*/5 * * * *", **more: Any) -> Json:
    target = {"type": "task", "name": "echo"}
    return {"name": name, "schedule": schedule, "target": target, **more}


def rehearsed(
    jobs: Sequence[Json],
    span: timedelta = 6 * HOUR,
    *,
    simulate: Json | None = None,
    calendars: Json | None = None,
    **plan: Any,
) -> Json:
    """The summary at the end."""
    workload = workload_of(jobs, simulate=simulate, calendars=calendars)
    simulation = Simulation(workload, Plan(MIDNIGHT, MIDNIGHT + span, **plan))
    fast_forward(simulation, lambda: True)
    return simulation.summary()


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("*/5 * * * *", "UTC"),
        ("0 0 * * *", "UTC"),
        ("30 2 * * *", "Europe/Berlin"),
        ("*/15 1-3 * * *", "Europe/Berlin"),
        ("every 25m offset 2m", "UTC"),
        ("every 37s", "UTC"),
        ("at 2026-10-25T05:00:00", "America/New_York"),
        (["0 * * * *", "every 90m"], "UTC"),
    ],
)
def test_what_fires_is_what_the_engine_lists(schedule: Any, zone: str) -> None:
    """From the first instant of the span on, and not at its end; over a change of the clocks."""
    value = parse_schedule(schedule, zone)
    until = MIDNIGHT + 24 * HOUR
    listed = list(value.between(MIDNIGHT - SECOND, until - SECOND))

    summary = rehearsed([job(schedule=schedule, timezone=zone)], 24 * HOUR, most_first=100)

    assert listed, "or the case shows nothing"
    (line,) = summary["jobs"]
    assert line["first"] == [utc_text(instant) for instant in listed[:100]]
    assert (line["fires"], summary["due"], summary["open"]) == (len(listed), len(listed), 0)
    assert summary["outcomes"] == {"succeeded": len(listed)}
    assert summary["lag_seconds"]["median"] == 0.0
    assert summary["lag_seconds"]["max"] <= ROUNDED_UP_SECONDS


@pytest.mark.parametrize(
    "target",
    [
        {"type": "lambda", "function_arn": "arn:aws:lambda:eu-west-1:123456789012:function:f"},
        {"type": "sqs", "queue_arn": "arn:aws-cn:sqs:cn-north-1:123456789012:q.fifo"},
        {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:t"},
        {
            "type": "batch",
            "job_definition_arn": "arn:aws:batch:eu-west-1:123456789012:job-definition/j",
            "job_queue_arn": "arn:aws:batch:eu-west-1:123456789012:job-queue/q",
        },
    ],
    ids=lambda target: target["type"],
)
def test_every_resource_of_aws_may_be_a_target(target: Json) -> None:
    summary = rehearsed([{**job(schedule="0 3 * * *"), "target": target}])

    assert summary["outcomes"] == {"succeeded": 1}


def test_a_span_may_begin_in_the_midst_of_a_minute() -> None:
    workload = workload_of([job(schedule="every 10s")])
    begin = MIDNIGHT + timedelta(seconds=30)
    simulation = Simulation(workload, Plan(begin, begin + timedelta(seconds=45)))
    fast_forward(simulation, lambda: True)

    summary = simulation.summary()
    assert summary["fires"] == 5  # 30, 40, 50, 60 and 70 s after midnight
    assert summary["lag_seconds"]["max"] <= 1.5


def test_copies_share_a_window_and_a_line() -> None:
    jobs = [job(schedule="@hourly", window="30m")]

    summary = rehearsed(jobs, simulate={"job": {"copies": 20}})

    (line,) = summary["jobs"]
    assert (line["jobs"], line["fires"], summary["job_count"]) == (20, 120, 20)
    busiest = summary["peaks"]["minutes"][0]
    assert busiest["starts"] < 10, "they are spread"
    assert busiest["jobs"] == ["job"]


def test_an_outage_of_the_ticks_is_caught_up_by_the_policy() -> None:
    """Of the 12 occurrences from 2:00 to 2:55 the last one runs, and stands for the others."""
    down = (MIDNIGHT + 2 * HOUR, MIDNIGHT + 3 * HOUR)
    policies = ("latest", "skip", "all")
    jobs = [job(policy, catch_up=policy) for policy in policies]

    summary = rehearsed(jobs, ticks_down=[down])

    lines = {line["name"]: line for line in summary["jobs"]}
    fires = {name: line["fires"] for name, line in lines.items()}
    skipped = {name: line["outcomes"].get("skipped", 0) for name, line in lines.items()}
    # What the look-ahead had announced before is not late.
    assert {name: fires[name] + skipped[name] for name in policies} == dict.fromkeys(policies, 72)
    assert skipped["all"] == 0
    assert skipped["skip"] == skipped["latest"] + 1 > 10
    assert summary["skips"] == {"catch_up": skipped["latest"] + skipped["skip"]}
    assert summary["open"] == 0


def test_an_outage_of_the_executors_only_delays() -> None:
    down = (MIDNIGHT + 2 * HOUR, MIDNIGHT + 3 * HOUR)

    summary = rehearsed([job(catch_up="all")], executors_down=[down])

    assert summary["outcomes"] == {"succeeded": 72}
    # What is due at 2:00:00 was received just before; what is due at 2:05 waits for 55 minutes.
    assert summary["lag_seconds"]["max"] == pytest.approx(3300, abs=1)


def test_what_an_outage_passes_over_counts_up_to_the_end_of_the_span() -> None:
    """The row of a catch-up covers what comes after it, too."""
    policies = ("latest", "skip", "all")
    down = (MIDNIGHT + 5 * HOUR, MIDNIGHT + 6.1 * HOUR)

    summary = rehearsed([job(policy, catch_up=policy) for policy in policies], ticks_down=[down])

    assert [sum(line["outcomes"].values()) for line in summary["jobs"]] == [72, 72, 72]
    assert (summary["due"], summary["open"]) == (216, 0)
    assert sum(summary["outcomes"].values()) == 216
    assert summary["outcomes"]["skipped"] == summary["skips"]["catch_up"] > 20


def test_calls_are_counted_for_the_occurrences_of_the_span() -> None:
    """Of the twelve the executors start two in time and the others after the end."""
    down = (MIDNIGHT + timedelta(minutes=8), MIDNIGHT + HOUR + timedelta(minutes=2))

    summary = rehearsed([job(catch_up="all")], HOUR, executors_down=[down])

    assert (summary["fires"], summary["target_calls"]) == (12, 12)
    assert sum(peak["starts"] for peak in summary["peaks"]["minutes"]) == 2


def test_callbacks_do_not_fail_as_their_job_does() -> None:
    about = {"type": "task", "name": "tell"}
    jobs = [job(on_success=about, on_failure=about, retry={"max_attempts": 1})]

    summary = rehearsed(jobs, simulate={"job": {"failure_rate": 1.0, "seconds": 3}})

    assert (summary["callbacks"], summary["target_calls"]) == (72, 144)
    assert summary["dead_letters"] == {"exhausted": 72}


@pytest.mark.parametrize("more", [{"schedule": "every 1h", "max_runs": 3}, {"max_runs": 1}])
def test_a_job_that_goes_when_it_is_complete_was_due_all_the_same(more: Json) -> None:
    summary = rehearsed([job(**{"on_complete": "delete", **more})])

    count = more["max_runs"]
    assert (summary["fires"], summary["due"], summary["open"]) == (count, count, 0)


def test_what_a_calendar_moves_back_runs_once() -> None:
    """Saturday's occurrence is Friday's, whose row is to be there on Saturday still."""
    use = {"name": "weekend", "rule": "previous_business_day"}
    jobs = [job(schedule="0 9 * * *", calendar=use)]
    weekend = {"weekend": {"weekdays": ["sat", "sun"]}}

    summary = rehearsed(jobs, 7 * 24 * HOUR, calendars=weekend)

    assert (summary["fires"], summary["target_calls"]) == (5, 5)
    assert summary["lag_seconds"]["max"] <= ROUNDED_UP_SECONDS


def test_no_fire_time_need_be_listed() -> None:
    summary = rehearsed([job()], most_first=0)

    assert (summary["fires"], summary["open"], summary["crashes"]) == (72, 0, [])
    assert summary["jobs"][0]["first"] == []


def test_targets_fail_as_often_as_they_are_told_to() -> None:
    always = rehearsed([job()], simulate={"job": {"failure_rate": 1.0, "seconds": 2}})
    often = rehearsed([job(schedule="every 1m")], simulate={"job": {"failure_rate": 0.5}})

    assert always["outcomes"] == {"dead": 72}
    assert (always["retries"], always["target_calls"]) == (144, 216)
    assert always["dead_letters"] == {"exhausted": 72}
    # Three attempts at most: 1.75 calls a fire.
    assert 1.6 < often["target_calls"] / often["fires"] < 1.9
    assert often["retries"] == often["target_calls"] - often["fires"]


def test_a_slow_target_meets_its_limit_and_the_overlap_policy() -> None:
    jobs = [
        job("late", timeout_seconds=3, retry={"max_attempts": 1}),
        job("long", schedule="every 10s", timeout_seconds=50, overlap="skip"),
    ]
    simulate = {"late": {"seconds": 60}, "long": {"seconds": 25}}

    summary = rehearsed(jobs, HOUR, simulate=simulate)

    late, long = summary["jobs"]
    assert late["outcomes"] == {"timed_out": 12}
    assert long["outcomes"] == {"succeeded": 120, "skipped": 240}
    assert summary["skips"] == {"overlap": 240}


def test_watches_and_pauses_are_told() -> None:
    jobs = [
        job("watched", expect_within="10m", retry={"max_attempts": 1}),
        job("given-up", pause_after_failures=3, retry={"max_attempts": 1}),
    ]
    simulate = {name: {"failure_rate": 1.0} for name in ("watched", "given-up")}

    summary = rehearsed(jobs, HOUR, simulate=simulate)

    watched, given_up = summary["jobs"]
    assert watched["outcomes"] == {"dead": 12}
    assert summary["missed"] >= 10  # the last looks come after the end
    assert given_up["fires"] == 3
    assert summary["paused"] == ["given-up"]


def test_calendars_close_days_and_fixed_delays_are_not_told_ahead() -> None:
    use = {"name": "holidays"}
    jobs = [job("closed", calendar=use), job("chain", schedule={"every": "10m", "after": "finish"})]

    summary = rehearsed(jobs, calendars={"holidays": {"dates": ["2026-10-25"]}})

    closed, chain = summary["jobs"]
    assert closed["outcomes"] == {"skipped": 72}
    assert summary["skips"] == {"calendar": 72}
    assert 30 <= chain["fires"] <= 36
    assert (summary["due"], summary["open"]) == (72, 0)


FAULTS = "dies=0.003,throttled=0.02,lost=0.02,stale=0.1,duplicated=0.05,late=0.01,target_fails=0.1"


@pytest.mark.parametrize("faults", [FAULTS, "tick_missing=0.1,target_fails=0.1"])
def test_faults_follow_the_seed(faults: str) -> None:
    plan: Json = {"faults": Faults.parse(faults)}
    simulate = {"job": {"copies": 5}}

    first = rehearsed([job()], seed=1, simulate=simulate, **plan)
    again = rehearsed([job()], seed=1, simulate=simulate, **plan)
    other = rehearsed([job()], seed=2, simulate=simulate, **plan)

    assert first == again
    assert first["faults"] != other["faults"]
    for summary in (first, other):
        assert summary["faults"]["target_fails"] > 0
        assert sum(summary["outcomes"].values()) == summary["due"] == 360
        assert summary["crashes"] == []


def test_an_idle_hour_costs_what_the_model_says() -> None:
    """And so do those segments that are counted without being simulated."""
    summary = rehearsed([job(schedule="0 0 1 1 *")], HOUR)

    ticks, runs, standing = (summary["usage"][name] for name in ("ticks", "runs", "standing"))
    modelled = idle(60)
    assert ticks["calls"]["wheel.put_control"] == 60 * 2 * 2
    assert ticks["write_units"] == modelled.of(Line.WRITES)
    assert ticks["read_units"] == modelled.of(Line.READS)
    assert ticks["lambda_invocations"] == 60
    assert ticks["lambda_gb_seconds"] == pytest.approx(modelled.of(Line.WORK), rel=0.1)
    assert standing["queue_requests"] == modelled.of(Line.EMPTY_RECEIVES)
    dollars = modelled.dollars_by_line[Line.ALARMS]
    assert standing["dollars"]["alarms"] == pytest.approx(dollars, abs=1e-6)
    assert ticks["dollars_total"] + standing["dollars_total"] == pytest.approx(
        modelled.dollars, rel=0.01
    )
    assert runs["dollars_total"] == 0


def test_ticks_are_billed_for_the_wait_that_executors_are_spared() -> None:
    """They begin at any fraction of a second, and wait for its last tenth."""
    summary = rehearsed(
        [job(schedule="every 1m offset 30s")], HOUR, simulate={"job": {"seconds": 0}}
    )

    def waited_seconds(usage: Json) -> float:
        a_second = lasted(Line.WAITING, 1, DEFAULT.memory_mb).dollars
        dollars: float = usage["dollars"].get(Line.WAITING, 0)
        return dollars / a_second / 60

    ticks, runs = summary["usage"]["ticks"], summary["usage"]["runs"]
    assert 0.2 < waited_seconds(ticks) < 0.5, "0.36 s in the mean, of even fractions"
    assert 0 <= waited_seconds(runs) <= 0.06


def test_a_fire_in_a_herd_costs_what_the_model_says() -> None:
    """Two writes, a read, and a tenth of what goes ten at a time."""
    simulate = {"job": {"copies": 200, "seconds": 0}}

    # Half a minute after their creation: what is due within 5 s of it is sent twice.
    summary = rehearsed([job(schedule="every 1m offset 30s")], HOUR / 4, simulate=simulate)

    runs, count = summary["usage"]["runs"], summary["fires"]
    assert count == 3_000
    assert runs["write_units"] == 2 * count
    assert runs["read_units"] == count
    assert runs["lambda_invocations"] / count == pytest.approx(0.1, rel=0.05)
    sent = summary["usage"]["ticks"]["queue_requests"]
    assert (runs["queue_requests"] + sent) / count == pytest.approx(0.3, rel=0.05)
    modelled = fires(count).dollars_by_line
    for line in (Line.WRITES, Line.LOGS, Line.INVOCATIONS):
        assert runs["dollars"][line] == pytest.approx(modelled[line], rel=0.06), line
    # The owner's name is shorter; what ticks send is the ticks' work.
    for line in (Line.STORAGE, Line.WORK):
        assert runs["dollars"][line] == pytest.approx(modelled[line], rel=0.2), line


def test_a_call_that_lasts_costs_a_read_for_each_two_seconds() -> None:
    simulate = {"job": {"seconds": 7}}

    summary = rehearsed([job(schedule="at 2026-10-25T00:30:00")], HOUR, simulate=simulate)

    assert summary["fires"] == 1
    assert summary["usage"]["runs"]["calls"]["runs.get"] == 3


def test_no_row_is_kept_longer_than_needed() -> None:
    workload = workload_of([job(schedule="every 1m", events=["run.succeeded"])])
    simulation = Simulation(workload, Plan(MIDNIGHT, MIDNIGHT + 12 * HOUR))
    stores = simulation.deployment.stores

    simulation.advance(MIDNIGHT + 12 * HOUR)

    kept = stores.runs.list("simulated", next(iter(simulation.tally.places)), 1000).items
    assert 60 <= len(kept) <= 75
    assert len(stores.events.emitted) <= 15
    assert simulation.summary()["fires"] == 720


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"schedule": "at 2020-01-01T00:00:00"}, "jobs.other.schedule"),
        ({"calendar": {"name": "nowhere"}}, "jobs.other.calendar.name"),
        ({"timeout_seconds": 800}, "jobs.other.timeout_seconds"),
        ({"payload": "x" * 300_000}, "jobs.other.payload"),
    ],
)
def test_what_the_api_refuses_is_told_before_anything_runs(more: Json, path: str) -> None:
    with pytest.raises(ManifestRefusedError) as caught:
        rehearsed([job(), job("other", **more)])
    assert [".".join(field) for field, _ in caught.value.errors] == [path]


def test_a_job_that_runs_after_another_is_rehearsed_whatever_the_order() -> None:
    after = {"after": {"job": "nightly", "when": "failed"}, "name": "alarm"}
    alarm = {**{key: value for key, value in job().items() if key != "schedule"}, **after}
    nightly = job("nightly", "0 * * * *", retry={"max_attempts": 1})
    profiles = {"nightly": {"failure_rate": 1.0}}

    summary = rehearsed([alarm, nightly], 3 * HOUR, simulate=profiles)

    assert [line["name"] for line in summary["jobs"]] == ["alarm", "nightly"]
    assert [line["fires"] for line in summary["jobs"]] == [3, 3]
    assert (summary["due"], summary["open"]) == (3, 0), "what another job starts is not foreseen"
    with pytest.raises(ManifestRefusedError) as refused:
        rehearsed([alarm])
    assert [path for path, _ in refused.value.errors] == [("jobs", "alarm", "after.job")]
