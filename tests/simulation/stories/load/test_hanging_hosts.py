"""Jobs on a host that hangs: after some time-outs the others are served in lane slow, uncalled."""

from collections import Counter

import pytest

from carillon.domain.admission.slowness import IN_A_ROW
from carillon.domain.job import Job, Lane
from carillon.domain.run import RunError
from carillon.domain.targets import WebhookTarget
from carillon.domain.wheel.entry import message_of
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.simulation.stories.load.test_slow_lane import ONCE, counted, due, hangs, lasts
from tests.simulation.stories.story import HOUR, MINUTE, NOON, empty_queue, handle, row_of
from tests.support.jobs import job_with
from tests.support.world import OWNER, World


@pytest.fixture
def world() -> World:
    return World(NOON)


def handled(
    world: World, names: range, host: str = "hangs.example", owner: str = OWNER
) -> list[Job]:
    """Webhooks to the host, each with an occurrence that is due and handled."""
    jobs = []
    for number in names:
        target = WebhookTarget(url=f"https://{host}/{number}")
        job = world.new_job(f"{host} {number}", "every 10m", timeout_seconds=5)
        job = job_with(job, owner=owner, target=target)
        assert world.indexer.index_job(job, None)
        jobs.append(job)
    empty_queue(world)
    messages = [message_of(job, NOON + 10 * MINUTE) for job in jobs]
    world.clock.set(max(world.clock.now(), NOON + 10 * MINUTE))
    for message in messages:
        handle(world, message)
    return jobs


def slow(world: World, jobs: list[Job]) -> list[str]:
    rows = [world.jobs.get(job.owner, job.job_id) for job in jobs]
    return [job.slow.reason for job in rows if job is not None and job.slow is not None]


def test_after_five_time_outs_the_others_are_moved_without_a_call(world: World) -> None:
    hangs(world)
    first = handled(world, range(IN_A_ROW))
    assert (len(world.targets.calls), slow(world, first)) == (IN_A_ROW, [])
    others = handled(world, range(IN_A_ROW, 20))
    assert len(world.targets.calls) == IN_A_ROW
    reason = "the last 5 attempts at hangs.example timed out"
    assert slow(world, others) == [reason] * (20 - IN_A_ROW)
    sent = world.queue.kept()
    assert [kept.lane for kept in sent] == [Lane.SLOW] * (20 - IN_A_ROW)
    assert {world.runs.get(kept.message.key) for kept in sent} == {None}, "withdrawn"
    handle(world, sent[0].message)
    assert len(world.targets.calls) == IN_A_ROW + 1, "in lane slow it is called"


@pytest.mark.parametrize("other", ["host", "port", "owner", "task"])
def test_others_are_called_as_before(world: World, other: str) -> None:
    hangs(world)
    handled(world, range(20))
    world.targets.calls.clear()
    if other == "task":
        handle(world, due(world, world.create("task", "* * * * *")))
        moved = []
    else:
        host = {"host": "answers.example", "port": "hangs.example:8443"}
        owner = "owner-2" if other == "owner" else OWNER
        moved = slow(world, handled(world, range(20, 21), host.get(other, "hangs.example"), owner))
    assert (len(world.targets.calls), moved) == (1, [])


def test_an_attempt_that_ends_in_another_way_takes_it_back(world: World) -> None:
    hangs(world)
    handled(world, range(IN_A_ROW - 1))
    lasts(world, 0.1, Failure(RunError("http_500", "no")))
    handled(world, range(20, 21))
    hangs(world)
    assert slow(world, handled(world, range(30, 30 + IN_A_ROW))) == []


def with_callbacks(world: World, count: int, hanging: bool) -> None:
    """Webhooks to one host that call another one back: either hangs, and the other is quick."""

    def behave(call: Call) -> Outcome:
        if ("_callback-" in call.run_id) is hanging:
            return Success(None)
        world.clock.advance(call.timeout_seconds)
        return Failure(RunError("timeout", "no answer"), timed_out=True)

    world.targets.behave = behave
    world.clock.set(NOON + 10 * MINUTE)
    back = WebhookTarget(url="https://calls-back.example/x")
    settings = {"on_success": back, "on_failure": back, "retry": ONCE, "timeout_seconds": 5}
    jobs = []
    for number in range(count):
        target = WebhookTarget(url=f"https://hangs.example/{number}")
        job = world.new_job(f"calls back {number}", "every 10m")
        jobs.append(job_with(job, target=target, **settings))
        assert world.indexer.index_job(jobs[-1], None)
    empty_queue(world)
    for job in jobs:
        handle(world, message_of(job, NOON + 10 * MINUTE))
    for kept in world.queue.kept():
        handle(world, kept.message)
    assert len(world.targets.calls) == 2 * count


def test_a_quick_callback_does_not_take_back_that_its_jobs_host_hangs(world: World) -> None:
    """It calls another target."""
    with_callbacks(world, IN_A_ROW - 1, hanging=True)
    hangs(world)
    handled(world, range(20, 21))
    assert len(slow(world, handled(world, range(30, 31)))) == 1


def test_nor_does_one_that_times_out_move_jobs_whose_host_answers(world: World) -> None:
    with_callbacks(world, IN_A_ROW, hanging=False)
    assert slow(world, handled(world, range(20, 21))) == []


def test_what_is_older_than_a_minute_counts_no_more(world: World) -> None:
    hangs(world)
    handled(world, range(IN_A_ROW))
    world.clock.advance(61)
    lasts(world, 0.1)
    assert slow(world, handled(world, range(20, 22))) == []


def test_where_the_mark_cannot_be_set_it_is_called(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs(world)
    handled(world, range(IN_A_ROW))
    monkeypatch.setattr(world.jobs, "replace", lambda job, revision: False)
    handled(world, range(20, 22))
    assert len(world.targets.calls) == IN_A_ROW + 2


def test_none_is_called_that_has_read_its_job_s_deletion(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes between the decision to start the run and the mark."""
    hangs(world)
    handled(world, range(IN_A_ROW))
    get, read = world.jobs.get, list[Job | None]()

    def deleting(owner: str, job_id: str) -> Job | None:
        read.append(job := get(owner, job_id))
        if job is not None and not job.is_tombstone:
            now = world.clock.now()
            assert world.jobs.replace(job.deleted(now, now + 24 * HOUR), job.revision)
        return job

    monkeypatch.setattr(world.jobs, "get", deleting)
    handled(world, range(20, 21))
    has_read = any(job is not None and job.is_tombstone for job in read)
    assert has_read is (len(world.targets.calls) == IN_A_ROW)


def test_jobs_on_one_hanging_host_cost_one_move_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no generation: the entries stay where they are, so there is no herd to bound."""
    hangs(world)
    jobs = [world.create(f"job {n}", "every 5m", timeout_seconds=5) for n in range(100)]
    calls: Counter[str] = Counter()
    for store, name in ((world.wheel, "put_entries"), (world.jobs, "replace")):
        monkeypatch.setattr(store, name, counted(calls, name, getattr(store, name)))
    world.run_until(NOON + 61 * MINUTE)
    assert all(row_of(world, job).slow is not None for job in jobs)
    assert calls == {"replace": len(jobs)}
