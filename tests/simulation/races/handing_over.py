"""Races of jobs that are handed over to another owner while they fire."""

from collections.abc import Iterator

from carillon.api.http.problems import ProblemError
from carillon.api.operations.models import HandOverBody
from carillon.domain.changes.handing_over import is_in_hand
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM
from carillon.errors import StoreUnavailableError
from carillon.simulation.services import Api
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    NAME,
    OWNER,
    Race,
    Request,
    at,
    create,
    cron,
    executor,
    lived,
    put,
    race,
    request,
    tick,
)

OTHER = "p"
TAKEN_ID = job_id_of(OTHER, NAME)
_CREATED_AT = at(0, 10)


def _hand_over(api: Api) -> object:
    body = HandOverBody.model_validate({"to": OTHER, "all": True})
    return api.operations.hand_over(OWNER, OTHER, body, SYSTEM, None)


def _put(api: Api) -> object:
    try:
        return put(**cron("6,7"))(api)
    except ProblemError as error:  # while the name is not free
        raise StoreUnavailableError(str(error)) from error


def _moving(made: Request, *actors: Actor) -> Setting:
    """The job has been chosen, and the step that moves it lies in the queue."""
    asked = {_CREATED_AT: made, at(4, 40): _hand_over}
    contents = lived(at(4, 50), asked, ticks_down=at(4), executors_down=at(4, 42))
    ((_, operation),) = contents["operations"]
    assert operation.in_hand == (JOB_ID,), operation
    movers = [executor("mover", operation.operation_id), *actors]
    return race(at(4, 55), contents, movers, passing_seconds=[10])


def dispatch() -> Setting:
    """12:05 and 12:06 run as one of the owners', each once."""
    return _moving(create(**cron("5,6")), tick())


def name_taken() -> Setting:
    """The former owner asks for a new job of the name, meanwhile."""
    return _moving(create(**cron("6,7")), request("put", _put))


def deleted() -> Setting:
    delete = request("delete", lambda api: api.jobs.delete(OWNER, JOB_ID))
    return _moving(create(**cron("6,7")), delete)


def is_somebodys(ending: Ending) -> Iterator[str]:
    """The job is one owner's at the end, and has been handed over whole."""
    rows = {row.job_id: row for row in ending.contents["jobs"]}
    ((_, operation),) = ending.contents["operations"]
    old, new = rows[JOB_ID], rows.get(TAKEN_ID)
    if operation.in_hand or is_in_hand(old):
        yield f"it is between two owners: {old}"
    if old.state is JobState.RENAMED and new is None:
        yield "it is nobody's"
    is_back = old.state is JobState.ACTIVE and old.created_at == _CREATED_AT
    if is_back and new is not None and not new.is_tombstone:
        yield "it is both's"
    if "delete" in ending.told and old.state is not JobState.DELETED and new is None:
        yield f"it was deleted, and is {old.state.value}"


RESTING = frozenset({RunStatus.SUCCEEDED, RunStatus.SKIPPED})
HAND_OVERS = (
    Race(
        "hand-over against dispatch",
        dispatch,
        "handed_over_and_still_there",
        check=is_somebodys,
        losses=0,
    ),
    Race(
        "hand-over against put",
        name_taken,
        "taken_over_unseen",
        check=is_somebodys,
        losses=0,
    ),
    Race(
        "hand-over against delete",
        deleted,
        "taken_over_unseen",
        allowed=RESTING,
        check=is_somebodys,
        losses=0,
    ),
)
