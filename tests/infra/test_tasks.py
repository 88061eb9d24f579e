"""Users' tasks: what their layer holds, and what synthesis finds in it."""

import json
import sys
import tarfile
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

from carillon.cdk import Carillon, Tasks
from carillon.cdk.discovery import discover
from carillon.cdk.emulation import EMULATION
from carillon.errors import ConfigurationError
from tests.infra.stacks import referred
from tests.infra.test_construct import app, synthesized

REPORT = """
from carillon.tasks import task
from shop.money import CURRENCY

@task
def report(payload, context):
    return CURRENCY
"""
EXECUTORS = {"executor-high", "executor-normal", "executor-low", "executor-slow"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on the path with tasks in `shop.jobs`."""
    files = {
        "shop/__init__.py": "raise RuntimeError('imported by synthesis')",
        "shop/money.py": "CURRENCY = 'EUR'",
        "shop/jobs/__init__.py": "",
        "shop/jobs/daily.py": REPORT,
        "shop/jobs/__main__.py": "",
        "shop/jobs/data.json": "{}",
        "shop/web/page.py": "",
        "others/__init__.py": "",
        "requirements.txt": "",
    }
    write(tmp_path, **files)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(directory: Path) -> set[str]:
    found = {path.relative_to(directory) for path in directory.rglob("*") if path.is_file()}
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def test_a_package_goes_along_whole_but_for_what_is_excluded(shop: Path, tmp_path: Path) -> None:
    tasks = Tasks.from_package("shop.jobs", exclude=["shop/web/*", "*.json"])
    tasks.build(tmp_path / "built")
    assert tasks.modules == ("shop.jobs", "shop.jobs.daily")
    python = {path for path in names(shop) if path.startswith("shop/") and "web" not in path}
    assert names(tmp_path / "built") == {path for path in python if path.endswith(".py")}
    compiled = (tmp_path / "built" / "shop" / "jobs" / "__pycache__").iterdir()
    assert len([*compiled]) == 3


def test_a_folder_goes_along_with_the_modules_that_are_named(shop: Path, tmp_path: Path) -> None:
    tasks = Tasks.from_directory(shop / "shop", modules=["money"], exclude=["__init__.py"])
    tasks.build(tmp_path / "built")
    assert {"money.py", "jobs/daily.py"} < names(tmp_path / "built")


def test_the_digest_is_that_of_the_content(shop: Path) -> None:
    def digest() -> str:
        return Tasks.from_package("shop.jobs", requirements=shop / "requirements.txt").digest()

    first = digest()
    assert digest() == first
    assert Tasks.from_package("shop.jobs").digest(sys.executable) != first
    write(shop, **{"shop/money.py": "CURRENCY = 'USD'"})
    second = digest()
    write(shop, **{"requirements.txt": "tzdata"})
    assert len({first, second, digest()}) == 3


def test_the_digest_is_that_of_requirements_in_other_files_too(shop: Path) -> None:
    """Else a change there would deploy the layer of before."""
    digests = set()
    for version in ("1", "2"):
        for changed in ("base.in", "pins/exact.txt"):
            others = {"base.in": f"-r {shop}/requirements.txt", "pins/exact.txt": "money==1"}
            write(shop, **{"requirements.txt": "-r base.in\n--constraint=pins/exact.txt\n"})
            write(shop, **{**others, changed: f"money=={version}.1"})
            tasks = Tasks.from_package("shop.jobs", requirements=shop / "requirements.txt")
            digests.add(tasks.digest())
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("package", "said"),
    [("shops", "no package shops"), ("shop.job", "no module shop.job"), ("shop.web.x", "module")],
)
def test_a_package_that_is_not_there_is_named(shop: Path, package: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Tasks.from_package(package)


def test_requirements_that_are_not_there_are_named(shop: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no requirements .*missing\.txt"):
        Tasks.from_package("shop.jobs", requirements="missing.txt")


def test_a_requirement_without_a_wheel_is_named(shop: Path, tmp_path: Path) -> None:
    """Installed for Lambda as for this machine: nothing is ever built."""
    source, links = tmp_path / "no_wheel-1.0", tmp_path / "links"
    write(source, **{"PKG-INFO": "Metadata-Version: 2.1\nName: no-wheel\nVersion: 1.0\n"})
    links.mkdir()
    with tarfile.open(links / "no_wheel-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    listed = f"--no-index\n--find-links {links}\nno-wheel==1.0\n"
    write(shop, **{"requirements.txt": listed})
    tasks = Tasks.from_package("shop.jobs", requirements=shop / "requirements.txt")
    with pytest.raises(ConfigurationError, match=r"no-wheel==1\.0 has no usable wheels"):
        tasks.build(tmp_path / "built")


def found_in(folder: Path, text: str) -> tuple[str, ...]:
    write(folder, **{"jobs.py": text})
    tasks = Tasks.from_directory(folder, modules=["jobs"])
    return discover(tasks.modules, tasks).names


def test_the_tasks_are_known_at_synthesis(tmp_path: Path) -> None:
    text = "from carillon.tasks import task\n@task(name='b')\ndef f(p, c): ...\n"
    assert found_in(tmp_path, f"{text}@task\ndef a(p, c): print('told')\n") == ("a", "b")
    assert "jobs" not in sys.modules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import json\nimport nothing_of_the_kind\n", "jobs.py, line 2: ModuleNotFoundError"),
        ("def f(:\n", "jobs.py, line 1: SyntaxError"),
        ("import sys\n\nsys.exit(3)", "jobs.py, line 3: SystemExit: 3"),
        ("import os\nos._exit(4)", "exit code 4"),
        (
            "from carillon.tasks import task\n@task\ndef f(p, c): ...\n@task\ndef f(p, c): ...\n",
            "jobs.py, line 4: TaskRegistrationError: jobs.f cannot be the task 'f'",
        ),
        (
            "from carillon.tasks import task\n@task\nasync def f(p, c): ...\n",
            "jobs.py, line 2: TaskRegistrationError: the task 'f' is async",
        ),
    ],
)
def test_a_module_that_cannot_be_imported_fails_synthesis_with_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        found_in(tmp_path, text)
    assert said in str(raised.value)


def stack_with_tasks(directory: Path, **context: object) -> cdk.Stack:
    stack = cdk.Stack(app(directory, **context), "Shop")
    tasks = Tasks.from_directory(directory.parent / "jobs", modules=["jobs"])
    scheduler = Carillon(stack, "Scheduler", tasks=tasks)
    s3.Bucket(stack, "Bucket").grant_read(scheduler.task_role)
    return stack


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    write(
        tmp_path, **{"jobs/jobs.py": "from carillon.tasks import task\n@task\ndef x(p, c): ...\n"}
    )
    return tmp_path


def test_executors_alone_have_the_layer_and_its_modules(jobs: Path) -> None:
    stack = synthesized(stack_with_tasks(jobs / "out"))
    layers = stack.properties("Lambda::LayerVersion")
    (layer,) = [name for name, each in layers.items() if "Tasks" in str(each["Description"])]
    for name, function in stack.functions().items():
        variables = function["Environment"]["Variables"]
        assert variables["TASK_MODULES"] == "jobs", "no samples"
        assert variables["TASK_FOLDER"] == "/opt/tasks"
        has_layer = layer in map(referred, function["Layers"])
        assert has_layer is (name in EXECUTORS | {"dead-letter-consumer"})
    (parameter,) = stack.properties("SSM::Parameter").values()
    assert parameter["Value"] == "x"


def test_an_emulator_is_told_where_the_folder_is(jobs: Path) -> None:
    emulation = {"layer_directory": "/somewhere", "layer_python": sys.executable}
    stack = synthesized(stack_with_tasks(jobs / "out", **{EMULATION: json.dumps(emulation)}))
    folders = {
        each["Environment"]["Variables"]["TASK_FOLDER"] for each in stack.functions().values()
    }
    (folder,) = folders
    assert names(Path(folder)) == {"jobs.py"}


def test_tasks_may_do_what_is_granted_to_their_role_which_executors_alone_assume(
    jobs: Path,
) -> None:
    stack = synthesized(stack_with_tasks(jobs / "out"))
    (task_role,) = [name for name in stack.resources("IAM::Role") if "TaskRole" in name]
    policy = stack.properties("IAM::Role")[task_role]["AssumeRolePolicyDocument"]
    trusted = {
        referred(arn)
        for statement in policy["Statement"]
        for arn in statement["Principal"].values()
    }
    roles = {name: referred(each["Role"]) for name, each in stack.functions().items()}
    assert trusted == {roles[name] for name in EXECUTORS}
    granted = [
        statement["Action"]
        for each in stack.properties("IAM::Policy").values()
        if task_role in map(referred, each["Roles"])
        for statement in each["PolicyDocument"]["Statement"]
    ]
    assert granted == [["s3:GetObject*", "s3:GetBucket*", "s3:List*"]]
    for name, function in stack.functions().items():
        assert ("TASK_ROLE_ARN" in function["Environment"]["Variables"]) is (name in EXECUTORS)
