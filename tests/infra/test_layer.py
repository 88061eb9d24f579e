import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra import layer
from infra.options import Options
from tests.infra.stacks import default_context

ELF_MACHINE_ARM64 = 183
LARGEST_LAYER_BYTES = 100 * 1024 * 1024
"""Of the 250 MB that Lambda allows a function and its layers, unzipped."""


def test_the_layer_for_lambda_holds_every_dependency_for_arm64(tmp_path: Path) -> None:
    layer.install_dependencies(tmp_path)
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+)", layer.REQUIREMENTS.read_text(), re.MULTILINE)
    installed = {path.name for path in tmp_path.glob("*.dist-info")}
    expected = {f"{name.replace('-', '_')}-{version}.dist-info" for name, version in pinned}
    assert {name.lower() for name in installed} == expected
    libraries = list(tmp_path.rglob("*.so"))
    assert libraries
    for library in libraries:
        machine = int.from_bytes(library.read_bytes()[18:20], "little")
        assert machine == ELF_MACHINE_ARM64, library
        assert f"cpython-{layer.PYTHON_VERSION.replace('.', '')}-" in library.name
    sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(sizes) < LARGEST_LAYER_BYTES


def test_an_interpreter_of_this_machine_gets_its_own_wheels(tmp_path: Path) -> None:
    layer.install_dependencies(tmp_path, sys.executable)
    command = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = [{str(tmp_path)!r}]\n"]
    command[-1] += "import pydantic_core; print(pydantic_core.__file__)"
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(tmp_path))


def test_a_failed_installation_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="could not be installed"):
        layer.install_dependencies(tmp_path, str(tmp_path / "no-python"))


def test_the_search_path_layer_puts_its_directory_before_all_others(tmp_path: Path) -> None:
    directory = tmp_path / "dependencies of 'mine'"
    directory.mkdir()
    layer.write_search_path(tmp_path / "layer", str(directory))
    site = tmp_path / "layer" / layer.SITE_DIRECTORY
    program = f"import site, sys; site.addsitedir({str(site)!r}); print(sys.path[0])"
    command = [sys.executable, "-I", "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.strip() == str(directory)


@pytest.mark.parametrize("key", ["local_layer_python", "layer_directory"])
def test_layers_of_different_content_have_different_hashes(key: str) -> None:
    options = Options.from_context(default_context())
    other = Options.from_context({**default_context(), key: "/somewhere"})
    assert layer._asset_hash(options) != layer._asset_hash(other)
    unrelated = dataclasses.replace(options, segments=8)
    assert layer._asset_hash(options) == layer._asset_hash(unrelated)


def test_a_changed_requirement_changes_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options.from_context(default_context())
    before = layer._asset_hash(options)
    changed = tmp_path / "functions.txt"
    changed.write_text(layer.REQUIREMENTS.read_text() + "\n")
    monkeypatch.setattr(layer, "REQUIREMENTS", changed)
    assert layer._asset_hash(options) != before


def test_the_runtime_is_the_python_that_wheels_are_chosen_for() -> None:
    assert layer.runtime().name == f"python{layer.PYTHON_VERSION}"
