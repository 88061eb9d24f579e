"""GateStore."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest

from carillon.domain.admission.state import Gate
from tests.contract.kit import CONTENDERS, Kit, contend
from tests.contract.samples import NOW, a_full_gate, a_gate


def test_an_unknown_gate_is_none(kit: Kit) -> None:
    assert kit.gates.get(kit.new_owner(), "owner") is None


@pytest.mark.parametrize("make", [a_gate, a_full_gate])
def test_a_gate_comes_back_whole(kit: Kit, make: Callable[[str], Gate]) -> None:
    gate = make(kit.new_owner())
    assert kit.gates.put(gate, None)
    assert kit.gates.get(gate.owner, gate.name) == gate


NAMES = [
    "key/database",
    "key/Datenbank ü/1",
    "key/~calendar/holidays",
    "key/" + "x" * 1000,
    "key/" + "x" * 999 + "y",
    "key/" + "ü" * 3000,
    "key/\ud800",
    "key/\udfff",
    "~",
    "~gate/key/database",
    "key/\0",
    "",
]


def test_names_are_any_text_and_told_apart(kit: Kit) -> None:
    owner = kit.new_owner()
    for number, name in enumerate(NAMES):
        assert kit.gates.put(a_gate(owner, name=name, started=str(number)), None), name
    stored = [kit.gates.get(owner, name) for name in NAMES]
    assert [gate and (gate.name, gate.started) for gate in stored] == [
        (name, str(number)) for number, name in enumerate(NAMES)
    ]


def test_owners_have_gates_of_their_own(kit: Kit) -> None:
    gate, other = a_gate(kit.new_owner()), kit.new_owner()
    assert kit.gates.put(gate, None)
    assert kit.gates.get(other, gate.name) is None
    assert kit.gates.put(dataclasses.replace(gate, owner=other), None)


def test_put_over_none_puts_only_where_there_is_none(kit: Kit) -> None:
    gate = a_gate(kit.new_owner())
    assert kit.gates.put(gate, None)
    assert not kit.gates.put(dataclasses.replace(gate, active="another"), None)
    assert kit.gates.get(gate.owner, gate.name) == gate


def test_put_needs_exactly_the_revision(kit: Kit) -> None:
    gate = a_gate(kit.new_owner(), revision=4)
    changed = dataclasses.replace(gate.next_revision(), active="run")
    assert not kit.gates.put(gate, 3), "nothing is there"
    assert kit.gates.put(gate, None)
    assert not kit.gates.put(changed, 3)
    assert not kit.gates.put(changed, 5)
    assert kit.gates.get(gate.owner, gate.name) == gate
    assert kit.gates.put(changed, 4)
    assert kit.gates.get(gate.owner, gate.name) == changed


def test_a_repeated_put_knows_its_own_row(kit: Kit) -> None:
    gate = a_full_gate(kit.new_owner(), revision=1)
    assert kit.gates.put(gate, None)
    assert kit.gates.put(gate, None)
    changed = dataclasses.replace(gate.next_revision(), holders=())
    assert kit.gates.put(changed, 1)
    assert kit.gates.put(changed, 1), "with an expiry that the store rounds up"
    assert not kit.gates.put(dataclasses.replace(changed, active="another"), 1)


def test_members_can_go_again(kit: Kit) -> None:
    full = a_full_gate(kit.new_owner())
    empty = a_gate(full.owner, revision=full.revision + 1)
    assert kit.gates.put(full, None)
    assert kit.gates.put(empty, full.revision)
    assert kit.gates.get(full.owner, full.name) == empty


def test_an_expiry_is_kept_to_the_second_and_never_early(kit: Kit) -> None:
    gate = a_gate(kit.new_owner(), expires_at=NOW)
    assert kit.gates.put(gate, None)
    stored = kit.gates.get(gate.owner, gate.name)
    assert stored is not None
    assert stored.expires_at == NOW.replace(microsecond=0) + timedelta(seconds=1)


def test_one_of_many_first_passers_wins(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    gates = [a_gate(owner, active=f"run {number}") for number in range(CONTENDERS)]
    won = contend(lambda number: threaded_kit.gates.put(gates[number], None))
    assert won.count(True) == 1
    assert threaded_kit.gates.get(owner, gates[0].name) == gates[won.index(True)]


def test_one_of_many_passers_of_a_revision_wins(threaded_kit: Kit) -> None:
    first = a_gate(threaded_kit.new_owner())
    assert threaded_kit.gates.put(first, None)
    gates = [
        dataclasses.replace(first.next_revision(), active=f"run {number}")
        for number in range(CONTENDERS)
    ]
    won = contend(lambda number: threaded_kit.gates.put(gates[number], first.revision))
    assert won.count(True) == 1
    assert threaded_kit.gates.get(first.owner, first.name) == gates[won.index(True)]
