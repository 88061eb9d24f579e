"""The races: who meets whom, over what."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from carillon.domain.decisions import SkipReason
from carillon.domain.run import RunKind, RunStatus
from tests.simulation.races.chunks import CHUNK_RACES
from tests.simulation.races.completions import COMPLETION_RACES
from tests.simulation.races.dead_letters import REDRIVES
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.generations import GENERATIONS
from tests.simulation.races.handing_over import HAND_OVERS
from tests.simulation.races.kit import (
    JOB_ID,
    OPTIONS,
    OWNER,
    Race,
    Request,
    at,
    create,
    cron,
    doubled,
    executor,
    fails_first,
    lived,
    one_shot,
    put,
    race,
    rename,
    request,
    run_id,
    tick,
)
from tests.simulation.races.pauses import PAUSES
from tests.simulation.races.plans import PLAN_RACES
from tests.simulation.races.sharing import SHARINGS
from tests.simulation.races.spreading import SPREADS
from tests.simulation.races.stopping import STOPS
from tests.simulation.races.successors import (
    change_against_change,
    creation_against_change,
    creation_against_end,
    creation_against_revival,
    deletion_against_creation,
    deletion_against_start,
    end_against_end,
    followed_well,
)
from tests.support.requests import job_patch

PAUSE = request("pause", lambda api: api.jobs.pause(OWNER, JOB_ID))
RESUME = request("resume", lambda api: api.jobs.resume(OWNER, JOB_ID))
DELETE = request("delete", lambda api: api.jobs.delete(OWNER, JOB_ID))
REVIVE = request("revive", put(**cron("5,6")))
LATER = job_patch({"schedule": {"cron": "6,7 12 * * *"}})
CHANGE = request("change", lambda api: api.jobs.change(OWNER, JOB_ID, LATER, None))


def generation() -> Setting:
    """12:05 is announced, 12:06 is not yet: the message of 12:05 is young when it is met."""
    actors = [request("create", create(**cron("5,6"))), tick(), executor()]
    return race(at(4, 55), lived(at(4, 50), ticks_down=at(4)), actors, passing_seconds=[10])


def indexing_first() -> Setting:
    """Nobody has ever met the segment."""
    actors = [request("create", create(**cron("5,6,7"))), tick("tick a"), tick("tick b")]
    contents = lived(at(0), ticks_down=at(0))
    return race(at(4, 1), contents, actors)


def indexing_chain() -> Setting:
    """A one-shot: its only entry stands in a dated slot that the tick may just have passed."""
    actors = [request("create", create(**one_shot(6))), tick("tick a"), tick("tick b")]
    return race(at(4, 1), lived(at(3, 50)), actors, passing_seconds=[46])


def revival_chain() -> Setting:
    """The same of a deleted job: the tick that comes to the entry finds the tombstone."""
    requests = {
        at(0, 10): create(**one_shot(6)),
        at(2, 10): lambda api: api.jobs.delete(OWNER, JOB_ID),
    }
    revive = request("revive", put(**one_shot(6)))
    actors = [revive, tick("tick a"), tick("tick b")]
    return race(at(4, 1), lived(at(3, 50), requests), actors, passing_seconds=[46])


def two_ticks() -> Setting:
    """Three minutes are behind; the lease of one may lapse under it."""
    contents = lived(at(4, 50), {at(0, 10): create(**cron("3,4,5,6,7"))}, ticks_down=at(2))
    return race(at(5, 1), contents, [tick("tick a"), tick("tick b")], passing_seconds=[46])


def three_ticks() -> Setting:
    contents = lived(at(4, 50), {at(0, 10): create(**cron("6,7"))})
    ticks = [tick("tick a"), tick("tick b"), tick("tick c")]
    return race(at(5, 1), contents, ticks, passing_seconds=[46])


def duplicate() -> Setting:
    retry = {"max_attempts": 8, "backoff": {"type": "fixed", "base_seconds": 5}}
    create_it = {at(0, 10): create(**cron("4"), retry=retry)}
    contents = lived(at(4), create_it, executors_down=at(1))
    return race(at(4, 1), doubled(contents), [executor("executor a"), executor("executor b")])


def takeover() -> Setting:
    """The lease of 21 seconds lapses under the frozen one; first attempts fail."""
    actors = [executor("executor a"), executor("executor b", freezes=False)]
    return replace(duplicate(), actors=actors, passing_seconds=[22], behave=fails_first)


def two_frozen() -> Setting:
    """Both executors wake up after their time."""
    return replace(duplicate(), passing_seconds=[22])


def three_executors() -> Setting:
    setting = duplicate()
    queue = setting.contents["queue"]
    return replace(
        setting,
        contents=setting.contents | {"queue": (queue[0], *queue)},
        actors=[executor(f"executor {name}") for name in "abc"],
    )


def pause_start() -> Setting:
    contents = lived(at(4), {at(0, 10): create(**cron("4,5,6"))}, executors_down=at(1))
    actors = [PAUSE, executor("executor a", run_id(4)), executor("executor b", run_id(4))]
    return race(at(4, 1), doubled(contents), actors, forbidding=frozenset({"pause"}))


def delete_start() -> Setting:
    setting = pause_start()
    return replace(setting, actors=[DELETE, *setting.actors[1:]], forbidding=frozenset({"delete"}))


def pause_dispatch() -> Setting:
    """The tick sends what the pause is to stop; the executor is quick with it."""
    contents = lived(at(5, 50), {at(0, 10): create(**cron("5,6,7"))}, ticks_down=at(3))
    actors = [PAUSE, tick(), executor("executor", run_id(5))]
    forbidding = frozenset({"pause"})
    return race(at(6, 1), contents, actors, forbidding=forbidding)


def delete_dispatch() -> Setting:
    setting = pause_dispatch()
    return replace(setting, actors=[DELETE, *setting.actors[1:]], forbidding=frozenset({"delete"}))


def begun_again(stop: Request, again: Actor) -> Setting:
    """A job is resumed, or revived, while the tick comes to the minute after."""
    requests = {at(0, 10): create(**cron("5,6")), at(2, 10): stop}
    actors = [again, tick(), executor()]
    return race(
        at(4, 55), lived(at(4, 50), requests, ticks_down=at(4)), actors, passing_seconds=[10]
    )


def change_dispatch() -> Setting:
    contents = lived(at(4, 50), {at(0, 10): create(**cron("5,7"))}, ticks_down=at(4))
    return race(at(4, 55), contents, [CHANGE, tick(), executor()], passing_seconds=[10])


def rename_dispatch() -> Setting:
    """12:05 and 12:06 run under one of the names, each once."""
    contents = lived(at(4, 50), {at(0, 10): create(**cron("5,6"))}, ticks_down=at(4))
    actors = [request("rename", rename("renamed", **cron("5,6"))), tick(), executor()]
    return race(at(4, 55), contents, actors, passing_seconds=[10])


def removal(ask: Actor) -> Setting:
    """The generation that is ended owes 12:05, which nobody has dispatched: a tick comes to it, and
    its entries are to go at once."""
    contents = lived(at(5, 50), {at(0, 10): create(**cron("5,6,7"))}, ticks_down=at(3))
    return race(at(6, 1), contents, [ask, tick()], passing_seconds=[46])


def cancel_start() -> Setting:
    """A run that waits for its retry is cancelled, while an executor gets to it."""
    create_it = {at(0, 10): create(**cron("4,8"))}
    contents = lived(at(4, 5), create_it, behave=fails_first, executors_down=at(4, 1))
    cancel = request("cancel", lambda api: api.runs.cancel(OWNER, JOB_ID, run_id(4)))
    actors = [cancel, executor("executor a", run_id(4)), executor("executor b", run_id(4))]
    return race(at(4, 10), doubled(contents), actors)


def cancelled_well(ending: Ending) -> Iterator[str]:
    run = ending.run(run_id(4))
    assert run is not None
    if "cancel" in ending.told and run.status is not RunStatus.CANCELLED:
        yield f"a cancellation was answered, but the run is {run.status}"
    if run.status is RunStatus.CANCELLED and run.key.run_id in {
        call.run_id for call in ending.calls
    }:
        yield "a cancelled run has run"


def late_retry() -> Setting:
    """A retry so late that it comes by the wheel, into a minute that is just being announced."""
    options = replace(OPTIONS, longest_delay_seconds=30)
    retry = {"max_attempts": 3, "backoff": {"type": "fixed", "base_seconds": 90}}
    create_it = {at(0, 10): create(**cron("4"), retry=retry)}
    contents = lived(at(4), create_it, executors_down=at(1), ticks_down=at(4), options=options)
    return race(
        at(4, 45),
        contents,
        [executor(), tick("tick a"), tick("tick b")],
        behave=fails_first,
        options=options,
    )


def chain_link() -> Setting:
    """Two ticks meet one chain, whose links are rows of their own; the lease may lapse."""
    create_it = {at(0, 10): create(schedule={"cron": "6,7 12 1 12 *"})}
    contents = lived(at(4, 50), create_it, ticks_down=at(4))
    ticks = [tick("tick a"), tick("tick b")]
    return race(at(4, 55), contents, ticks, passing_seconds=[46])


def late_against_late() -> Setting:
    """Two that come late, while the ticks are away: 12:04 is due, and nobody has sent it.

    Where time passes a later one is due when the other is met; and when ticks are back they cover
    what they have not sent by one row.
    """
    retry = {"max_attempts": 8, "backoff": {"type": "fixed", "base_seconds": 5}}
    create_it = {at(0, 10): create(**cron("2,3,4,5,6"), catch_up="latest", retry=retry)}
    contents = lived(at(4), create_it, executors_down=at(1, 30), ticks_down=at(1, 30))
    actors = [executor("executor a", run_id(2)), executor("executor b", run_id(3))]
    return race(at(4, 30), contents, actors, passing_seconds=[150])


def superseded_well(ending: Ending) -> Iterator[str]:
    """What was skipped names one that ran; and of all that was late at once the last one ran."""
    succeeded = {
        run.key.run_id: run.key.fire_at
        for run in ending.contents["runs"]
        if run.status is RunStatus.SUCCEEDED
    }
    for run in ending.contents["runs"]:
        if run.status is RunStatus.SKIPPED and run.key.kind is RunKind.SCHEDULED:
            named = (run.note or "").split(" ")[0]
            if run.reason != SkipReason.CATCH_UP or named not in succeeded:
                yield f"a late occurrence was skipped ({run.reason}), and nothing ran in its place"
            elif succeeded[named] <= run.key.fire_at:
                yield "a late occurrence was skipped for an earlier one"
    if not any(fire_at >= at(4) for fire_at in succeeded.values()):
        yield "I1: the latest that was due has not run"


def skipped_before(again: Actor, reason: SkipReason, ending: Ending) -> Iterator[str]:
    """Who read the job before it began again may have skipped what was due by then."""
    if again.name not in ending.told:
        return
    for run in ending.contents["runs"]:
        if run.status is RunStatus.SKIPPED and run.reason not in (reason, SkipReason.PAUSED):
            yield f"an occurrence was skipped: {run.reason}"
        if run.status is RunStatus.SKIPPED and run.key.fire_at > at(5):
            yield "an occurrence after that was skipped"


_SKIPPED = frozenset({RunStatus.SUCCEEDED, RunStatus.SKIPPED})
_CANCELLED = frozenset({RunStatus.SUCCEEDED, RunStatus.CANCELLED})

RACES = (
    Race("indexing against tick", generation, "young_message_dropped", losses=0),
    Race("indexing in a new segment", indexing_first, "horizon_first"),
    Race("indexing of a one-shot", indexing_chain, "horizon_first"),
    Race("revival of a one-shot", revival_chain, "horizon_first"),
    Race("two ticks", two_ticks, "control_unconditional", losses=0),
    Race("three ticks", three_ticks, "control_unconditional"),
    Race("two executors, one message", duplicate, "claim_unconditional"),
    Race("three executors", three_executors, "claim_unconditional"),
    Race("finish against takeover", takeover, "finish_without_token", losses=0),
    Race("pause against start", pause_start, "row_before_claim"),
    Race("delete against start", delete_start, "row_before_claim"),
    Race("pause against dispatch", pause_dispatch, "row_before_claim"),
    Race("delete against dispatch", delete_dispatch, "row_before_claim"),
    *(
        Race(
            f"{again.name} against dispatch",
            partial(begun_again, stop, again),
            "row_first",
            allowed=_SKIPPED,
            check=partial(skipped_before, again, reason),
            losses=0,
        )
        for stop, again, reason in (
            (lambda api: api.jobs.pause(OWNER, JOB_ID), RESUME, SkipReason.PAUSED),
            (lambda api: api.jobs.delete(OWNER, JOB_ID), REVIVE, SkipReason.DELETED),
        )
    ),
    Race("change against dispatch", change_dispatch, "horizon_first", losses=0),
    Race("rename against dispatch", rename_dispatch, "horizon_first", losses=0),
    *(
        Race(f"{ask.name}'s removal against the tick", partial(removal, ask), "removed_early")
        for ask in (PAUSE, DELETE, CHANGE)
    ),
    Race("two frozen executors", two_frozen, "claim_unconditional", crashes=0, losses=0),
    Race(
        "cancel against start",
        cancel_start,
        "claim_unconditional",
        allowed=_CANCELLED,
        check=cancelled_well,
    ),
    Race("late retry against tick", late_retry, "horizon_first", losses=1),
    Race(
        "late against late",
        late_against_late,
        "latest_not_sent",
        allowed=_SKIPPED,
        check=superseded_well,
        losses=0,
    ),
    *(
        Race(name, setting, planted, allowed=_SKIPPED, check=followed_well, losses=losses)
        for name, setting, planted, losses in (
            ("`after` against the end", creation_against_end, "link_after_commit", 0),
            ("end against end before `after`", end_against_end, "followed_anew", 1),
            ("`after` against a change", creation_against_change, "links_unseen", 1),
            ("`after` against a revival", creation_against_revival, "links_unseen", 0),
            ("change against change of `after`", change_against_change, "narrowed_blindly", 1),
            ("deletion against `after`", deletion_against_creation, "unlinked_blindly", 1),
            ("deletion against start `after`", deletion_against_start, "row_before_claim", 0),
        )
    ),
    Race("chain's next link", chain_link, "link_after_watermark", losses=0),
    *GENERATIONS,
    *PAUSES,
    *SPREADS,
    *HAND_OVERS,
    *CHUNK_RACES,
    *PLAN_RACES,
    *SHARINGS,
    *STOPS,
    *REDRIVES,
    *COMPLETION_RACES,
)
