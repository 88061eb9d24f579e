"""The packages for Lambda: the functions' code, and the layer of their dependencies.

Both are built by uv and this interpreter, without Docker, and both hold bytecode: where Lambda
unpacks them nothing can be written, so that every cold start would compile everything anew. Equal
sources give equal bytes, wherever they are built.

`python -m carillon.cdk.packages DIRECTORY` builds what AWS gets of the dependencies; `make setup`
does so once to fill uv's cache, after which synthesis needs no network.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements" / "functions.txt"
PINNED = ("--require-hashes", "--requirement", str(REQUIREMENTS))
PLATFORM = "aarch64-manylinux2014"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
"""That of this interpreter: what it compiles, and what tests run on, is what Lambda runs."""

CODE = (
    "api",
    "clock",
    "domain",
    "errors",
    "executor",
    "garbage",
    "reading",
    "schedules",
    "services",
    "settings",
    "stores",
    "tasks",
    "telemetry",
    "tick",
)
"""The packages and modules of `carillon` that the functions consist of."""
CODE_PATH = "/var/task"
LAYER_PATH = "/opt/python"
"""The folders into which Lambda unpacks the code and the layer's folder `python`."""

FUNCTION_SERVICES = frozenset(
    {
        "batch",
        "dynamodb",
        "ecs",
        "events",
        "lambda",
        "s3",
        "secretsmanager",
        "sesv2",
        "sns",
        "logs",
        "sqs",
        "ssm",
        "stepfunctions",
        "sts",
    }
)
"""The AWS services that the functions call. botocore's descriptions of all the others, four fifths
of the layer, stay away: tasks that call others require a boto3 of their own."""


def build_code(directory: Path) -> None:
    """Fill `directory` with the functions' code and its bytecode."""
    for place, source in _code_files():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, directory / place)
    compile_all(directory, CODE_PATH)


def build_console(directory: Path) -> None:
    """Fill `directory` with the console's files and the function that serves them."""
    for place, source in _files_of(installed("console")):
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, directory / place)
    compile_all(directory, CODE_PATH)


def build_layer(directory: Path, interpreter: str = "") -> None:
    """Fill `directory` with the pinned dependencies, for Lambda or for `interpreter`.

    Raises RuntimeError with uv's words when it fails with the network, too.
    """
    install(directory, interpreter, PINNED)
    _drop_services(directory)
    compile_all(directory, LAYER_PATH, interpreter)


def layer_digest(interpreter: str = "") -> str:
    """A digest of what build_layer makes of these arguments, without making it."""
    return digest_of([REQUIREMENTS.read_text()], interpreter)


def code_digest() -> str:
    """A digest of what build_code makes, without making it."""
    return _digest_of_files(_code_files())


def console_digest() -> str:
    """A digest of what build_console makes, without making it."""
    return _digest_of_files(_files_of(installed("console")))


def _digest_of_files(files: Iterable[tuple[Path, Path]]) -> str:
    sources = [
        [place.as_posix(), hashlib.sha256(source.read_bytes()).hexdigest()]
        for place, source in files
    ]
    return digest_of([sources])


def _identity(interpreter: str) -> list[str]:
    """The inputs of the bytes besides their sources: this module, the compiler and the platform."""
    compiler = str(Path(interpreter).resolve()) if interpreter else MAGIC_NUMBER.hex()
    return [Path(__file__).read_text(), PYTHON_VERSION, compiler, PLATFORM]


def digest_of(parts: Sequence[object], interpreter: str = "") -> str:
    """A digest of what is built of these parts for Lambda, or for `interpreter`."""
    everything = [*_identity(interpreter), *parts]
    return hashlib.sha256(json.dumps(everything).encode()).hexdigest()


def installed(name: str) -> Path:
    """The file or folder of one of CODE: in a checkout below its source root, else where it is
    installed."""
    specification = find_spec(f"carillon.{name}")
    assert specification is not None
    assert specification.origin is not None
    path = Path(specification.origin)
    return path.parent if path.name == "__init__.py" else path


def _code_files() -> Iterator[tuple[Path, Path]]:
    """Each file of the code: its place in the asset, and where it is now."""
    for path in map(installed, CODE):
        yield from _files_of(path)


def _files_of(path: Path) -> Iterator[tuple[Path, Path]]:
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and "__pycache__" not in file.parts and not _is_types(file):
            yield "carillon" / file.relative_to(path.parent), file


def _is_types(file: Path) -> bool:
    """True for what only the checker of the console's types reads."""
    return file.name.endswith(".d.ts")


def install(directory: Path, interpreter: str, wanted: Sequence[str]) -> None:
    """Fill `directory` with what is `wanted`, in words of uv's, for Lambda or for `interpreter`.

    Raises RuntimeError with uv's words when it fails with the network, too.
    """
    # `python -m uv` finds the command whatever PATH says.
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config"]
    command += ["--target", str(directory), *_selection(interpreter), *wanted]
    # uv's cache first, so that nothing is fetched when it has everything.
    for network in (["--offline"], []):
        done = subprocess.run([*command, *network], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            # Commands, with the path of this machine's interpreter in their first line.
            shutil.rmtree(directory / "bin", ignore_errors=True)
            return
    raise RuntimeError(f"the dependencies could not be installed:\n{done.stderr}")


def _selection(interpreter: str) -> list[str]:
    """uv's arguments that choose for which Python wheels are taken; nothing is ever built."""
    target = ["--python-platform", PLATFORM, "--python-version", PYTHON_VERSION]
    return [*(["--python", interpreter] if interpreter else target), "--only-binary", ":all:"]


def _drop_services(directory: Path) -> None:
    for library in ("boto3", "botocore"):
        for described in (directory / library / "data").iterdir():
            if described.is_dir() and described.name not in FUNCTION_SERVICES:
                shutil.rmtree(described)


def compile_all(directory: Path, deployed_path: str, interpreter: str = "") -> None:
    """Compile all below `directory`, as if it lay at `deployed_path`, never to be checked again."""
    command = [interpreter or sys.executable, "-m", "compileall", "-q", "-s", str(directory)]
    command += ["-p", deployed_path, "--invalidation-mode", "unchecked-hash", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{directory} could not be compiled:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    build_layer(Path(sys.argv[1]))
