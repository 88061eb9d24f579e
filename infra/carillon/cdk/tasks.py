"""Users' task modules with what they require: what becomes the layer of task processes."""

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from carillon.cdk import packages
from carillon.errors import ConfigurationError

FOLDER = "tasks"
"""Of the layer: beside the folder that is on every process's path, not in it."""
DEPLOYED_PATH = f"/opt/{FOLDER}"
_TAKEN_IN = re.compile(r"^\s*(?:-r|-c|--requirements?|--constraints?)[\s=]*(\S+)", re.MULTILINE)
"""A file in a line of requirements, which is looked for beside theirs."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Files below `root`, of which task processes import `modules`, and what these require.

    Made by `from_package` or `from_directory`, which raise ConfigurationError for what is not
    there. Nothing of it is imported in this process.
    """

    root: Path
    modules: tuple[str, ...]
    files: tuple[Path, ...]
    requirements: Path | None

    @classmethod
    def from_package(
        cls,
        package: str,
        *,
        requirements: str | Path | None = None,
        exclude: Sequence[str] = (),
    ) -> "Tasks":
        """The tasks of a package or module such as `app.jobs`, and of all modules below it.

        The whole of `app` goes along but for what `exclude` covers: patterns of paths below the
        folder that `app` is in, such as `app/web/*` or `*.md`.
        """
        root, top = _top_level(package.partition(".")[0])
        files = tuple(_files(top, root, exclude))
        modules = [name for name in map(_module_of, files) if f"{name}.".startswith(f"{package}.")]
        if not modules:
            raise ConfigurationError("tasks", f"there is no module {package} in {top}")
        return cls(root, tuple(modules), files, _existing(requirements))

    @classmethod
    def from_directory(
        cls,
        path: str | Path,
        *,
        modules: Sequence[str],
        requirements: str | Path | None = None,
        exclude: Sequence[str] = (),
    ) -> "Tasks":
        """The tasks of `modules` in a folder that task processes get on their path, whole but for
        what `exclude` covers."""
        root = Path(path).resolve()
        files = tuple(_files(root, root, exclude))
        found = {*map(_module_of, files)}
        for name in modules:
            if name not in found:
                raise ConfigurationError("tasks", f"there is no module {name} in {root}")
        return cls(root, tuple(modules), files, _existing(requirements))

    def digest(self, interpreter: str = "") -> str:
        """A digest of what `build` makes, without making it."""
        sources = [
            [path.as_posix(), hashlib.sha256((self.root / path).read_bytes()).hexdigest()]
            for path in self.files
        ]
        required = list(_texts(self.requirements, set())) if self.requirements else []
        return packages.digest_of([Path(__file__).read_text(), required, sources], interpreter)

    def build(self, directory: Path, interpreter: str = "") -> None:
        """Fill `directory` with files and requirements, for Lambda or for `interpreter`.

        Raises ConfigurationError in uv's words, which name a requirement without a wheel.
        """
        directory.mkdir(parents=True)
        if self.requirements:
            try:
                wanted = ["--requirement", str(self.requirements)]
                packages.install(directory, interpreter, wanted)
            except RuntimeError as error:
                message = f"of {self.requirements}, as wheels for Lambda: {error}"
                raise ConfigurationError("tasks", message) from error
        for path in self.files:
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / path, directory / path)
        # Packages may have templates that look like code: what is imported compiles.
        with contextlib.suppress(RuntimeError):
            packages.compile_all(directory, DEPLOYED_PATH, interpreter)


def _top_level(name: str) -> tuple[Path, Path]:
    """The folder that is on the path, and the package or module of that name in it."""
    specification = find_spec(name)
    if specification is None:
        raise ConfigurationError("tasks", f"there is no package {name} on the path of synthesis")
    folders = [Path(each).resolve() for each in specification.submodule_search_locations or ()]
    if len(folders) > 1:
        told = ", ".join(map(str, folders))
        raise ConfigurationError("tasks", f"{name} is in several folders: {told}")
    top = folders[0] if folders else Path(str(specification.origin)).resolve()
    return top.parent, top


def _files(top: Path, root: Path, exclude: Sequence[str]) -> Iterator[Path]:
    """All files at `top` or below, from `root` on, but for what was compiled and excluded."""
    for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
        told = path.relative_to(root)
        excluded = any(fnmatchcase(told.as_posix(), pattern) for pattern in exclude)
        if path.is_file() and "__pycache__" not in told.parts and not excluded:
            yield told


def _module_of(path: Path) -> str:
    """The name by which a file is imported, "" if it is not."""
    parts = path.with_suffix("").parts
    names = parts[:-1] if parts[-1] == "__init__" else parts
    importable = path.suffix == ".py" and all(name.isidentifier() for name in names)
    return ".".join(names) if importable and names[-1:] != ("__main__",) else ""


def _texts(requirements: Path, seen: set[Path]) -> Iterator[str]:
    """The text of the file, and of those that it takes in."""
    if requirements.is_file() and requirements not in seen:
        seen.add(requirements)
        text = requirements.read_text()
        yield text
        for name in _TAKEN_IN.findall(text):
            yield from _texts((requirements.parent / name).resolve(), seen)


def _existing(requirements: str | Path | None) -> Path | None:
    path = None if requirements is None else Path(requirements).resolve()
    if path is not None and not path.is_file():
        raise ConfigurationError("tasks", f"there are no requirements {path}")
    return path
