"""The rules of the layout that the linters do not know: sizes, roots, and who may ask for the time.

Which way imports go is a matter of import-linter's contracts in pyproject.toml.
"""

import ast
import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / name for name in ("shared", "functions", "infra")]
CODE = sorted(path for source in SOURCES for path in (source / "carillon").rglob("*.py"))

NONDETERMINISTIC = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("time", "time"),
    ("uuid", "uuid4"),
}

CLOCKS = {"carillon.clock", "carillon.client.clock"}
SETTINGS = {
    "carillon.settings",
    "carillon.client.settings",
    "carillon.executor.task_process.shown",
}
"""Clients run at their users', without the functions' libraries: they have their own of both. Task
processes write the environment of their tasks."""

LATE = ("boto", "carillon.settings", "carillon.simulation", "carillon.stores")
"""What a command imports when it runs, so that the others start without it."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_infra(path: Path) -> bool:
    """All but the simulation, which has a clock of its own."""
    infra = ROOT / "infra" / "carillon"
    return path.is_relative_to(infra) and not path.is_relative_to(infra / "simulation")


def eager_imports_of(path: Path) -> Iterator[str]:
    """What is imported with the module itself: not inside functions, nor for type checking."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_there_is_code_to_check() -> None:
    assert len(CODE) > 200


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_root_holds_a_part_of_the_one_package(source: Path) -> None:
    """An `__init__.py` here would hide the parts in the other roots."""
    assert not (source / "__init__.py").exists()
    assert not (source / "carillon" / "__init__.py").exists()
    assert [*source.rglob("*.py")] == [*(source / "carillon").rglob("*.py")]
    assert importlib.import_module("carillon").__file__ is None


def lists_of_runs_in(path: Path) -> Iterator[int]:
    """The lines that name `runs.list` or `runs.dead_letters` of a store, whoever holds it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in ("list", "dead_letters"):
            holder = node.value
            name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
            if name.strip("_") == "runs":
                yield node.lineno


def test_lists_of_runs_are_read_by_the_history_only() -> None:
    readers = {name_of(path) for path in CODE if [*lists_of_runs_in(path)]}
    assert readers == {"carillon.services.history"}


def test_no_two_roots_have_a_module_of_one_name() -> None:
    twice = {name for name, count in Counter(map(name_of, CODE)).items() if count > 1}
    assert twice == set()


def test_every_folder_is_a_package() -> None:
    """Without an `__init__.py` it would be a namespace of its own, which linters pass over."""
    folders = {path.parent for path in CODE} - {source / "carillon" for source in SOURCES}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_modules_are_those_of_this_checkout() -> None:
    for name in ("carillon.clock", "carillon.tick", "carillon.cli"):
        assert Path(importlib.import_module(name).__file__ or "").is_relative_to(ROOT)


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_imports_are_absolute(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.ImportFrom) or node.level == 0, node.lineno


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_commands_start_without_what_others_need(path: Path) -> None:
    module = name_of(path)
    # `live` is itself imported late, by `simulate`.
    if not module.startswith("carillon.cli") or module == "carillon.cli.commands.simulation.live":
        return
    for imported in eager_imports_of(path):
        assert not imported.startswith(LATE), f"{module} imports {imported}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_only_the_clock_and_handlers_ask_for_the_time(path: Path) -> None:
    module = name_of(path)
    if module in CLOCKS or is_infra(path) or path.name == "handler.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            asked = (node.value.id, node.attr)
            assert asked not in NONDETERMINISTIC, f"{module}:{node.lineno} asks {asked}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_only_settings_reads_the_environment(path: Path) -> None:
    module = name_of(path)
    if module in SETTINGS or is_infra(path):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("environ", "getenv"), f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    is_generated = "writes this file" in text.partition("\n\n")[0]
    assert is_generated or len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 45, f"{node.name} in {path.name}"


def test_folders_stay_small() -> None:
    modules = [path for path in CODE if path.name != "__init__.py"]
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules)
    assert {folder: count for folder, count in counts.items() if count > 15} == {}


def test_docstrings_lead_with_their_subject() -> None:
    """Write "The end of a run" for "What becomes of a run", and "True if" for "Whether"."""
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                first = (ast.get_docstring(node) or "").partition(" ")[0]
                found = f"{name_of(path)}: {first}"
                assert first not in {"What", "Whether", "How", "Which", "When", "Who"}, found
