"""The wheel, installed in an empty environment, in a project with folders of the same names."""

import json
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from carillon.cdk import packages
from tests.infra.stacks import REPOSITORY
from tests.infra.test_packages import contents
from tests.support.wheel import Project, built, installed

MOST_PACKAGES = 20
"""Of the base install, the wheel apart."""
MOST_OF_A_CLIENT = 8
"""Of these, what a client needs."""

APP = """\
import aws_cdk as cdk

from carillon.cdk import Carillon, Tasks
from infra.names import STAGE

app = cdk.App(outdir="out")
stack = cdk.Stack(app, "Billing")
tasks = Tasks.from_package("shared.jobs", requirements="requirements.txt")
Carillon(stack, "Scheduler", stage=STAGE, segments=8, tasks=tasks)
app.synth()
"""


def made(folder: Path, requirement: str) -> Project:
    """A project that has packages `infra`, `functions` and `shared` of its own, and what it
    requires in the locked versions."""
    for name in ("infra", "functions", "shared"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    (folder / "infra" / "names.py").write_text('STAGE = "dev"\n')
    (folder / "app.py").write_text(APP)
    (folder / "shared" / "jobs.py").write_text(JOBS)
    (folder / "requirements.txt").write_text(NATIVE)
    return installed(folder, requirement)


NATIVE = "".join(
    line.partition(" ")[0] + "\n"
    for line in packages.REQUIREMENTS.read_text().splitlines()
    if line.startswith("pydantic-core==")
)
"""A requirement with a wheel for each platform, which set-up has fetched."""

JOBS = """\
import pydantic_core

from carillon.tasks import task

@task
def report(payload, context): ...
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"))


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
    refused = project.run("python", "-c", "from carillon.cdk import Carillon")
    assert "pip install 'carillon[cdk]'" in refused.stderr


def loaded_by(project: Project, statement: str) -> list[str]:
    """The modules that a program of this statement loads, beside what Python has at its start."""
    program = (
        f"import sys; before = {{*sys.modules}}; {statement}; print(*{{*sys.modules}} - before)"
    )
    return sorted(project.python(program).split())


def test_tasks_import_the_standard_library_alone(project: Project) -> None:
    loaded = loaded_by(project, "from carillon.tasks import task")
    names = {name.partition(".")[0] for name in loaded}
    assert names - sys.stdlib_module_names == {"carillon"}
    assert [name for name in loaded if name.startswith("carillon.")] == [
        "carillon.errors",
        "carillon.tasks",
    ]


def test_a_receiver_of_webhooks_imports_the_standard_library_alone(project: Project) -> None:
    loaded = loaded_by(project, "from carillon.client import verify")
    names = {name.partition(".")[0] for name in loaded}
    assert names - sys.stdlib_module_names == {"carillon"}
    assert not names & {"asyncio", "ssl"}


def test_a_client_needs_the_library_of_http_alone(project: Project) -> None:
    loaded = project.python(
        "import sys; from importlib.metadata import packages_distributions\n"
        "from carillon.client import AsyncClient, Client\n"
        "Client('https://a.test', 't'), AsyncClient('https://a.test', 't')\n"
        "known = packages_distributions()\n"
        "print(*{one for name in sys.modules for one in known.get(name, ())})"
    )
    packages = {*loaded.split()} - {"carillon"}
    assert "httpx2" in packages
    assert len(packages) <= MOST_OF_A_CLIENT, sorted(packages)
    assert not packages & {"pydantic", "typer", "rich", "PyYAML", "boto3"}


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


PLUGIN = """\
import pytest
import tasks

@pytest.mark.carillon(start="2027-03-01")
def test_add(carillon):
    target = {"type": "task", "name": "add"}
    carillon.put("add", schedule="@hourly", target=target, payload={"a": 1})
    carillon.run("add", payload={"a": 2})
    carillon.run_for("PT1H")
    assert [run.result for run in carillon.runs("add")] == ["3", "2"]
"""

ADDING = """\
from carillon.tasks import task

@task
def add(payload, context):
    return payload["a"] + 1
"""


def test_its_plugin_is_known_to_pytest(wheel: Path, tmp_path: Path) -> None:
    """Its fixture and its marker are there, and nothing is warned of."""
    project = installed(tmp_path, f"carillon[testing] @ {wheel.as_uri()}")
    (tmp_path / "tasks.py").write_text(ADDING)
    (tmp_path / "test_tasks.py").write_text(PLUGIN)
    done = project.run("python", "-m", "pytest", "-q", "-W", "error", "--strict-markers", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_project_with_the_same_folders_synthesises_the_stack(synthesised: Path) -> None:
    template = json.loads((synthesised / "Billing.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::DynamoDB::Table") == 3
    assert kinds.count("AWS::Lambda::Function") == 7
    manifest = json.loads((synthesised / "manifest.json").read_text())
    assert str(REPOSITORY) not in json.dumps([template, manifest])


def test_its_assets_are_those_of_a_checkout(synthesised: Path, tmp_path: Path) -> None:
    packages.build_code(tmp_path / "code")
    (tick,) = synthesised.glob("asset.*/carillon/tick")
    code = tick.parents[1]
    assert contents(code) == contents(tmp_path / "code")
    (layer,) = synthesised.glob("asset.*/python")
    assert (layer / "pynamodb").is_dir()


def test_its_tasks_are_a_layer_for_lambda_beside_what_all_processes_see(synthesised: Path) -> None:
    (tasks,) = synthesised.glob("asset.*/tasks")
    assert [path.name for path in tasks.parent.iterdir()] == ["tasks"]
    assert (tasks / "shared" / "jobs.py").read_text() == JOBS
    (compiled,) = (tasks / "shared" / "__pycache__").glob("jobs.*.pyc")
    assert b"/opt/tasks/shared/jobs.py" in compiled.read_bytes()
    (native,) = (tasks / "pydantic_core").glob("*.so")
    assert "aarch64" in native.name
