"""The audit over memory stores: it finds each planted defect, and nothing where all is well."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.audit import auditing
from carillon.audit.auditing import Audit, Finding
from carillon.domain.changes.of_jobs import job_change
from carillon.domain.execution.start_decision import FAR_BACK
from carillon.domain.policies import Backoff, BackoffType, Rate, RetryPolicy
from carillon.domain.run import RunError, RunKind, RunStatus
from carillon.executor.targets import Failure, Success
from carillon.schedules import parse_schedule
from carillon.services.history import History
from carillon.stores.memory import NoEvents
from carillon.stores.ports import Stores
from tests.simulation.judging.recorder import Recorder
from tests.simulation.worlds.runner import chunk_sizes, run
from tests.simulation.worlds.scenario import scenario_of
from tests.simulation.worlds.scenario_parts import chunk_plan
from tests.support.jobs import job_with
from tests.support.world import World
from tests.unit.audit.planting import (
    DEFECTS,
    END,
    OUTAGE,
    START,
    a_row_is_lost,
    a_run_never_ends,
    an_hour,
    job,
    put,
    run_of,
)

LATER = END - timedelta(minutes=2)


def stores_of(world: World) -> Stores:
    return Stores(
        jobs=world.jobs,
        calendars=world.calendars,
        wheel=world.wheel,
        runs=world.runs,
        chunks=world.chunks,
        activity=world.activity,
        changes=world.changes,
        queue=world.queue,
        admission_rows=world.admission_rows,
        operations=world.operations,
        idempotency_records=world.idempotency_records,
        notifications=world.notifications,
        windows=world.windows,
        quotas=world.quotas,
        uses=world.uses,
        events=NoEvents(),
        skew_seconds=lambda: None,
    )


def audit_of(world: World, minutes: tuple[float, float] = (0, 58)) -> Audit:
    begin, end = (START + timedelta(minutes=each) for each in minutes)
    return Audit(stores_of(world), history(world), world.segments, begin, end, rest_at=LATER)


def history(world: World) -> History:
    return world.executor_ports.history


def found(world: World, minutes: tuple[float, float] = (0, 58)) -> list[Finding]:
    return list(audit_of(world, minutes).findings())


@pytest.fixture(params=[3, 500], ids=["small pages", "large pages"])
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(auditing, "_PAGE", request.param)
    size: int = request.param
    return size


def test_an_hour_with_an_outage_a_change_and_a_pause_is_as_it_should_be(page: int) -> None:
    audit = audit_of(an_hour())
    assert list(audit.findings()) == []
    assert audit.seen.jobs == 7
    assert audit.seen.runs > 300
    assert found(an_hour(), (22.5, 30)) == [], "a span in the middle of what one row covers"


@pytest.mark.parametrize(("plant", "words"), DEFECTS)
def test_a_planted_defect_is_found(plant: Callable[[World], None], words: str, page: int) -> None:
    world = an_hour()
    plant(world)
    told = found(world)
    assert any(words in each.text for each in told), told


def test_what_is_changed_as_soon_as_it_is_paused_is_not_judged_by_its_new_schedule() -> None:
    world = an_hour()
    paused = world.pause(job(world, "steady"))
    changed_at = paused.updated_at + timedelta(milliseconds=1)
    changed = replace(paused, schedule=parse_schedule("every 7s"), updated_at=changed_at)
    assert world.jobs.replace(replace(changed, revision=paused.revision + 1), paused.revision)
    assert found(world) == []


def test_nor_is_what_is_changed_at_the_very_instant_of_its_pause() -> None:
    """Seed 9983014963: no time passed between two requests."""
    world = an_hour()
    paused = world.pause(job(world, "steady"))
    every_7s = parse_schedule("every 7s")
    changed = job_with(paused, schedule=every_7s, max_runs=99, revision=paused.revision + 1)
    changed = replace(changed, last_change=job_change(paused, changed))
    assert world.jobs.replace(changed, paused.revision)
    assert found(world) == []


def test_what_was_due_before_a_pause_is_judged_though_its_job_was_moved_in_it() -> None:
    world = an_hour()
    a_row_is_lost(world)
    paused = world.pause(job(world, "steady"))
    world.indexer.control(1)
    moved = replace(paused, segment=1, revision=paused.revision + 1)
    moved = replace(moved, last_change=job_change(paused, moved))
    assert world.jobs.replace(moved, paused.revision)
    assert len(found(world)) == 1


def test_what_lies_outside_of_the_span_is_not_judged() -> None:
    world = an_hour()
    a_row_is_lost(world)
    assert found(world, (10, 58)) == []
    assert len(found(world, (9.9, 58))) == 1
    assert found(world, (0, 9.9)) == []


def test_what_was_written_a_moment_ago_is_under_way() -> None:
    world = an_hour()
    a_run_never_ends(world)
    row = run_of(world, "steady", 10)
    put(world, replace(row, updated_at=LATER))
    assert "is running for ever" in found(world)[0].text
    put(world, replace(row, updated_at=LATER + timedelta(seconds=1)))
    assert found(world) == []
    put(world, replace(row, lease_until=LATER + timedelta(seconds=1)))
    assert found(world) == []


def test_a_retry_that_waits_for_a_start_is_not_left_for_ever() -> None:
    world = World(START)
    down = Failure(RunError("http_503", "down"))
    world.targets.behave = lambda call: down
    world.create("rated", "1 * * * *", rate=Rate(1, 3 * 3600))
    world.run_until(END)
    assert found(world) == []


@pytest.mark.parametrize("has_counted", [False, True])
def test_a_claim_for_what_never_was_committed_is_no_run(has_counted: bool) -> None:
    """Seed 9976100349: its process had stood still past its lease, and died then."""
    world = an_hour()
    a_run_never_ends(world)
    row = run_of(world, "steady", 10)
    noise = world.entropy.new_id(row.key.fire_at)
    others = (row.generation_id,) if has_counted else ()
    put(world, replace(row, generation_id=noise, other_generations=others))
    assert any("for ever" in each.text for each in found(world)) is has_counted


def test_what_may_have_counted_long_ago_may_be_skipped() -> None:
    """Seed 9990002243: its creation had died, and nobody could tell any more."""
    world = an_hour()
    row = run_of(world, "steady", 10)
    none = replace(row.key, fire_at=row.key.fire_at + timedelta(seconds=7))
    skipped = replace(row, key=none, status=RunStatus.SKIPPED, reason="changed", note=FAR_BACK)
    put(world, skipped)
    assert found(world) == []
    put(world, replace(skipped, note=None))
    assert "no generation of its job yields" in found(world)[0].text


def test_minutes_in_the_backlog_are_late_and_not_lost() -> None:
    world = World(START, segments=1)
    world.create("steady", "every 20s")
    world.run_until(START + timedelta(minutes=20))
    world.run_until(END, ticking=False)
    told = found(world)
    assert [each.promise for each in told] == ["I3"]
    assert "dispatched nothing after 2026-12-01 12:22:59" in told[0].text


def test_nor_is_what_waits_on_the_wheel_in_it_lost() -> None:
    """A tick has come back, and does its live minutes first."""
    world = World(START, segments=1)
    down = Failure(RunError("http_503", "down"))
    world.targets.behave = lambda call: down if call.attempt == 1 else Success("done")
    late = Backoff(1800, type=BackoffType.FIXED)
    world.create("retried", "at 2026-12-01T12:10:00Z", retry=RetryPolicy(2, late))
    world.create("chain", "every 20m after finish", retry=RetryPolicy(1))
    world.run_until(START + timedelta(minutes=25))
    world.run_until(END, ticking=False)
    world.dispatcher().dispatch(0, world.clock.now() + timedelta(seconds=50))
    assert [each.promise for each in found(world)] == ["I3"]
    world.run_until(END + timedelta(minutes=5))
    assert found(world) == []


def test_a_rare_job_whose_occurrence_stands_in_it_is_indexed() -> None:
    """Who visits its entry there puts the next one."""
    world = World(START, segments=1)
    yearly = world.create("yearly", "40 12 1 12 *")
    world.run_until(START + timedelta(minutes=25))
    world.run_until(END, ticking=False)
    world.dispatcher().dispatch(0, world.clock.now() + timedelta(seconds=50))
    assert [each.promise for each in found(world)] == ["I3"]
    world.run_until(END + timedelta(minutes=5))
    assert found(world) == []
    assert len(world.history(yearly)) == 1


def test_an_audit_may_end_between_a_catch_up_and_the_run_that_stands_for_it() -> None:
    """Seed 10000400496: that is due by then, but for its place in the window."""
    world = World(START, segments=1)
    spread = world.create("spread", "every 20s", window="20s", fraction=0.8)
    assert spread.spread_seconds == 16
    world.run_until(OUTAGE[0])
    world.run_until(OUTAGE[1], ticking=False)
    world.run_until(END)
    (covers,) = (run for run in world.history(spread) if run.key.kind is RunKind.MISSED)
    behind = (covers.key.fire_at - START) / timedelta(minutes=1)
    for seconds in range(60):
        assert found(world, (0, behind + seconds / 60)) == []


def test_segments_beyond_a_lowered_number_are_judged() -> None:
    world = World(START, segments=4)
    world.run_until(START + timedelta(minutes=20))
    world.run_until(END, ticking=False)
    until = START + timedelta(minutes=58)
    told = list(Audit(stores_of(world), history(world), 2, START, until, rest_at=LATER).findings())
    assert [each.text.split(" has ")[0] for each in told] == [f"segment {n}" for n in range(4)]


def test_many_findings_of_a_job_are_counted() -> None:
    world = an_hour()
    steady = job(world, "steady").job_id
    for key in [key for key in world.runs._rows if key.job_id == steady]:
        if key.kind is RunKind.SCHEDULED:
            world.runs._rows.pop(key)
    told = [each for each in found(world) if each.job_id == steady and "no row" in each.text]
    assert len(told) == 11
    assert "and 1" in told[-1].text
    assert "more" in told[-1].text


def test_a_job_that_changed_meanwhile_is_judged_as_it_is_then() -> None:
    world = an_hour()
    stale = job(world, "steady")
    world.new_generation(stale, "every 50s")

    class Behind:
        def __getattr__(self, name: str) -> object:
            return getattr(world.jobs, name)

        def scan(self, limit: int, cursor: str | None = None) -> object:
            page = world.jobs.scan(limit, cursor)
            items = tuple(stale if each == job(world, "steady") else each for each in page.items)
            return replace(page, items=items)

    for segment_slot in list(world.wheel._slots):
        standing = f"{stale.job_id}#{stale.generation.generation_id}"
        world.wheel.remove_entries(0, [(segment_slot[1], standing)])
    stores = replace(stores_of(world), jobs=Behind())  # type: ignore[arg-type]
    assert list(Audit(stores, history(world), 1, START, LATER, rest_at=LATER).findings()) == []


@pytest.mark.parametrize("seed", range(8))
def test_whatever_struck_a_world_its_tables_are_found_right(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached, attach = [], Recorder.attach

    def caught(recorder: Recorder, deployment: object) -> None:
        attached.append(deployment)
        attach(recorder, deployment)  # type: ignore[arg-type]

    monkeypatch.setattr(Recorder, "attach", caught)
    scenario = scenario_of(seed)
    run(scenario)
    (deployment,) = attached
    audit = Audit(
        deployment.stores.ports,  # type: ignore[attr-defined]
        deployment.executor_ports.history,  # type: ignore[attr-defined]
        scenario.options.segments,
        scenario.start - timedelta(minutes=1),
        scenario.until.replace(microsecond=0),
        rest_at=deployment.loop.instant(),  # type: ignore[attr-defined]
    )
    with chunk_sizes(is_small=chunk_plan(seed).is_for_chunks):
        assert list(audit.findings()) == []
    assert audit.seen.jobs


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("minutes", [0, 3])
@pytest.mark.parametrize("schedule", ["0 9 10 3,6,9,12 *", "at 2026-12-10T09:00:00"])
def test_the_link_that_only_looks_at_the_zone_is_no_loss(
    schedule: str, minutes: int, zone: str
) -> None:
    """It comes 26 hours before the occurrence."""
    world = World(START, segments=1)
    world.create("quarterly", schedule, timezone=zone)
    if minutes:
        world.run_until(START + timedelta(minutes=minutes))
    world.clock.set(START + timedelta(hours=1))
    assert [each for each in audit_of(world).findings() if "segment" not in each.text] == []
