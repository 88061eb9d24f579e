from datetime import UTC, datetime, timedelta

from carillon.local.samples import sample_jobs
from carillon.schedules import parse_schedule

NOW = datetime(2026, 11, 20, 12, 0, 0, 700_000, tzinfo=UTC)
URL = "http://127.0.0.1:4567/hook"


def test_a_second_start_registers_only_the_one_shots_anew() -> None:
    first = {sample.idempotency_key: sample.body for sample in sample_jobs(NOW, URL)}
    again = {
        sample.idempotency_key: sample.body
        for sample in sample_jobs(NOW + timedelta(minutes=5), URL)
    }
    shared = first.keys() & again.keys()
    assert {first[key]["name"] for key in shared} == {
        "heartbeat", "riga-minute", "webhook", "spread", "overlap"
    }  # fmt: skip
    assert all(first[key] == again[key] for key in shared)


def test_the_second_of_two_occurrences_comes_while_the_first_is_active() -> None:
    (body,) = (sample.body for sample in sample_jobs(NOW, URL) if sample.name == "overlap")
    schedule = parse_schedule(body["schedule"], "UTC", None, None)

    _, first, second, third = schedule.between(NOW, NOW + timedelta(minutes=1))

    slept = timedelta(seconds=body["payload"]["seconds"])
    # Half a second at least for what comes around it, and the limit of 5 s of the local stack.
    assert second - first < slept - timedelta(seconds=0.5)
    assert slept < timedelta(seconds=4.5) < third - second
    assert (body["overlap"], body["priority"]) == ("skip", "low")


def test_the_end_of_the_one_that_fails_is_told_to_the_receiver() -> None:
    bodies = {sample.name: sample.body for sample in sample_jobs(NOW, URL)}
    assert bodies["always-fails"]["on_failure"] == bodies["webhook"]["target"]


def test_one_shots_are_ahead() -> None:
    schedules = {sample.name: sample.body["schedule"] for sample in sample_jobs(NOW, URL)}
    assert schedules["one-shot"] == "at 2026-11-20T12:00:20"
    assert schedules["always-fails"] == "at 2026-11-20T12:00:10"
