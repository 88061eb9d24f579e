"""Races about a run that is open: reports, checks at its lease's end, and its executor."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Call, Outcome, Success
from tests.simulation.races.ending import Ending, watch
from tests.simulation.races.exploration import Actor, Exploration, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OWNER,
    Race,
    at,
    create,
    cron,
    doubled,
    executor,
    lived,
    race,
    request,
    run_id,
    within,
)
from tests.simulation.races.stores import Contents

RETRY = {"max_attempts": 4, "backoff": {"type": "fixed", "base_seconds": 5}}
TARGET = {
    "type": "webhook",
    "url": "https://example.com/hook",
    "completion": {"within": "1m", "heartbeat": "30s"},
}
OPEN = create(**cron("4,9"), target=TARGET, retry=RETRY)
FAILED = RunError("failed", "raced")


class Tokens:
    """Notes the token of each call, which is accepted."""

    def __init__(self) -> None:
        self.first = ""

    def behave(self, call: Call) -> Outcome:
        assert call.report_to is not None
        self.first = self.first or call.report_to.token
        return Success(None, is_accepted=True)


def complete(name: str, token: str, result: str | None = None) -> Actor:
    return request(name, lambda api: api.completions.complete(run_id(4), token, result or name))


def fail(token: str) -> Actor:
    return request("fail", lambda api: api.completions.fail(run_id(4), token, FAILED))


def heartbeat(token: str) -> Actor:
    return request("heartbeat", lambda api: api.completions.heartbeat(run_id(4), token))


CANCEL = request("cancel", lambda api: api.runs.cancel(OWNER, JOB_ID, run_id(4)))


def opened(until: datetime) -> tuple[Contents, str]:
    """The run of 12:04 is open, its lease until 12:04:30; nobody handles its check from 12:04:25
    on."""
    tokens = Tokens()
    contents = lived(until, {at(0, 10): OPEN}, behave=tokens.behave, executors_down=at(4, 25))
    return contents, tokens.first


def reported(starts_at: datetime, *names: str, twice: bool = False, passing: int = 0) -> Setting:
    """Those of these names meet over the open run."""
    contents, token = opened(starts_at)
    actors: dict[str, Actor] = {
        "complete": complete("complete", token),
        "complete otherwise": complete("complete otherwise", token),
        "fail": fail(token),
        "heartbeat": heartbeat(token),
        "cancel": CANCEL,
        "check": executor("check", run_id(4)),
        "other check": executor("other check", run_id(4)),
    }
    return race(
        starts_at,
        doubled(contents) if twice else contents,
        [actors[name] for name in names],
        behave=Tokens().behave,
        passing_seconds=[passing] if passing else [],
    )


def opening(*reports: str) -> Setting:
    """The executor calls its target, which reports at once; the lease may lapse under it."""
    contents = lived(at(4), {at(0, 10): OPEN}, executors_down=at(1))
    tokens = Tokens()
    alone = race(at(4, 1), contents, [executor("executor")], behave=tokens.behave)
    for _ in Exploration(within(alone, 0, 0), watch).ends():
        pass
    actors: dict[str, Actor] = {
        "complete": complete("complete", tokens.first),
        "heartbeat": heartbeat(tokens.first),
        "fail": fail(tokens.first),
        "other executor": executor("other executor", freezes=False),
    }
    return race(
        at(4, 1),
        doubled(contents) if "other executor" in reports else contents,
        [executor("executor"), *(actors[name] for name in reports)],
        behave=Tokens().behave,
        passing_seconds=[22] if "other executor" in reports else [],
    )


def ended_as_told(ending: Ending) -> Iterator[str]:
    """Who was answered was told the truth, and of those that exclude each other one was."""
    run = ending.run(run_id(4))
    assert run is not None
    told = ending.told
    ends = told & {"complete", "complete otherwise", "cancel", "fail"}
    if len(ends) > 1:
        yield f"{' and '.join(sorted(ends))} were answered, about one attempt"
    for name in sorted(told & {"complete", "complete otherwise"}):
        if (run.status, run.result) != (RunStatus.SUCCEEDED, name):
            yield f"{name} was answered, but the run is {run.status} with {run.result}"
    if "cancel" in told and run.status is not RunStatus.CANCELLED:
        yield f"a cancellation was answered, but the run is {run.status}"
    if "fail" in told and not any(record.error == FAILED for record in run.attempts):
        yield f"a failure was answered, but the run is {run.status} without it"


_ENDS = frozenset({RunStatus.SUCCEEDED, RunStatus.TIMED_OUT})
_CANCELLED = _ENDS | {RunStatus.CANCELLED}


def _race(name: str, setting: partial[Setting], planted: str, **members: object) -> Race:
    allowed = members.pop("allowed", _ENDS)
    return Race(name, setting, planted, 9, allowed, ended_as_told, **members)  # type: ignore[arg-type]


LAPSED = at(4, 32)
LIVE = at(4, 28)

COMPLETION_RACES: Sequence[Race] = (
    _race(
        "complete against check",
        partial(reported, LAPSED, "complete", "check"),
        "claim_unconditional",
    ),
    _race(
        "complete against two checks",
        partial(reported, LIVE, "complete", "check", "other check", twice=True, passing=4),
        "claim_unconditional",
    ),
    _race(
        "heartbeat against two checks",
        partial(reported, LIVE, "heartbeat", "check", "other check", twice=True, passing=4),
        "claim_unconditional",
    ),
    _race(
        "complete against complete",
        partial(reported, LIVE, "complete", "complete otherwise", "heartbeat"),
        "claim_unconditional",
        losses=0,
    ),
    _race(
        "fail against complete",
        partial(reported, LAPSED, "fail", "complete", "check"),
        "claim_unconditional",
        losses=0,
    ),
    _race(
        "complete against cancel",
        partial(reported, LIVE, "complete", "cancel", "heartbeat"),
        "claim_unconditional",
        allowed=_CANCELLED,
        losses=0,
    ),
    _race(
        "opening against complete",
        partial(opening, "complete", "heartbeat"),
        "open_without_check",
        losses=0,
    ),
    _race("opening against fail", partial(opening, "fail"), "open_without_check"),
    _race(
        "opening against takeover",
        partial(opening, "complete", "other executor"),
        "finish_without_token",
        losses=0,
    ),
)
