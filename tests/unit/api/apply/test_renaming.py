"""Jobs that a manifest renames (`was`): they go on where they were."""

from datetime import timedelta

import pytest

from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import Job, JobState
from carillon.domain.spec.names import job_id_of
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.apply.test_apply import JOBS, TASK, actions, apply, client, named, prune
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_runs import make_run, put

__all__ = ["client"]

RENAMED = {"report": JOBS["report"], "pull": {**JOBS["sync"], "was": "sync"}}


def test_a_job_is_renamed_and_goes_on_where_it_was(client: Client, world: World) -> None:
    apply(client)
    world.clock.advance(90)

    item = apply(client, RENAMED)["items"][1]

    assert (item["action"], item["changes"]) == (
        "rename",
        [{"path": "name", "before": "sync", "after": "pull"}],
    )
    assert client.get("/jobs/named/sync").status == 404
    old = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
    new = world.jobs.get(OWNER, job_id_of(OWNER, "pull"))
    assert old is not None
    assert new is not None
    assert (old.state, old.renamed_to, new.renamed_from) == (
        JobState.RENAMED,
        new.job_id,
        old.job_id,
    )
    assert old.previous is not None
    assert old.previous.until_at == new.generation.from_at, "no gap, and nothing twice"
    assert named(client, "pull")["created_at"] == "2026-03-01T12:00:00.250Z"
    assert actions(apply(client, RENAMED)) == {"report": "none", "pull": "none"}
    assert prune(client, "report", "pull")["items"] == []


def test_what_ran_under_the_former_name_is_not_missed(client: Client, world: World) -> None:
    """Nor does it become so by changes of the renamed job; what its name then does is its own."""
    apply(client)
    old_id, noon = job_id_of(OWNER, "sync"), NOW.replace(microsecond=0)
    done = [noon + timedelta(minutes=minutes) for minutes in (5, 15)]
    for fire_at in done:
        put(world, make_run(old_id, fire_at))
    world.clock.advance(1080)
    apply(client, RENAMED)
    again = client.post("/jobs", {"name": "sync", "schedule": "every 5m", "target": TASK})
    assert again.json["job_id"] == old_id
    world.clock.advance(600)
    put(world, make_run(old_id, noon + timedelta(minutes=20)))
    pull = job_id_of(OWNER, "pull")

    def missed() -> list[str]:
        items = client.get(f"/jobs/{pull}/missed").json["items"]
        return [item["fire_at"][11:16] for item in reversed(items)]

    assert missed() == ["12:10", "12:20", "12:25"]
    changed = {**RENAMED, "pull": {**RENAMED["pull"], "window": "1m"}}
    assert actions(apply(client, changed))["pull"] == "change"
    assert missed() == ["12:10", "12:20", "12:25"]


def test_nor_is_it_once_the_job_has_had_its_first_name_again(client: Client, world: World) -> None:
    """However often it was paused since: `only_missed` would run it a second time."""
    apply(client)
    world.clock.advance(120)
    apply(client, RENAMED)
    noon = NOW.replace(microsecond=0)
    for minutes in (5, 15):
        put(world, make_run(job_id_of(OWNER, "pull"), noon + timedelta(minutes=minutes)))
    world.clock.advance(960)
    apply(client, {"sync": {**JOBS["sync"], "was": "pull"}})
    sync = f"/jobs/{job_id_of(OWNER, 'sync')}"
    for _ in range(5):
        world.clock.advance(30)
        client.post(f"{sync}/pause", {"reason": "a look"})
        client.post(f"{sync}/resume")
    world.clock.advance(450)

    items = client.get(f"{sync}/missed", **{"from": "2026-03-01T12:00:00Z"}).json["items"]
    assert [item["fire_at"][11:16] for item in reversed(items)] == ["12:10", "12:20", "12:25"]


def test_nor_is_what_ran_under_the_name_before_the_former_one(client: Client, world: World) -> None:
    """What it was called first is in the row of what it was called then."""
    apply(client)
    noon, name = NOW.replace(microsecond=0), "sync"
    for minutes, following in ((5, "pull"), (10, "fetch"), (15, "load")):
        put(world, make_run(job_id_of(OWNER, name), noon + timedelta(minutes=minutes)))
        world.clock.advance(300)
        apply(client, {following: {**JOBS["sync"], "was": name}})
        name = following
    world.clock.advance(720)

    job = f"/jobs/{job_id_of(OWNER, 'load')}"
    items = client.get(f"{job}/missed", **{"from": "2026-03-01T12:00:00Z"}).json["items"]
    assert [item["fire_at"][11:16] for item in reversed(items)] == ["12:20", "12:25"]


def test_the_former_row_outlives_the_longest_waits_of_retries(client: Client, world: World) -> None:
    """They would find no job, and their runs would never end."""
    backoff = {"base_seconds": 86_400, "cap_seconds": 604_800}
    sync = {**JOBS["sync"], "retry": {"max_attempts": 9, "backoff": backoff}}
    apply(client, {"sync": sync})

    apply(client, {"pull": {**sync, "was": "sync"}})

    old = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
    assert old is not None
    assert old.expires_at is not None
    assert old.expires_at > world.clock.now() + timedelta(days=8 * 7 + 25)


@pytest.mark.parametrize(("seconds", "is_continued"), [(5, True), (59, True), (62, False)])
def test_a_renaming_that_was_interrupted_is_continued(
    client: Client, world: World, seconds: int, is_continued: bool
) -> None:
    apply(client)

    class Dying(MemoryJobStore):
        def create(self, job: Job) -> bool:
            raise StoreUnavailableError("down")

    plain = world.jobs.__class__
    world.jobs.__class__ = Dying
    assert actions(apply(client, RENAMED))["pull"] == "unavailable"
    world.jobs.__class__ = plain
    world.clock.advance(seconds)

    assert actions(apply(client, RENAMED))["pull"] == "rename"

    old = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
    new = world.jobs.get(OWNER, job_id_of(OWNER, "pull"))
    assert old is not None
    assert new is not None
    assert (new.generation.from_at == old.generation.from_at) is is_continued


@pytest.mark.parametrize(
    ("members", "runs"),
    [({"schedule": "every 5s", "max_runs": 3}, 3), ({"schedule": "at 2026-03-01T12:00:30Z"}, 1)],
)
def test_another_schedule_counts_from_where_the_renaming_had_begun(
    client: Client, world: World, members: Json, runs: int
) -> None:
    """Or it would run more often than `max_runs` says; and a one-shot that has come due meanwhile
    would be refused, with the job under neither name."""
    apply(client)
    renamed = {"pull": {**members, "catch_up": "all", "was": "sync", "target": TASK}}

    class Dying(MemoryJobStore):
        def create(self, job: Job) -> bool:
            raise StoreUnavailableError("down")

    plain = world.jobs.__class__
    world.jobs.__class__ = Dying
    assert actions(apply(client, renamed))["pull"] == "unavailable"
    world.jobs.__class__ = plain
    world.clock.advance(50)

    assert actions(apply(client, renamed))["pull"] == "rename"
    job = world.jobs.get(OWNER, job_id_of(OWNER, "pull"))
    assert job is not None
    assert len(list(job.schedule.between(job.generation.from_at, NOW + timedelta(days=1)))) == runs


def test_a_pause_with_an_end_goes_along_unless_it_is_over(client: Client, world: World) -> None:
    """What is due between its end and a renaming would be nobody's."""
    apply(client)
    path = f"/jobs/{named(client, 'sync')['job_id']}/pause"
    assert client.post(path, {"until": "2026-03-01T12:05:00Z"}).status == 200
    world.clock.advance(400)

    refused = apply(client, RENAMED)
    assert (actions(refused)["pull"], refused["written"]) == ("unavailable", False)

    world.clock.advance(-300)
    apply(client, RENAMED)
    pull = named(client, "pull")
    assert (pull["state"], pull["resume_at"]) == ("paused", "2026-03-01T12:05:00Z")


def test_a_job_that_is_renamed_there_and_back_is_still_resumed(
    client: Client, world: World
) -> None:
    """Each renaming makes another pause of it, for which the earlier order is of no use."""
    apply(client)
    path = f"/jobs/{named(client, 'sync')['job_id']}/pause"
    client.post(path, {"until": "2026-03-01T12:05:00Z"})
    world.clock.advance(5)
    apply(client, RENAMED)
    world.clock.advance(5)
    apply(client, {"report": JOBS["report"], "sync": {**JOBS["sync"], "was": "pull"}})

    job = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
    assert job is not None
    orders = [kept.message.key for kept in world.queue.kept()]
    assert resume_message(job).key in orders


def test_a_paused_job_is_renamed_paused(client: Client) -> None:
    apply(client)
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/pause")

    apply(client, RENAMED)

    assert named(client, "pull")["state"] == "paused"


def test_a_job_of_another_manager_is_not_renamed(client: Client) -> None:
    client.post("/jobs", {"name": "sync", **JOBS["sync"]})

    assert actions(apply(client, RENAMED)) == {"report": "create", "pull": "refused"}
    assert actions(apply(client, RENAMED, adopt=True)) == {"report": "create", "pull": "rename"}


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ({"sync": {**JOBS["sync"], "was": "SYNC"}}, "is the same name"),
        ({**JOBS, "pull": {**JOBS["sync"], "was": "Sync"}}, "is a job of this manifest"),
        ({"pull": {**JOBS["sync"], "was": 7}}, "should be a valid string"),
        (
            {"report": {**JOBS["report"], "was": "a"}, "pull": {**JOBS["sync"], "was": "A"}},
            "is the former name of another job",
        ),
    ],
)
def test_a_former_name_that_makes_no_sense_is_refused(
    client: Client, jobs: Json, told: str
) -> None:
    refused = [item for item in apply(client, jobs)["items"] if item["action"] == "refused"]
    (error,) = refused[0]["problem"]["errors"]
    assert (error["field"], told in error["message"]) == ("was", True)


def test_a_former_name_without_a_job_is_ignored(client: Client) -> None:
    assert actions(apply(client, RENAMED)) == {"report": "create", "pull": "create"}


def test_a_renamed_job_counts_on(client: Client, world: World) -> None:
    """Its `max_runs`, its reason to be paused and its place in lane slow are not begun anew."""
    counted = {**JOBS["sync"], "max_runs": 3}
    apply(client, {"sync": counted})
    last = named(client, "sync")["ends_at"]
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/pause", {"reason": "poison"})
    world.clock.advance(400)

    apply(client, {"pull": {**counted, "was": "sync"}})

    job = named(client, "pull")
    assert (job["ends_at"], job["state"], job["note"]) == (last, "paused", "poison")


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "at 2026-03-01T18:00:00"},
        {"schedule": "0 9 * * *", "start_at": "2026-04-01T00:00:00Z"},
    ],
)
def test_a_job_that_has_yet_to_begin_is_renamed(client: Client, settings: Json) -> None:
    job = {"target": TASK, **settings}
    apply(client, {"sync": job})
    following = named(client, "sync")["next_fire_at"]

    assert actions(apply(client, {"pull": {**job, "was": "sync"}})) == {"pull": "rename"}
    assert named(client, "pull")["next_fire_at"] == following


def test_a_one_shot_that_is_over_is_renamed(client: Client, world: World) -> None:
    job = {"schedule": "at 2026-03-01T12:10:00", "target": TASK}
    apply(client, {"sync": job})
    world.clock.advance(3600)

    assert actions(apply(client, {"pull": {**job, "was": "sync"}})) == {"pull": "rename"}


def test_a_job_whose_occurrences_a_calendar_moves_keeps_its_name(client: Client) -> None:
    moved = {"calendar": {"name": "c", "rule": "next_business_day"}}
    calendars = {"c": {"weekdays": ["sat"]}}
    apply(client, {"sync": {**JOBS["sync"], **moved}}, calendars=calendars)

    item = apply(client, {"pull": {**JOBS["sync"], "was": "sync"}})["items"][0]
    assert (item["action"], item["problem"]["errors"][0]["field"]) == ("refused", "was")


def test_a_renaming_onto_a_deleted_name_is_continued_without_a_gap(
    client: Client, world: World
) -> None:
    apply(client, {**JOBS, "pull": JOBS["sync"]})
    prune(client, "report", "sync")
    world.clock.advance(90)

    class Dying(MemoryJobStore):
        def replace(self, job: Job, revision: int) -> bool:
            if job.spec.name == "pull":
                raise StoreUnavailableError("down")
            return super().replace(job, revision)

    plain = world.jobs.__class__
    world.jobs.__class__ = Dying
    assert actions(apply(client, RENAMED))["pull"] == "unavailable"
    world.jobs.__class__ = plain
    world.clock.advance(30)

    assert actions(apply(client, RENAMED))["pull"] == "rename"
    old = world.jobs.get(OWNER, job_id_of(OWNER, "sync"))
    new = world.jobs.get(OWNER, job_id_of(OWNER, "pull"))
    assert old is not None
    assert new is not None
    assert new.generation.from_at == old.generation.from_at


def complete(world: World, name: str) -> None:
    """The job's last run has ended, and it was to be deleted then."""
    job = world.jobs.get(OWNER, job_id_of(OWNER, name))
    assert job is not None
    now = world.clock.now()
    assert world.jobs.replace(job.completed(now, now + timedelta(days=30)), job.revision)


@pytest.mark.parametrize("changed", [{}, {"schedule": "at 2026-03-01T13:00:00"}])
def test_a_renamed_job_that_is_completed_stays_gone(
    client: Client, world: World, changed: Json
) -> None:
    """`was` may stand there for ever: the next apply neither makes it again nor is refused."""
    job = {"schedule": "at 2026-03-01T12:10:00", "target": TASK, "on_complete": "delete"}
    apply(client, {"sync": job})
    renamed = {"pull": {**job, **changed, "was": "sync"}}
    assert actions(apply(client, renamed)) == {"pull": "rename"}
    world.clock.advance(7200)
    complete(world, "pull")
    world.clock.advance(600)

    assert actions(apply(client, renamed)) == {"pull": "none"}
    assert client.get("/jobs/named/pull").status == 404


def test_a_renamed_job_that_was_deleted_is_revived_as_it_was(client: Client, world: World) -> None:
    """Not as the former name had ended: paused, say."""
    apply(client)
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/pause", {"reason": "poison"})
    apply(client, RENAMED)
    client.post(f"/jobs/{named(client, 'pull')['job_id']}/resume")
    world.clock.advance(90)
    prune(client, "report")
    world.clock.advance(90)

    assert actions(apply(client, RENAMED))["pull"] == "revive"
    assert named(client, "pull")["state"] == "active"


def test_so_is_one_whose_deletion_has_expired_before_the_former_row(
    client: Client, world: World
) -> None:
    apply(client)
    client.post(f"/jobs/{named(client, 'sync')['job_id']}/pause", {"reason": "poison"})
    apply(client, RENAMED)
    client.post(f"/jobs/{named(client, 'pull')['job_id']}/resume")
    prune(client, "report")
    pull = world.jobs.get(OWNER, job_id_of(OWNER, "pull"))
    assert pull is not None
    assert pull.expires_at is not None
    world.clock.set(pull.expires_at)
    del world.jobs._rows[pull.job_id]

    assert actions(apply(client, RENAMED))["pull"] == "create"
    assert named(client, "pull")["state"] == "active"
