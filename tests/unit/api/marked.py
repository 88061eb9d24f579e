"""Owners of whom every row carries a mark, so that a leak of one to another is seen as text."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

from carillon.api.app import Api
from carillon.domain.execution import completing
from carillon.domain.run import Completion, RunError, RunKey, RunKind, RunStatus
from carillon.stores.task_logs import MemoryTaskLogs
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import Answer, Client, Json
from tests.unit.api.runs.test_activity import record, result
from tests.unit.api.runs.test_dead_letters import put_dead
from tests.unit.api.runs.test_runs import make_run, put

FIRED = NOW.replace(microsecond=0)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SPAN = {"from": "2026-03-01T11:00:00Z", "to": "2026-03-01T11:30:00Z"}


@dataclass
class Marked:
    """An owner, and names and ids of what it has; `texts` are all that tell of it."""

    owner: str
    mark: str
    job_id: str = "0" * 25 + "1"
    job_name: str = ""
    run_id: str = ""
    dead_id: str = ""
    open_id: str = ""
    operation_id: str = "0" * 25 + "2"
    calendar: str = ""
    notification: str = ""
    key: str = ""
    texts: frozenset[str] = frozenset()


def nothing(mark: str) -> Marked:
    """Names and ids of the same forms, of what nobody has."""
    none = Marked(f"user/{mark}", mark)
    none.job_name, none.key = f"{mark} report", f"{mark}-key"
    none.calendar, none.notification = f"{mark}-days", f"{mark}-notes"
    keys = _keys_of(none, none.job_id)
    none.run_id, none.dead_id, none.open_id = (key.run_id for key in keys)
    return none


def _keys_of(marked: Marked, job_id: str) -> list[RunKey]:
    times = FIRED - MINUTE, FIRED - 2 * MINUTE, FIRED - 3 * MINUTE
    return [RunKey(marked.owner, job_id, RunKind.SCHEDULED, at) for at in times]


def seed(world: World, api: Api, logs: list[Any], owner: str, mark: str) -> Marked:
    """Rows of every kind for an owner; what is there already stays."""
    kind, _, name = owner.partition("/")
    is_team = kind == "team"
    groups = [f"{name}:admin"] if is_team else None
    person = f"{mark}-sub" if is_team else name
    client = Client(api, f"user/{person}", groups, team=name if is_team else "")
    client._claims["username"] = f"{mark}-person"
    made = nothing(mark)
    made.owner = owner
    ok(client.put(f"/calendars/{made.calendar}", {"weekdays": ["sun"], "description": mark}))
    spec = {
        "schedule": "every 5m",
        "target": {"type": "task", "name": "echo"},
        "description": mark,
        "payload": {"word": mark},
        "tags": {mark: mark},
        "calendar": {"name": made.calendar},
        "parent": f"{mark}-parent",
    }
    created = ok(client.put(f"/jobs/named/{made.job_name}".replace(" ", "%20"), spec))
    made.job_id = created.json["job"]["job_id"]
    after = {"name": f"{mark} second", "target": spec["target"], "after": made.job_name}
    second = client.post("/jobs", after, key=f"{mark}-2nd")
    told = {"on": ["run.dead"], "to": {"type": "slack", "url": {"secret": f"{mark}-hook"}}}
    ok(client.put(f"/notifications/{made.notification}", told | {"jobs": f"{mark}*"}))
    ok(client.put(f"/notifications/{made.notification}-2", told))
    ok(client.put(f"/calendars/{made.calendar}-2", {"weekdays": ["sat"]}))
    ok(client.send("POST", f"/jobs/{made.job_id}/run", {"note": mark}, headers=_key(made.key)))
    _put_runs(world, made)
    logs.append((FIRED - MINUTE, _line(made.run_id, mark)))
    backfill = ok(
        client.send("POST", f"/jobs/{made.job_id}/backfill", SPAN, headers=_key(made.key))
    )
    made.operation_id = backfill.json["operation_id"]
    redrive = ok(
        client.send("POST", "/dead-letters/redrive", {"job_id": "0" * 26}, headers=_key(made.key))
    )
    second_id = ok(second).json["job_id"]
    told_of = {mark, owner, made.job_id, second_id, made.operation_id}
    made.texts = frozenset(told_of | {redrive.json["operation_id"]})
    return made


def _put_runs(world: World, made: Marked) -> None:
    """A run that has succeeded, a dead one, and an open one."""
    good, dead, waiting = _keys_of(made, made.job_id)
    made.run_id, made.dead_id, made.open_id = good.run_id, dead.run_id, waiting.run_id
    if world.runs.get(good) is not None:
        return
    span = {"started_at": good.fire_at, "finished_at": good.fire_at, "note": made.mark}
    put(world, make_run(made.job_id, good.fire_at, key=good, result=made.mark, **span))
    error = RunError("http_503", made.mark)
    put_dead(world, made.job_id, dead.fire_at, key=dead, error=error)
    second = replace(dead, fire_at=dead.fire_at - HOUR)
    put_dead(world, made.job_id, second.fire_at, key=second, error=error)
    token = completing.token_of(made.owner, made.mark)
    terms = Completion(completing.hash_of(token), NOW + HOUR, 600, is_open=True)
    lease = {"lease_until": NOW + HOUR, "attempt_started_at": waiting.fire_at}
    row = make_run(made.job_id, waiting.fire_at, key=waiting, status=RunStatus.RUNNING, **lease)
    put(world, replace(row, completion=terms, waits=1, generation_id="01KBD0000000000000000000F1"))
    tags = ((made.mark, made.mark),)
    results = [result(key=key, job_name=made.job_name, tags=tags) for key in (good, dead, second)]
    record(world, *results)


def _line(run_id: str, mark: str) -> str:
    words = {"level": "INFO", "message": mark, "action": "task.log", "attempt": 1}
    return json.dumps({**words, "run_id": run_id})


def _key(key: str) -> Json:
    return {"Idempotency-Key": key}


def ok(answer: Answer) -> Answer:
    assert answer.status < 300, answer.text
    return answer


@dataclass
class MarkedWorld:
    """An API over the marked rows of two teams and of a person."""

    world: World
    logs: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api = self.world.api(task_logs=MemoryTaskLogs(self.logs))
        self.seed_all()

    def seed_all(self) -> None:
        """Put what is missing of each owner."""
        owners = {"team/billing": "qqbill", "team/other": "qqother", "user/qqann-sub": "qqann"}
        self.owners = [
            seed(self.world, self.api, self.logs, owner, mark) for owner, mark in owners.items()
        ]

    def of(self, owner: str) -> Marked:
        return next(each for each in self.owners if each.owner == owner)

    def leaked(self, owner: str, sent: str, answer: Answer) -> list[str]:
        """What the answer to a request for this owner tells of others, but for what was sent."""
        told = answer.text + json.dumps(answer.headers)
        others = [each for each in self.owners if each.owner != owner]
        return [text for each in others for text in each.texts if text in told and text not in sent]

    def rows_of(self, owner: str) -> list[str]:
        """All that the stores have of an owner."""
        stores = (getattr(self.world, each.name) for each in fields(self.world))
        leaves = (leaf for store in stores for leaf in _leaves(vars(store)))
        return [text for leaf in leaves if f"'{owner}'" in (text := repr(leaf))]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, each in list(value.items()):
            for leaf in _leaves(each):
                yield key, leaf
    elif isinstance(value, list | set | frozenset):
        for each in list(value):
            yield from _leaves(each)
    elif is_dataclass(value) or isinstance(value, str | int | tuple):
        yield value
