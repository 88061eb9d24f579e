"""The project's frame: pins, hashes, the Makefile, what CI calls."""

import gzip
import json
import os
import re
import subprocess
import tomllib
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import carillon.console
from carillon.cdk.app import build
from tests import vendored
from tests.e2e.__main__ import STACKS
from tests.infra.stacks import REPOSITORY
from tests.lanes import EVERYTHING

REQUIREMENTS = {
    "functions": "infra/carillon/cdk/requirements/functions.txt",
    "development": "infra/requirements/development.txt",
    "ministack": "infra/requirements/ministack.txt",
}


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def pins(name: str) -> dict[str, str]:
    text = (REPOSITORY / REQUIREMENTS[name]).read_text()
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE))


def declared(name: str) -> list[Requirement]:
    """What a lock file is resolved from."""
    content = project()
    base, extras = content["project"]["dependencies"], content["project"]["optional-dependencies"]
    groups = content["dependency-groups"]
    texts = {
        "functions": extras["aws"],
        "development": [*base, *chain.from_iterable(extras.values()), *groups["dev"]],
        "ministack": groups["ministack"],
    }[name]
    return [each for each in map(Requirement, texts) if each.name != "carillon"]


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_requirements_are_locked_as_declared(name: str) -> None:
    locked = pins(name)
    for each in declared(name):
        assert each.specifier.contains(locked[each.name]), each


def test_the_layer_has_the_versions_that_tests_run_with() -> None:
    assert pins("functions").items() <= pins("development").items()


def test_metadata_give_ranges_that_begin_with_what_was_tested() -> None:
    content = project()["project"]
    public = chain(content["dependencies"], *content["optional-dependencies"].values())
    for each in map(Requirement, public):
        bounds = {one.operator: one.version for one in each.specifier}
        assert each.name == "carillon" or ">=" in bounds, each
        # tzdata counts in years: there is no major version to stop at.
        assert each.name in {"carillon", "tzdata"} or "<" in bounds, each


def test_the_base_install_knows_no_aws() -> None:
    extras = project()["project"]["optional-dependencies"]
    ours = {Requirement(one).name for one in project()["project"]["dependencies"]}
    assert ours & {Requirement(one).name for one in extras["aws"]} == {"tzdata"}


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_requirement_has_hashes(name: str) -> None:
    text = (REPOSITORY / REQUIREMENTS[name]).read_text()
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    for block in filter(str.strip, blocks):
        assert "--hash=sha256:" in block, block


def test_the_build_system_is_locked_too() -> None:
    (build,) = map(Requirement, project()["build-system"]["requires"])
    assert build.specifier.contains(pins("development")[build.name])


@pytest.mark.parametrize("name", ["package-lock.json", ".npmrc", *REQUIREMENTS.values()])
def test_no_registry_is_named(name: str) -> None:
    text = (REPOSITORY / name).read_text()
    assert "://" not in text
    assert '"resolved"' not in text


def test_what_npm_installs_is_pinned() -> None:
    package = json.loads((REPOSITORY / "package.json").read_text())
    lock = json.loads((REPOSITORY / "package-lock.json").read_text())
    assert package["devDependencies"].keys() >= {"aws-cdk", "dynalite", "preact"}
    for name, version in package["devDependencies"].items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version


def test_vendored_files_are_those_of_the_locked_packages() -> None:
    """`make vendor` copies them; `npm ci` has checked by the lock what it installed."""
    for path, text in vendored.files().items():
        assert sha256(path.read_bytes()).digest() == sha256(text.encode()).digest(), path.name


def test_the_console_is_light() -> None:
    """Each file compressed by itself, as it is sent."""
    files = carillon.console.assets()
    sizes = {name: len(gzip.compress(content, 9)) for name, content in files.items()}
    assert sum(sizes.values()) <= 60 * 1024, sizes


def test_mypy_follows_the_parts_of_the_cdk_that_are_imported() -> None:
    """The others are of the type Any to it, and with them all that is done with them."""
    (followed,) = (
        each["module"]
        for each in project()["tool"]["mypy"]["overrides"]
        if each["follow_imports"] == "normal"
    )
    imported = {
        module
        for path in (REPOSITORY / "infra" / "carillon").rglob("*.py")
        for module in re.findall(r"^from aws_cdk import (aws_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(imported) > 10
    assert {f"aws_cdk.{module}" for module in imported} <= set(followed)


def test_the_cdk_command_starts_the_app() -> None:
    """That this synthesises is seen by every other test here, and by the deployed stacks."""
    command = json.loads((REPOSITORY / "cdk.json").read_text())["app"]
    assert command == f".venv/bin/python -m {build.__module__}"


def test_help_tells_of_every_target() -> None:
    text = (REPOSITORY / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    told = re.findall(r"^  make (\S+)\s+\S", done.stdout, re.MULTILINE)
    assert sorted(told) == sorted(phony.split())


def test_no_test_is_left_out_of_make_test() -> None:
    files = [*(REPOSITORY / "tests").rglob("test_*.py")]
    assert files
    assert [f for f in files if sum(part.holds(f) for part in EVERYTHING) != 1] == []


def test_no_test_is_left_out_of_the_shared_stacks() -> None:
    sessions = [paths for rows in STACKS for row in rows for paths in row]
    named = [REPOSITORY / path for paths in sessions for path in paths.split()]
    files = (REPOSITORY / "tests" / "e2e").glob("[!c]*/test_*.py")
    found = [[path for path in named if path in (file, file.parent)] for file in files]
    assert len(found) > 8
    assert {len(each) for each in found} == {1}


def test_ci_calls_make_test_with_no_aws_set_up(tmp_path: Path) -> None:
    stand_in = tmp_path / "make"
    stand_in.write_text('#!/bin/sh\necho "called: $*"\nenv\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        [REPOSITORY / ".ci" / "run"],
        env={
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            "AWS_PROFILE": "work",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("called: test\n")
    assert "AWS_" not in done.stdout
