"""What Lambda gets: the code and the dependencies, with bytecode, and the runtime they are for."""

import ast
import importlib.util
import marshal
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import CodeType

import pytest

from carillon.cdk import assets, packages
from carillon.cdk.emulation import ON_AWS, Emulation
from carillon.cdk.options import Options
from carillon.cdk.runtime import chosen_python, runtime_of
from carillon.cdk.tasks import Tasks
from carillon.errors import ConfigurationError
from tests.infra.stacks import REPOSITORY

CODE_ROOTS = (REPOSITORY / "shared", REPOSITORY / "functions")
ELF_MACHINE_ARM64 = 183
LARGEST_LAYER_BYTES = 48 * 1024 * 1024
"""Of the 250 MB that Lambda allows a function and its layers, unzipped."""
UNCHECKED_HASH = 0b01
"""The flags of a `.pyc` that holds its source's hash, which nobody compares (PEP 552)."""


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What AWS gets of the dependencies."""
    directory = tmp_path_factory.mktemp("arm64") / "python"
    packages.build_layer(directory)
    return directory


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What AWS gets of the functions."""
    directory = tmp_path_factory.mktemp("code")
    packages.build_code(directory)
    return directory


def test_the_layer_for_lambda_holds_every_dependency_for_arm64(layer: Path) -> None:
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+)", packages.REQUIREMENTS.read_text(), re.MULTILINE)
    installed = {path.name for path in layer.glob("*.dist-info")}
    expected = {f"{name.replace('-', '_')}-{version}.dist-info" for name, version in pinned}
    assert {name.lower() for name in installed} == expected
    libraries = list(layer.rglob("*.so"))
    assert libraries
    for library in libraries:
        machine = int.from_bytes(library.read_bytes()[18:20], "little")
        assert machine == ELF_MACHINE_ARM64, library
        assert f"cpython-{packages.PYTHON_VERSION.replace('.', '')}-" in library.name
    sizes = [path.stat().st_size for path in layer.rglob("*") if path.is_file()]
    assert sum(sizes) < LARGEST_LAYER_BYTES


def test_the_code_is_that_of_the_functions_and_nothing_else(code: Path) -> None:
    packaged = {path.relative_to(code): path.read_bytes() for path in code.rglob("*.py")}
    # The client is for those who call the API.
    assert packaged == {
        path.relative_to(root): path.read_bytes()
        for root in CODE_ROOTS
        for path in root.rglob("*.py")
        if "client" not in path.relative_to(root).parts
    }
    assert [path.name for path in code.iterdir()] == ["carillon"]


@pytest.mark.parametrize(("kind", "deployed_at"), [("layer", "/opt/python"), ("code", "/var/task")])
def test_every_module_has_bytecode_that_is_taken_unchecked(
    request: pytest.FixtureRequest, kind: str, deployed_at: str
) -> None:
    """Of this interpreter, with no path of this machine inside."""
    directory: Path = request.getfixturevalue(kind)
    modules = list(directory.rglob("*.py"))
    assert len(modules) > 100
    for module in modules:
        compiled = Path(importlib.util.cache_from_source(str(module)))
        content = compiled.read_bytes()
        assert content[:4] == importlib.util.MAGIC_NUMBER
        assert int.from_bytes(content[4:8], "little") == UNCHECKED_HASH
        assert content[8:16] == importlib.util.source_hash(module.read_bytes())
    loaded = marshal.loads(content[16:])
    assert isinstance(loaded, CodeType)
    assert loaded.co_filename == f"{deployed_at}/{module.relative_to(directory).as_posix()}"


@pytest.mark.parametrize("kind", ["layer", "code"])
def test_what_is_built_twice_has_the_same_bytes(
    request: pytest.FixtureRequest, kind: str, tmp_path: Path
) -> None:
    first: Path = request.getfixturevalue(kind)
    build = packages.build_layer if kind == "layer" else packages.build_code
    build(tmp_path / "elsewhere")
    assert contents(first) == contents(tmp_path / "elsewhere")


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


ASKS = {"client", "AwsCaller", "_ask"}
"""What takes a service's name first, in the functions' code."""


def services_called() -> Iterator[str]:
    for root in CODE_ROOTS:
        for path in root.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and node.args:
                    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    first = node.args[0]
                    if called in ASKS and isinstance(first, ast.Constant):
                        yield str(first.value)


def test_the_services_that_are_kept_are_those_that_the_functions_call(layer: Path) -> None:
    assert {*services_called(), "dynamodb"} == packages.FUNCTION_SERVICES
    described = layer / "botocore" / "data"
    assert {path.name for path in described.iterdir() if path.is_dir()} == {
        *packages.FUNCTION_SERVICES
    }
    # Where services are, and how they answer in each partition: for whichever service.
    assert {"endpoints.json", "partitions.json"} <= {path.name for path in described.iterdir()}


CLIENT = """
import sys
folders = sys.argv[1].split(":")
sys.path[:0] = folders
import boto3, pydantic_core
assert pydantic_core.__file__.startswith(folders[-1]), "wheels of another platform"
for service in sys.argv[2:]:
    client = boto3.client(service, region_name="eu-west-1")
    print(boto3.__file__.startswith(folders[0]), client.meta.service_model.service_name)
"""


def clients(folders: Sequence[Path], *services: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, "-I", "-c", CLIENT, path, *services]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tasks_have_the_services_of_functions_or_all_with_a_boto3_of_their_own(
    tmp_path: Path,
) -> None:
    packages.build_layer(tmp_path / "python", sys.executable)
    layer, own = tmp_path / "python", tmp_path / "tasks"
    wanted = sorted(packages.FUNCTION_SERVICES)
    done = clients([layer], *wanted)
    assert done.stdout.splitlines() == [f"True {service}" for service in wanted], done.stderr
    done = clients([layer], "ec2")
    assert "Unknown service: 'ec2'. Valid service names are: batch, dynamodb" in done.stderr
    # As a task process has it: what the tasks require comes before the layer.
    (tmp_path / "jobs.py").write_text("")
    (tmp_path / "requirements.txt").write_text(f"boto3=={version('boto3')}")
    tasks = Tasks.from_directory(
        tmp_path, modules=["jobs"], requirements=tmp_path / "requirements.txt", exclude=["python/*"]
    )
    tasks.build(own, sys.executable)
    done = clients([own, layer], "ec2")
    assert done.stdout.splitlines() == ["True ec2"], done.stderr


def test_a_failed_installation_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="could not be installed"):
        packages.build_layer(tmp_path, str(tmp_path / "no-python"))


def test_the_search_path_layer_puts_its_directory_before_all_others(tmp_path: Path) -> None:
    directory = tmp_path / "dependencies of 'mine'"
    directory.mkdir()
    assets.write_search_path(tmp_path / "layer", str(directory))
    site = tmp_path / "layer" / assets.SITE_DIRECTORY
    program = f"import site, sys; site.addsitedir({str(site)!r}); print(sys.path[0])"
    command = [sys.executable, "-I", "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.strip() == str(directory)


def test_layers_of_different_content_have_different_hashes() -> None:
    different = {
        assets.layer_hash(ON_AWS),
        assets.layer_hash(Emulation(layer_directory="/s3")),
        assets.layer_hash(Emulation(layer_python="/s3")),
    }
    assert len(different) == 3


def test_a_changed_requirement_changes_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = packages.layer_digest()
    changed = tmp_path / "functions.txt"
    changed.write_text(packages.REQUIREMENTS.read_text() + "\n")
    monkeypatch.setattr(packages, "REQUIREMENTS", changed)
    assert packages.layer_digest() != before


def test_changed_code_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in CODE_ROOTS:
        shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    before = packages.code_digest()
    sources = {
        name: tmp_path / "carillon" / packages.installed(name).name for name in packages.CODE
    }
    monkeypatch.setattr(packages, "installed", sources.__getitem__)
    assert packages.code_digest() == before
    with (tmp_path / "carillon" / "settings.py").open("a") as file:
        file.write("\n")
    assert packages.code_digest() != before


def test_the_runtime_is_the_python_that_synthesises() -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert chosen_python("", running) == chosen_python(running, running) == running
    assert runtime_of(running).name == f"python{running}"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python_of_lambda_that_carillon_runs_on_will_do(version: str) -> None:
    assert chosen_python(version, version) == version
    assert runtime_of(version).name == f"python{version}"


def test_another_python_than_the_pinned_one_is_refused_by_both_names() -> None:
    running = packages.PYTHON_VERSION.replace(".", r"\.")
    with pytest.raises(ConfigurationError, match=rf"python: 3\.9 is pinned, but {running} synth"):
        Options(python="3.9")


def test_a_python_that_lambda_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3\.99 synthesises.*: use 3\.11, 3\.12"):
        chosen_python("", "3.99")
