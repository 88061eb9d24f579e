"""The wheel, installed in an empty environment, in a project with folders of the same names."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from carillon.cdk import packages
from tests.infra.stacks import REPOSITORY
from tests.infra.test_packages import contents

LOCKED = REPOSITORY / "infra" / "requirements" / "development.txt"
MOST_PACKAGES = 20
"""Of the base install, the wheel apart."""

APP = """\
import aws_cdk as cdk

from carillon.cdk import CarillonStack, Options
from infra.names import STAGE

app = cdk.App(outdir="out")
CarillonStack(app, "Scheduler", Options(stage=STAGE, segments=8))
app.synth()
"""


@dataclass(frozen=True)
class Project:
    """A folder with an environment of its own."""

    folder: Path

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the environment, which is active and knows of no other."""
        return subprocess.run(
            [str(self.folder / "venv" / "bin" / command[0]), *command[1:]],
            cwd=self.folder,
            env={"PATH": f"{self.folder}/venv/bin:/usr/bin:/bin", "HOME": str(Path.home())},
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, program: str) -> str:
        done = self.run("python", "-c", program)
        assert done.returncode == 0, done.stderr
        return done.stdout


def made(folder: Path, requirement: str) -> Project:
    """A project that has packages `infra`, `functions` and `shared` of its own, and what it
    requires in the locked versions."""
    for name in ("infra", "functions", "shared"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    (folder / "infra" / "names.py").write_text('STAGE = "dev"\n')
    (folder / "app.py").write_text(APP)
    uv(["venv", "--quiet", "--python", sys.executable, "venv"], folder)
    install = ["pip", "install", "--quiet", "--no-config", "--python", "venv"]
    uv([*install, "--constraint", str(LOCKED), requirement], folder)
    return Project(folder)


def uv(arguments: Sequence[str], folder: Path) -> None:
    """uv's cache first, so that nothing is fetched when it has everything."""
    for network in (["--offline"], []):
        command = [sys.executable, "-m", "uv", *arguments, *network]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*build, "--directory", str(directory)], cwd=REPOSITORY, check=True)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With the base install."""
    return made(tmp_path_factory.mktemp("project"), str(wheel))


@pytest.fixture(scope="module")
def synthesised(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of such a project's own app, with the extra `cdk`."""
    folder = tmp_path_factory.mktemp("stack")
    done = made(folder, f"carillon[cdk] @ {wheel.as_uri()}").run("python", "app.py")
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_the_command_comes_with_few_packages_and_none_of_aws(project: Project) -> None:
    helped = project.run("carillon", "--help")
    assert "Usage: carillon" in helped.stdout, helped.stderr
    previewed = project.run("carillon", "preview", "0 9 * * 1-5", "--timezone", "Europe/Riga")
    assert previewed.returncode == 0, previewed.stderr
    listed = "from importlib.metadata import distributions as d; print(*[x.name for x in d()])"
    others = {*project.python(listed).split()} - {"carillon"}
    assert "typer" in others
    assert len(others) <= MOST_PACKAGES, sorted(others)
    assert not [name for name in others if "aws" in name or "boto" in name]


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["admin", "release"], "carillon[aws]"),
        (["simulate", "workload.yaml", "--for", "1d"], "carillon[simulate]"),
    ],
)
def test_what_needs_an_extra_names_it(project: Project, command: list[str], extra: str) -> None:
    refused = project.run("carillon", *command)
    assert refused.returncode == 2
    assert f"pip install '{extra}'" in refused.stderr


def test_a_stack_without_its_extra_names_it(project: Project) -> None:
    refused = project.run("python", "-c", "from carillon.cdk import CarillonStack")
    assert "pip install 'carillon[cdk]'" in refused.stderr


def test_tasks_import_the_standard_library_alone(project: Project) -> None:
    loaded = project.python(
        "import sys; from carillon.tasks import task; print(*sys.modules, sep='\\n')"
    )
    names = {name.partition(".")[0] for name in loaded.split()} - {"__main__"}
    assert names - sys.stdlib_module_names == {"carillon"}
    assert [name for name in loaded.split() if name.startswith("carillon.")] == [
        "carillon.errors",
        "carillon.tasks",
    ]


def test_importing_tasks_is_no_more_work_than_importing_asyncio(project: Project) -> None:
    def cpu_seconds(module: str) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        project.python(f"import {module}")
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    ours, others = (min(map(cpu_seconds, 5 * [name])) for name in ("carillon.tasks", "asyncio"))
    assert ours <= others


def test_the_types_come_with_the_wheel(project: Project) -> None:
    (typed,) = project.folder.glob("venv/lib/*/site-packages/carillon/py.typed")
    assert typed.exists()


def test_a_project_with_the_same_folders_synthesises_the_stack(synthesised: Path) -> None:
    template = json.loads((synthesised / "Scheduler.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::DynamoDB::Table") == 3
    assert kinds.count("AWS::Lambda::Function") == 7
    manifest = json.loads((synthesised / "manifest.json").read_text())
    assert manifest["artifacts"]["Scheduler"]["properties"]["stackName"] == "Carillon-dev"
    assert str(REPOSITORY) not in json.dumps([template, manifest])


def test_its_assets_are_those_of_a_checkout(synthesised: Path, tmp_path: Path) -> None:
    packages.build_code(tmp_path / "code")
    (tick,) = synthesised.glob("asset.*/carillon/tick")
    code = tick.parents[1]
    assert contents(code) == contents(tmp_path / "code")
    (layer,) = synthesised.glob("asset.*/python")
    assert (layer / "pynamodb").is_dir()
