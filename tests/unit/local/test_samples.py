from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.local.samples import sample_jobs
from carillon.schedules import parse_schedule
from carillon.settings import Choices

NOW = datetime(2026, 11, 20, 12, 0, 0, 700_000, tzinfo=UTC)
URL = "http://127.0.0.1:4567/hook"


def samples(now: datetime = NOW) -> dict[str, dict[str, Any]]:
    return {body["name"]: body for body in sample_jobs(now, URL)}


def test_a_second_start_changes_only_the_one_shots() -> None:
    first, again = samples(), samples(NOW + timedelta(minutes=5))
    assert first.keys() == again.keys()
    changed = {name for name in first if first[name] != again[name]}
    assert changed == {"one-shot", "always-fails"}


def test_the_second_of_two_occurrences_comes_while_the_first_is_active() -> None:
    body = samples()["overlap"]
    schedule = parse_schedule(body["schedule"], "UTC", None, None)

    _, first, second, third = schedule.between(NOW, NOW + timedelta(minutes=1))

    slept = timedelta(seconds=body["payload"]["seconds"])
    # Half a second at least for what comes around it, and no run is slow.
    assert second - first <= slept - timedelta(seconds=0.5)
    assert slept <= timedelta(seconds=Choices().slow_after_seconds - 0.5)
    assert slept < third - second
    assert (body["overlap"], body["priority"]) == ("skip", "low")


def test_the_end_of_the_one_that_fails_is_told_to_the_receiver() -> None:
    assert samples()["always-fails"]["on_failure"] == samples()["webhook"]["target"]


def test_one_shots_are_ahead() -> None:
    assert samples()["one-shot"]["schedule"] == "at 2026-11-20T12:00:20"
    assert samples()["always-fails"]["schedule"] == "at 2026-11-20T12:00:10"
