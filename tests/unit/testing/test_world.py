"""Jobs in the world of a test: what applies, passes, fails and is refused."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from carillon.tasks import Fail, Retry, TaskContext, task
from carillon.testing.refusals import RefusedError
from carillon.testing.times import Span, When
from carillon.testing.webhooks import Answer
from carillon.testing.world import World, options_of

TASK = {"type": "task", "name": "work"}
HOOK = {"type": "webhook", "url": "https://example.com/hook"}
CLOSED = {"name": "closed"}
RETRY = {"max_attempts": 3, "backoff": {"type": "fixed", "base_seconds": 60}}


def statuses(carillon: World, name: str) -> list[str]:
    return [run.status.value for run in carillon.runs(name)]


def times(carillon: World, name: str) -> list[str]:
    return [f"{run.fire_at:%d %H:%M}" for run in carillon.runs(name)]


@pytest.mark.carillon(start="2027-03-01", zone="Europe/Riga")
def test_a_month_with_a_clock_change_takes_less_than_two_seconds(carillon: World) -> None:
    carillon.put("nightly", schedule="30 3 * * *", timezone="Europe/Riga", target=HOOK)
    began = time.process_time()
    carillon.run_until("2027-04-01")
    assert time.process_time() - began < 2
    assert statuses(carillon, "nightly") == ["succeeded"] * 31
    assert times(carillon, "nightly")[26:29] == ["27 01:30", "28 01:00", "29 00:30"]
    assert max(run.lag_seconds or 0 for run in carillon.runs("nightly")) <= 0.1


@pytest.mark.carillon(start="2027-03-28T00:00", zone="Europe/Riga")
def test_an_instant_is_that_of_its_zone_and_still_happens(carillon: World) -> None:
    carillon.put("early", schedule="0 * * * *", target=HOOK)
    carillon.run_until("2027-03-28T04:00")
    assert carillon.now == datetime(2027, 3, 28, 1, tzinfo=UTC)
    carillon.run_until("2027-03-28T04:00", zone="UTC")
    carillon.run_until(datetime(2027, 3, 28, 5, tzinfo=UTC))
    assert times(carillon, "early") == ["27 23:00", *(f"28 0{hour}:00" for hour in range(6))]


def test_what_is_due_at_the_beginning_is_what_comes_after_it(carillon: World) -> None:
    carillon.put("often", schedule="* * * * *", target=HOOK)
    carillon.run_for("PT3M")
    assert times(carillon, "often") == ["01 00:01", "01 00:02", "01 00:03"]


def test_a_manifest_is_applied_from_a_file_or_a_document(carillon: World, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("jobs: {hourly: {schedule: '@hourly', target: {type: task, name: work}}}")
    carillon.apply(file)
    assert carillon.job("hourly").managed_by == "manifest/test"
    carillon.run_for("1h")
    carillon.apply(
        {
            "manifest": "test",
            "calendars": {"closed": {"dates": ["2027-01-01"]}},
            "jobs": {"hourly": {"schedule": "@hourly", "target": HOOK, "calendar": CLOSED}},
        }
    )
    carillon.run_for("1h")
    assert [(run.status.value, run.reason) for run in carillon.runs("hourly")] == [
        ("dead", "refused"),
        ("skipped", "calendar"),
    ]


def test_of_a_large_manifest_nothing_is_half_applied(carillon: World) -> None:
    jobs = {f"job-{number}": {"schedule": "@hourly", "target": HOOK} for number in range(1_000)}
    jobs |= {"late": {"after": "job-0", "target": HOOK}}
    with pytest.raises(RefusedError, match=r"jobs\.bad\.target is required"):
        carillon.apply({"jobs": {**jobs, "bad": {"schedule": "@hourly"}}})
    with pytest.raises(RefusedError, match="jobs: none"):
        carillon.job("job-0")
    carillon.apply({"jobs": jobs})
    assert carillon.job("late").after


def test_jobs_are_paused_resumed_run_and_deleted(carillon: World) -> None:
    carillon.put("hourly", schedule="@hourly", target=HOOK)
    carillon.pause("hourly")
    carillon.run("hourly")
    carillon.run_for("90m")
    assert [run.kind.value for run in carillon.runs("hourly")] == ["manual"]
    assert carillon.job("hourly").state.value == "paused"
    carillon.resume("hourly")
    carillon.run_for("1h")
    carillon.delete("hourly")
    carillon.run_for("3h")
    assert times(carillon, "hourly") == ["01 00:00", "01 02:00"]


def test_changes_are_told_as_events(carillon: World) -> None:
    carillon.put("hourly", schedule="@hourly", target=HOOK, events=["job.changed", "job.paused"])
    carillon.pause("hourly")
    carillon.delete("hourly")
    told = [(event["type"], event["data"].get("action")) for event in carillon.events]
    assert told == [
        ("carillon.job.changed", "create"),
        ("carillon.job.changed", "pause"),
        ("carillon.job.paused", None),
        ("carillon.job.changed", "delete"),
    ]


def test_a_run_by_hand_takes_a_payload_of_its_own(carillon: World) -> None:
    got: list[Any] = []
    carillon.on_webhook(HOOK["url"], lambda call: got.append(call.payload))
    carillon.put("hourly", schedule="@hourly", target=HOOK, payload={"n": 1})
    asked = carillon.run("hourly", payload={"n": 2}, note="again")
    carillon.run("hourly", payload=None)
    carillon.run("hourly")
    carillon.run_for("1m")
    assert (asked.payload_overridden, asked.request_note) == (True, "again")
    assert sorted(map(repr, got)) == ["None", "{'n': 1}", "{'n': 2}"]
    with pytest.raises(RefusedError, match="run: payloads"):
        carillon.run("hourly", payloads={})


@pytest.mark.parametrize("target", [TASK, HOOK])
def test_a_result_is_whole_where_its_job_keeps_it_so(carillon: World, target: Any) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> str:
        return "x" * 2_000

    carillon.on_webhook(HOOK["url"], lambda call: Answer(200, "x" * 2_000))
    carillon.put("whole", schedule="@hourly", target=target, result="full")
    carillon.put("cut", schedule="@hourly", target=target)
    carillon.run_for("1h")
    (whole,), (beginning,) = carillon.runs("whole"), carillon.runs("cut")
    assert "x" * 2_000 in (whole.result or "")
    assert "x" * 400 in (beginning.result or "")
    assert "x" * 600 not in (beginning.result or "")


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Answer(200, {"ok": True}),  # type: ignore[arg-type]
        lambda: Answer(200, b"ok"),  # type: ignore[arg-type]
        lambda: Answer(503, "busy", {"Retry-After": 90}),  # type: ignore[dict-item]
        lambda: Answer("503"),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_is_none_ends_the_test_and_says_why(carillon: World, answer: Any) -> None:
    carillon.on_webhook(HOOK["url"], lambda call: answer())
    carillon.put("hourly", schedule="@hourly", target=HOOK)
    with pytest.raises(TypeError, match=r"such as Answer\(503, 'busy', {'Retry-After': '90'}\)"):
        carillon.run_for("1h")


def test_failures_come_as_often_as_asked(carillon: World) -> None:
    carillon.put("hourly", schedule="@hourly", target=HOOK, retry=RETRY, events=["run.dead"])
    carillon.fail("hourly", times=4, error="http_503")
    carillon.run_for("130m")
    dead, good = carillon.runs("hourly")
    assert (dead.status, dead.attempt, good.status, good.attempt) == ("dead", 3, "succeeded", 2)
    assert dead.error is not None
    assert (dead.error.kind, dead.error.message) == ("http_503", "the endpoint answered 503")
    assert carillon.dead_letters() == [dead]
    assert [event["type"] for event in carillon.events] == ["carillon.run.dead"]


@pytest.mark.parametrize(
    ("error", "status", "kind", "attempts"),
    [
        ("http_404", "dead", "http_404", 1),
        ("broken", "succeeded", None, 2),
        ("timeout", "succeeded", None, 2),
        (Fail("never"), "dead", "fail", 1),
        (Retry(after=timedelta(minutes=30)), "succeeded", None, 2),
        (KeyError("x"), "succeeded", None, 2),
    ],
)
def test_an_error_has_the_effect_that_it_has_in_a_deployment(
    carillon: World, error: str | Exception, status: str, kind: str | None, attempts: int
) -> None:
    carillon.put("hourly", schedule="@hourly", target=HOOK, retry=RETRY)
    carillon.fail("hourly", error=error)
    carillon.run_for("100m")
    (run,) = carillon.runs("hourly")
    assert (run.status.value, run.attempt) == (status, attempts)
    assert (run.error.kind if run.error else None) == kind
    waited = 1800 if isinstance(error, Retry) else 60
    if attempts == 2:
        first, second = run.attempts
        assert first.finished_at is not None
        assert second.started_at - first.finished_at == timedelta(seconds=waited)


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("all", ["02:00", "02:30", "03:00", "03:30"]),
        ("latest", ["02:00", "03:00", "03:30"]),
        ("skip", ["02:00", "03:30"]),
    ],
)
@pytest.mark.parametrize("part", ["ticks", "executors"])
def test_an_outage_is_caught_up(
    carillon: World, part: str, catch_up: str, expected: list[str]
) -> None:
    carillon.put("half", schedule="*/30 * * * *", target=HOOK, catch_up=catch_up)
    carillon.run_until("01:59")
    carillon.outage(part, "02:10", "PT1H")
    carillon.run_until("03:40")
    ran = [run for run in carillon.runs("half") if run.status == "succeeded"]
    assert [f"{run.fire_at:%H:%M}" for run in ran][-len(expected) :] == expected
    assert len(ran) == len(expected) + 3


@pytest.mark.carillon(seed=3, faults={"target_fails": 0.5, "duplicated": 0.2})
def test_faults_are_drawn(carillon: World) -> None:
    carillon.put("often", schedule="every 10m", target=HOOK)
    carillon.run_for("5h")
    assert 0 < statuses(carillon, "often").count("dead") < 30


def history(seed: int, tmp_path: Path) -> tuple[list[Any], Any]:
    faults = {"target_fails": 0.3, "tick_late": 0.5, "duplicated": 0.2}
    world = World(tmp_path, options_of({"seed": seed, "faults": faults}))
    world.put("often", schedule="every 10m", target=HOOK, retry={"max_attempts": 3})
    world.run_for("3h")
    found = world.runs("often"), world.dead_letters()
    world.close()
    return found


def test_the_same_seed_gives_the_same_result_and_another_another(tmp_path: Path) -> None:
    assert history(1, tmp_path) == history(1, tmp_path)
    assert history(1, tmp_path) != history(2, tmp_path)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.put("a", schedule="@hourly", tarjet=HOOK), "tarjet is not a known field"),
        (lambda c: c.put("a", schedule="0 25 * * *", target=HOOK), "no hour: use 0-23"),
        (lambda c: c.pause("syn"), "pause: no job is called 'syn'; jobs: sync"),
        (lambda c: c.runs("syn"), "runs: no job is called 'syn'; jobs: sync"),
        (lambda c: c.apply("no.yaml"), "apply: no.yaml in .* cannot be read"),
        (lambda c: c.apply({"job": {}}), "job is not a known member: a manifest has"),
        (lambda c: c.apply({"jobs": {"a": {"schedule": "@hourly"}}}), "jobs.a.target is required"),
        (lambda c: c.apply({"jobs": {1: {"schedule": "@hourly"}}}), "apply: jobs.1 must be text"),
        (
            lambda c: c.apply({"jobs": {"a": {"payload": [float("nan")]}}}),
            "apply: jobs.a.payload is not JSON: Out of range",
        ),
        (lambda c: c.put("a", payload={1, 2}), r"put\('a'\): payload is not JSON: .* set "),
        (
            lambda c: c.put("a", payload={"at": datetime(2027, 2, 1)}),
            "payload is not JSON: .*dateti",
        ),
        (lambda c: c.run("sync", payload=datetime(2027, 2, 1)), "run: payload is not JSON"),
        (lambda c: c.put("a", payload="\ud800"), "payload is not JSON: .*surrogates"),
        (lambda c: c.run("sync", payload={1, 2}), "run: payload is not JSON"),
        (lambda c: c.fail("sync", times=0), "times must be at least 1, not 0"),
        (lambda c: c.fail("sync", error=503), "a kind or an exception, not 503"),
        (lambda c: c.outage("tick", "02:00", "PT1M"), "'tick' is none of ticks, executors"),
        (lambda c: c.outage("ticks", "02:00", "20 m"), "is not a duration"),
        (lambda c: c.outage("ticks", "25:00", "PT1M"), "no time of a day"),
        (lambda c: c.run_until("2026-12-31"), "run_until: 2026-12-31 is past: it is 2027-01-01"),
        (lambda c: c.run_until("tomorrow"), "not an ISO 8601 instant"),
        (lambda c: c.run_until("02:00", zone="Europe/Rig"), "did you mean Europe/Riga"),
        (lambda c: c.run_until(datetime(2027, 2, 1)), "has no time zone"),
        (lambda c: c.run_for(timedelta()), "no duration above zero"),
        (lambda c: options_of({"sed": 1}), "'sed' is none of start, zone, seed"),
        (lambda c: World(Path(), options_of({"faults": {"dyes": 1}})), "'dyes' is none of"),
        (lambda c: World(Path(), options_of({"start": "soon"})), "not an ISO 8601 instant"),
    ],
)
def test_bad_input_is_refused_with_its_remedy(carillon: World, ask: Any, message: str) -> None:
    carillon.put("sync", schedule="@hourly", target=HOOK)
    with pytest.raises(RefusedError, match=message):
        ask(carillon)


def test_the_bounds_of_a_job_are_times_or_texts(carillon: World) -> None:
    at = datetime(2027, 1, 1, 2, tzinfo=UTC)
    bounded = {"schedule": "@hourly", "target": HOOK, "start_at": at}
    carillon.put("put", **bounded)
    carillon.apply({"jobs": {"applied": bounded}})
    carillon.run_for("3h")
    assert times(carillon, "put") == times(carillon, "applied") == ["01 02:00", "01 03:00"]


def test_a_file_is_named_with_its_line(carillon: World, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("jobs:\n  a:\n    schedule: nope\n    target: {type: task, name: work}\n")
    with pytest.raises(RefusedError, match=r"jobs\.a\.schedule .*jobs\.yaml, line 3"):
        carillon.apply(file)


def test_overlap_is_skipped(carillon: World) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> None:
        time.sleep(25)

    carillon.put("often", schedule="every 10s", target=TASK, overlap="skip", timeout_seconds=40)
    carillon.run_for("PT60S")
    skips = [(run.fire_at.second, run.reason) for run in carillon.runs("often") if run.reason]
    assert skips == [(20, "overlap"), (30, "overlap"), (50, "overlap"), (0, "overlap")]


@pytest.mark.parametrize("when", ["02:00", datetime(2027, 1, 1, 2, tzinfo=UTC)])
@pytest.mark.parametrize("length", ["PT20M", timedelta(minutes=20)])
def test_times_are_texts_or_values(carillon: World, when: When, length: Span) -> None:
    carillon.put("ten", schedule="5/10 * * * *", target=HOOK, catch_up="skip")
    carillon.outage("ticks", when, length)
    carillon.run_until("02:40")
    ran = [run.fire_at for run in carillon.runs("ten") if run.status == "succeeded"]
    assert [f"{at:%H:%M}" for at in ran[-3:]] == ["01:55", "02:25", "02:35"]


def test_a_job_runs_after_another_one_and_gets_its_result(carillon: World) -> None:
    body = {"template": True, "payload": {"of": "{{after.run_id}}", "was": "{{after.status}}"}}
    sent = list[Any]()
    carillon.on_webhook("https://example.com/report", lambda call: sent.append(call.payload))
    carillon.put("nightly", schedule="0 * * * *", target=HOOK)
    hook = {**HOOK, "url": "https://example.com/report"}
    carillon.put("report", after="nightly", target=hook, **body)
    carillon.run_for("PT2H")
    assert sent == [{"of": run.run_id, "was": "succeeded"} for run in carillon.runs("nightly")]
    assert [run.kind for run in carillon.runs("report")] == ["after", "after"]


def test_a_target_cannot_let_time_pass_but_by_sleeping(carillon: World) -> None:
    before = datetime.now(UTC)
    carillon.put("hourly", schedule="@hourly", target=HOOK)
    carillon.on_webhook(HOOK["url"], lambda call: carillon.run_for("5m"))
    with pytest.raises(RefusedError, match=r"waits by time\.sleep"):
        carillon.run_for("90m")
    assert before <= datetime.now(UTC) < before + timedelta(minutes=5)
