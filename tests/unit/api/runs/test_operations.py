"""Operations: begun once under a key, listed, read, cancelled."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.message import Message
from carillon.domain.operation import Operation, OperationState, Progress
from carillon.domain.run import RunKind
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import OWNER, Client
from tests.unit.api.runs.test_runs import FailingQueue
from tests.unit.faults import failing, preceded

ALL = {"all": True}


def orders(world: World) -> list[Message]:
    messages = [kept.message for kept in world.queue.kept()]
    return [message for message in messages if message.key.kind is RunKind.OPERATION]


def stored(world: World, operation_id: str) -> Operation:
    found = world.operations.get(OWNER, operation_id)
    assert found is not None
    return found


def put(world: World, operation_id: str, **values: Any) -> Operation:
    seen = stored(world, operation_id)
    changed = replace(seen, revision=seen.revision + 1, **values)
    assert world.operations.put(changed, seen.revision)
    return changed


def test_under_a_key_there_is_one(client: Client, world: World) -> None:
    first = client.post("/dead-letters/redrive", {"all": True, "per_minute": 5}, key="k")
    world.clock.advance(3600)
    again = client.post("/dead-letters/redrive", {"all": True, "per_minute": 5}, key="k")

    assert (first.status, again.status) == (202, 202)
    assert again.json == first.json
    assert len(client.get("/operations").json["items"]) == 1
    # Its first step is not done yet: it is ordered again, and done but once.
    assert [order.attempt for order in orders(world)] == [1, 1]
    put(world, first.json["operation_id"], step=2)
    client.post("/dead-letters/redrive", {"all": True, "per_minute": 5}, key="k")
    assert len(orders(world)) == 2


def test_another_body_under_the_key_is_refused(client: Client) -> None:
    first = client.post("/dead-letters/redrive", ALL, key="k").json

    for body in ({"all": True, "per_minute": 5}, {"reason": "refused"}, {"job_id": "0" * 26}):
        answer = client.post("/dead-letters/redrive", body, key="k")
        assert (answer.status, answer.fields) == (422, ["Idempotency-Key"])
        assert first["operation_id"] in answer.json["detail"]


def test_the_key_is_of_one_kind_of_operation(client: Client) -> None:
    ids = {
        client.post(f"/dead-letters/{kind}", ALL, key="k").json["operation_id"]
        for kind in ("redrive", "discard")
    }
    assert len(ids) == 2


def test_the_key_is_the_owner_s(client: Client, stranger: Client) -> None:
    one, other = (
        asking.post("/dead-letters/redrive", ALL, key="k").json for asking in (client, stranger)
    )
    assert one["operation_id"] != other["operation_id"]


def test_without_a_key_each_request_is_another(client: Client) -> None:
    ids = {client.post("/dead-letters/discard", ALL).json["operation_id"] for _ in range(3)}
    assert len(ids) == 3


def test_a_refused_order_leaves_no_operation(world: World) -> None:
    queue = FailingQueue(world.clock)
    client = Client(world.api(queue=queue))

    assert client.post("/dead-letters/redrive", ALL, key="k").status == 503
    assert client.get("/operations").json["items"] == []
    queue.is_down = False
    assert client.post("/dead-letters/redrive", ALL, key="k").status == 202
    assert len(client.get("/operations").json["items"]) == len(queue.kept()) == 1


def test_a_crash_before_its_row_leaves_an_order_that_does_nothing(
    client: Client, world: World
) -> None:
    with failing(world.operations, "put"):
        assert client.post("/dead-letters/redrive", ALL, key="k").status == 503
    (lost,) = orders(world)
    world.clock.advance(3600)
    made = client.post("/dead-letters/redrive", ALL, key="k").json

    assert made["operation_id"] == lost.key.job_id, "the key had its id already"
    assert made["created_at"] == "2026-03-01T13:00:00.250Z"
    assert [order.key.fire_at.hour for order in orders(world)] == [12, 13]


def test_the_list_is_newest_first_and_paged(client: Client, world: World) -> None:
    made = []
    for _ in range(3):
        made.append(client.post("/dead-letters/discard", ALL).json["operation_id"])
        world.clock.advance(1)

    first = client.get("/operations", limit="2").json
    rest = client.get("/operations", limit="2", cursor=first["next_cursor"]).json

    listed = [each["operation_id"] for each in first["items"] + rest["items"]]
    assert listed == made[::-1]
    assert rest["next_cursor"] is None
    assert client.get("/operations", cursor="x").fields == ["cursor"]


def test_a_cancelled_one_stays_so(client: Client, world: World) -> None:
    operation_id = client.post("/dead-letters/discard", ALL).json["operation_id"]
    put(world, operation_id, step=3, done=7)

    first = client.post(f"/operations/{operation_id}/cancel")
    again = client.post(f"/operations/{operation_id}/cancel")

    assert (first.status, first.json["state"], first.json["done"]) == (200, "cancelled", 7)
    assert (again.status, again.json) == (200, first.json)


def test_a_cancelled_one_does_not_say_that_it_goes_on(client: Client, world: World) -> None:
    operation_id = client.post("/dead-letters/discard", ALL).json["operation_id"]
    waits = Progress("", note="the job is paused: this continues once it is resumed")
    put(world, operation_id, note=waits.note)

    cancelled = client.post(f"/operations/{operation_id}/cancel").json

    assert (cancelled["state"], cancelled["note"]) == ("cancelled", None)
    # A step was under way meanwhile.
    assert waits.recorded_on(stored(world, operation_id), NOW, NOW).note == ""


@pytest.mark.parametrize("state", [OperationState.SUCCEEDED, OperationState.FAILED])
def test_one_that_has_ended_is_not_cancelled(
    client: Client, world: World, state: OperationState
) -> None:
    operation_id = client.post("/dead-letters/discard", ALL).json["operation_id"]
    ended = put(world, operation_id, state=state)

    answer = client.post(f"/operations/{operation_id}/cancel")

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:operation-ended")
    assert state.value in answer.json["detail"]
    assert stored(world, operation_id) == ended


def test_a_cancellation_wins_over_a_step_that_comes_between(client: Client, world: World) -> None:
    operation_id = client.post("/dead-letters/discard", ALL).json["operation_id"]
    with preceded(world.operations, "put", lambda: put(world, operation_id, step=2, done=5)):
        answer = client.post(f"/operations/{operation_id}/cancel")

    assert (answer.status, answer.json["state"], answer.json["done"]) == (200, "cancelled", 5)


def test_a_step_at_every_turn_is_contention(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id = client.post("/dead-letters/discard", ALL).json["operation_id"]
    monkeypatch.setattr(world.operations, "put", lambda *_: False)

    answer = client.post(f"/operations/{operation_id}/cancel")

    assert (answer.status, answer.json["type"]) == (409, "urn:carillon:problem:contended")
