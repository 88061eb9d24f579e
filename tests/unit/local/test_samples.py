from datetime import UTC, datetime, timedelta

from infra.local.samples import sample_jobs

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
        "heartbeat", "riga-minute", "webhook", "spread"
    }  # fmt: skip
    assert all(first[key] == again[key] for key in shared)


def test_one_shots_are_ahead() -> None:
    schedules = {sample.name: sample.body["schedule"] for sample in sample_jobs(NOW, URL)}
    assert schedules["one-shot"] == "at 2026-11-20T12:00:20"
    assert schedules["always-fails"] == "at 2026-11-20T12:00:10"
