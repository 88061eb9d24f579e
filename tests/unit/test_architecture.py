"""The rules of the layout, executed: which way imports go, and who may ask for time and chance."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted(
    path for folder in ("shared", "functions", "infra") for path in (ROOT / folder).rglob("*.py")
)

LAYERS = [
    {"shared.errors", "shared.clock"},
    {"shared.recurrence", "shared.tasks"},
    {"shared.domain"},
    {"shared.settings", "shared.telemetry", "shared.stores"},
    {"shared.filing", "shared.redriving", "shared.missing"},
    {"shared.simulation"},
    {"functions"},
]
"""From the bottom up: a module may import its own layer and those below."""

NONDETERMINISTIC = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("time", "time"),
    ("uuid", "uuid4"),
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module


def eager_imports_of(path: Path) -> Iterator[str]:
    """What is imported with the module itself: not inside functions, nor for type checking."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def layer_of(module: str) -> int | None:
    for number, prefixes in enumerate(LAYERS):
        if any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes):
            return number
    return None


def test_there_is_code_to_check() -> None:
    assert len(CODE) > 50


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    module = name_of(path)
    own = layer_of(module)
    for imported in imports_of(path):
        other = layer_of(imported)
        if own is not None:
            assert not imported.startswith(("infra", "tests")), f"{module} imports {imported}"
            if other is not None:
                assert other <= own, f"{module} imports {imported} from a layer above"
        if module.startswith("functions.") and imported.startswith("functions."):
            assert module.split(".")[1] == imported.split(".")[1], f"{module} imports {imported}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_the_cli_and_the_local_stack_reach_functions_only_from_outside(path: Path) -> None:
    module = name_of(path)
    if module.startswith(("infra.cli", "infra.local")):
        for imported in imports_of(path):
            assert not imported.startswith(("functions", "shared.filing"))
            is_admin = module.startswith("infra.cli.admin")
            assert is_admin or not imported.startswith("shared.stores"), f"{module} imports it"
        # Other commands start without AWS's libraries.
        for imported in eager_imports_of(path):
            assert module.startswith("infra.local") or not imported.startswith(
                ("boto", "shared.stores", "shared.settings")
            ), f"{module} imports {imported}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_simulations_stand_apart(path: Path) -> None:
    module = name_of(path)
    if module.startswith(("infra.simulation", "shared.simulation")):
        return
    for imported in imports_of(path):
        if imported.startswith(("infra.simulation", "shared.simulation")):
            assert module == "infra.cli.simulate", f"{module} imports {imported}"
    # Other commands start without it, and this one says at once what is wrong with its options.
    for imported in eager_imports_of(path):
        assert not imported.startswith(("infra.simulation", "shared.simulation")), module


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_each_library_has_its_place(path: Path) -> None:
    module = name_of(path)
    for imported in imports_of(path):
        library = imported.split(".")[0]
        if library == "pynamodb":
            assert module.startswith("shared.stores.dynamo")
        if library == "greenlet":
            assert module.startswith("shared.simulation")
        if library == "yaml":
            assert module.startswith("infra.simulation")
        # Peers and oracle of the engine: for tests and benchmarks only.
        assert library not in ("cronsim", "croniter", "apscheduler"), module
        if library in ("random", "uuid", "secrets"):
            assert module == "shared.clock" or module.startswith("infra.")


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_only_the_clock_and_handlers_ask_for_the_time(path: Path) -> None:
    module = name_of(path)
    if module == "shared.clock" or module.startswith("infra.") or path.name == "handler.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            asked = (node.value.id, node.attr)
            assert asked not in NONDETERMINISTIC, f"{module}:{node.lineno} asks {asked}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_only_settings_reads_the_environment(path: Path) -> None:
    module = name_of(path)
    if module == "shared.settings" or module.split(".")[0] == "infra":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("environ", "getenv"), f"{module}:{node.lineno}"


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 45, f"{node.name} in {path.name}"
