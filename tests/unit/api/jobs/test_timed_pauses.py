"""Pauses until an instant, as requests ask for them."""

from datetime import timedelta

import pytest

from carillon.clock import utc_text as text_of
from carillon.domain.job import Job, JobState
from tests.unit.api.conftest import NOW, World, create
from tests.unit.api.gateway import OWNER, Client


def test_a_pause_lasts_until_an_instant(client: Client) -> None:
    """It resumes by itself then; a second pause moves the instant, or takes it away."""
    job_id = create(client)["job_id"]
    later = text_of(NOW.replace(microsecond=0) + timedelta(hours=2))

    paused = client.post(
        f"/jobs/{job_id}/pause", {"until": "2026-03-01T14:00:00+01:00", "reason": "release"}
    )
    assert (paused.status, paused.json["resume_at"]) == (200, "2026-03-01T13:00:00Z")
    moved = client.post(f"/jobs/{job_id}/pause", {"until": later}).json
    assert (moved["resume_at"], moved["note"]) == (later, "release")
    assert client.post(f"/jobs/{job_id}/pause").json["resume_at"] is None
    assert client.post(f"/jobs/{job_id}/pause").json["revision"] == 4


@pytest.mark.parametrize("until", ["2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z", "noon", 5])
def test_the_end_of_a_pause_lies_ahead(client: Client, until: object) -> None:
    job_id = create(client)["job_id"]

    refused = client.post(f"/jobs/{job_id}/pause", {"until": until})

    assert (refused.status, refused.fields) == (422, ["until"])
    assert client.get(f"/jobs/{job_id}").json["state"] == "active"


def test_a_resumption_that_is_overdue_loses_nothing(client: Client, world: World) -> None:
    """Its owner resumes the job, or pauses it again, when no executor has come for it yet."""
    ids = [create(client, key=str(number))["job_id"] for number in range(2)]
    until = NOW.replace(microsecond=0) + timedelta(minutes=2)
    for job_id in ids:
        client.post(f"/jobs/{job_id}/pause", {"until": text_of(until)})
    world.clock.advance(200)

    client.post(f"/jobs/{ids[0]}/resume")
    client.post(f"/jobs/{ids[1]}/pause")

    for job_id, state in zip(ids, (JobState.ACTIVE, JobState.PAUSED), strict=True):
        job = world.jobs.get(OWNER, job_id)
        assert job is not None
        assert (job.state, job.generation.from_at) == (state, until - timedelta(seconds=1))
    # Who pauses has not resumed.
    noted = client.get(f"/jobs/{ids[1]}/changes").json["items"]
    told = {each["action"]: (each["by"]["kind"], each["note"]) for each in noted}
    assert told["resume"] == ("system", "its pause was to end then")


def test_a_change_counts_from_now_on_though_a_resumption_is_overdue(
    client: Client, world: World
) -> None:
    """It would have counted from the end of the pause, with more runs than `max_runs` allows."""
    job_id = create(client)["job_id"]
    until = NOW.replace(microsecond=0) + timedelta(minutes=2)
    client.post(f"/jobs/{job_id}/pause", {"until": text_of(until)})
    world.clock.advance(200)
    other = {"schedule": "every 5s", "max_runs": 3, "catch_up": "all"}

    refused = client.patch(f"/jobs/{job_id}", other, "*")
    assert (refused.status, "its pause is over" in refused.json["detail"]) == (503, True)
    assert client.patch(f"/jobs/{job_id}", {"description": "as it fires"}, "*").status == 200
    client.post(f"/jobs/{job_id}/resume")
    assert client.patch(f"/jobs/{job_id}", other, "*").status == 200

    job = world.jobs.get(OWNER, job_id)
    assert job is not None
    assert len(list(job.schedule.between(job.generation.from_at, NOW + timedelta(days=1)))) == 3


def test_the_end_of_a_pause_of_many_is_judged_once(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a call that takes a while would be refused with half of the jobs paused."""
    ids = [create(client, key=str(number))["job_id"] for number in range(2)]
    until = text_of(NOW.replace(microsecond=0) + timedelta(seconds=65))
    replaced = world.jobs.replace

    def slow(job: Job, revision: int) -> bool:
        world.clock.advance(10)
        return replaced(job, revision)

    monkeypatch.setattr("carillon.api.jobs.bulk_service.PAGE_SIZE", 1)
    monkeypatch.setattr(world.jobs, "replace", slow)
    paused = client.send("POST", "/jobs/pause", {"until": until}, query={"all": "true"})

    assert (paused.status, paused.json["changed"]) == (200, 2)
    assert {client.get(f"/jobs/{each}").json["resume_at"] for each in ids} == {until}


def test_it_is_judged_though_there_is_no_job_to_pause(client: Client) -> None:
    late = {"until": "2040-01-01T00:00:00Z"}
    assert client.send("POST", "/jobs/pause", late, query={"parent": "none"}).fields == ["until"]
