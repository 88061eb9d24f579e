"""docs/security.md: its tables are those of routes and template, and each of its sentences names a
test."""

import re
from collections.abc import Iterator

import pytest

from tests.infra.stacks import REPOSITORY, SynthesizedStack
from tests.infra.test_permissions import ALLOWED, EXECUTORS, stated
from tests.unit.api.conftest import new_world

PAGE = (REPOSITORY / "docs" / "security.md").read_text()
HELD = PAGE[: PAGE.index("## What is not promised")]


def between(mark: str) -> str:
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", PAGE, re.DOTALL)
    assert found is not None, mark
    return found[1].strip()


def sentences() -> list[str]:
    """The items of lists, whole."""
    return re.findall(r"^- (.+?)(?=\n(?:- |\n|$))", HELD, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("sentence", sentences())
def test_each_sentence_names_a_test(sentence: str) -> None:
    """That it exists says tests/unit/test_docs.py."""
    assert re.search(r"`tests/[\w/]+\.py(::\w+)?`", sentence), sentence


def operations() -> Iterator[tuple[str, str]]:
    """The role of each operation, and the operation."""
    for path, methods in new_world().api().describe()["paths"].items():
        for method, operation in methods.items():
            role = operation.get("x-carillon-role", "open")
            switches = operation.get("x-carillon-role-with", {}).items()
            others = "".join(f" ({name}: {other})" for name, other in switches)
            yield role, f"`{method.upper()} {path}`{others}"


def test_the_table_of_operations_is_that_of_the_routes() -> None:
    found = sorted(operations())
    rows = [
        f"| {role} | {', '.join(what for each, what in found if each == role)} |"
        for role in ("open", "any", "viewer", "editor", "admin", "operator")
    ]
    table = "\n".join(["| role | operations |", "|---|---|", *rows])
    assert between("operations") == table, f"docs/security.md is to have:\n{table}"


COLUMNS = {"jobs": "JobsTable", "wheel": "WheelTable", "runs": "RunsTable"}
KINDS = {
    "reads": {"GetItem", "BatchGetItem", "Query"},
    "writes": {"PutItem", "BatchWriteItem"},
    "deletes": {"DeleteItem", "BatchWriteItem"},
}


def reach(grants: dict[str, set[str]]) -> list[str]:
    """What a function may do with each table, with lanes, and besides."""
    cells = []
    for resource in COLUMNS.values():
        actions = {each.partition(":")[2] for each in grants.get(resource, ())}
        cells.append(", ".join(kind for kind, of in KINDS.items() if actions & of) or "-")
        assert not actions - set().union(*KINDS.values())
    told = {
        action
        for resource, actions in grants.items()
        if not resource.startswith(tuple(COLUMNS.values()))
        for action in actions
    }
    queues = {"sqs:SendMessage": "sends", "sqs:ReceiveMessage": "receives"}
    cells.append(", ".join(word for action, word in queues.items() if action in told))
    rest = sorted(each for each in told if not each.startswith("sqs:"))
    cells.append(", ".join(f"`{each}`" for each in rest) or "-")
    return cells


def test_the_table_of_functions_is_that_of_the_template(production: SynthesizedStack) -> None:
    rows = []
    for name in ALLOWED:
        if name in EXECUTORS and name != "executor-normal":
            continue  # each lane has one of the same rights
        label = "executors" if name in EXECUTORS else name
        rows.append(f"| {label} | {' | '.join(reach(stated(production, name, 'Allow')))} |")
    head = f"| function | {' | '.join(COLUMNS)} | queues | besides |"
    table = "\n".join([head, "|---" * 6 + "|", *rows])
    assert between("functions") == table, f"docs/security.md is to have:\n{table}"
    one = stated(production, "executor-normal", "Allow")
    for name in EXECUTORS:
        assert reach(stated(production, name, "Allow")) == reach(one)
