"""The manifest: who manages which jobs and calendars, and how they are to be."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from carillon.domain.spec.names import MANIFEST_NAME_PATTERN
from carillon.errors import CarillonError, InvalidFieldError
from carillon.manifest.yaml_text import document_of, line_of

Json = dict[str, Any]
Path = tuple[str, ...]
"""Leads to a member of a manifest: `("jobs", "sync", "retry.max_attempts")`."""

_MEMBERS = ("manifest", "defaults", "calendars", "jobs", "simulate")


class ManifestRefusedError(CarillonError):
    """`errors` are pairs: a path, and the fault of what is there."""

    def __init__(self, errors: Sequence[tuple[Path, str]]) -> None:
        super().__init__("; ".join(f"{'.'.join(path)}: {message}" for path, message in errors))
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file of a manifest: its name, for messages, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Jobs and calendars by name, in the order of the files, each as the API takes it.

    `name` is "" where none is stated. The defaults are merged into the jobs, members that are
    objects one level deep. `simulate` has what only a rehearsal reads, by name of job.
    """

    name: str = ""
    jobs: Mapping[str, Json] = field(default_factory=dict)
    calendars: Mapping[str, Json] = field(default_factory=dict)
    simulate: Mapping[str, Json] = field(default_factory=dict)
    files: tuple[ManifestFile, ...] = ()
    origins: Mapping[Path, int] = field(default_factory=dict)
    """Of each job, calendar and profile, and of the name, the file that has it, by number."""

    @classmethod
    def of(cls, document: object) -> "Manifest":
        """Raises ManifestRefusedError with all that is wrong with the form of the document; what
        a job or calendar says is left to the API's models."""
        return cls._part_of(document)._whole()

    @classmethod
    def _part_of(cls, document: object) -> "Manifest":
        """As `of`; its profiles may be for jobs of other files."""
        parts: Mapping[Any, Any] = document if isinstance(document, dict) else {}
        errors: list[tuple[Path, str]] = [
            ((str(name),), f"is not a known member: a manifest has {', '.join(_MEMBERS)}")
            for name in parts
            if name not in _MEMBERS
        ]
        if not isinstance(document, dict):
            errors.append((("file",), "must be an object: a manifest has jobs by name"))
        name = parts.get("manifest", "")
        if name != "" and not (isinstance(name, str) and re.fullmatch(MANIFEST_NAME_PATTERN, name)):
            message = "must have letters, digits, '.', '_' and '-' only, at most 64"
            errors.append((("manifest",), message))
        defaults = _object(parts, "defaults", errors)
        if "name" in defaults:
            errors.append((("defaults", "name"), "is each job's own: omit it"))
        jobs = {
            name: _merged(defaults, job) for name, job in _objects(parts, "jobs", errors).items()
        }
        errors += [
            (("jobs", name, "name"), "is the key here: omit it")
            for name, job in jobs.items()
            if "name" in job
        ]
        calendars = _objects(parts, "calendars", errors)
        simulate = _objects(parts, "simulate", errors)
        if errors:
            raise ManifestRefusedError(errors)
        return cls(name, jobs, calendars, simulate)

    @classmethod
    def of_files(cls, files: Sequence[ManifestFile]) -> "Manifest":
        """One manifest of all files; raises InvalidFieldError for what is not YAML, and
        ManifestRefusedError, also where two files state different names, or one job twice."""
        merged = cls(files=tuple(files))
        for number, file in enumerate(files):
            try:
                part = cls._part_of(document_of(file.text))
            except InvalidFieldError as error:
                raise InvalidFieldError(error.field, f"{file.name} {error.message}") from error
            except ManifestRefusedError as error:
                errors = [(path, located(message, file, path)) for path, message in error.errors]
                raise ManifestRefusedError(errors) from error
            merged = merged._with(part, number)
        return merged._whole()

    def located(self, path: Path, message: str) -> str:
        """The message about a member, with the file and line that has it."""
        number = self.origins.get(path[:2])
        return message if number is None else located(message, self.files[number], path)

    def _whole(self) -> "Manifest":
        """Raises ManifestRefusedError for profiles of jobs that are not there."""
        strays = [("simulate", name) for name in self.simulate if name not in self.jobs]
        if strays:
            message = "names no job of this manifest"
            raise ManifestRefusedError([(path, self.located(path, message)) for path in strays])
        return self

    def _with(self, part: "Manifest", number: int) -> "Manifest":
        file = self.files[number]
        errors = [
            (path, located(f"is in {self.files[self.origins[path]].name}, too", file, path))
            for path in part._paths()
            if path in self.origins
        ]
        if self.name and part.name not in ("", self.name):
            named = self.files[self.origins["manifest",]].name
            message = f"must be one for all files: {named} has {self.name!r}"
            errors.append((("manifest",), located(message, file, ("manifest",))))
        if errors:
            raise ManifestRefusedError(errors)
        return Manifest(
            self.name or part.name,
            {**self.jobs, **part.jobs},
            {**self.calendars, **part.calendars},
            {**self.simulate, **part.simulate},
            self.files,
            {**dict.fromkeys([*part._named, *part._paths()], number), **self.origins},
        )

    def _paths(self) -> Iterator[Path]:
        for member in ("jobs", "calendars", "simulate"):
            for name in getattr(self, member):
                yield member, name

    @property
    def _named(self) -> list[Path]:
        return [("manifest",)] if self.name else []


def located(message: str, file: ManifestFile, path: Path) -> str:
    """The message with the place of what it is about."""
    members = [*path[:2], *(part.partition("[")[0] for part in ".".join(path[2:]).split("."))]
    line = line_of(file.text, members)
    return f"{message} ({file.name}{'' if line is None else f', line {line}'})"


def _merged(defaults: Json, job: Json) -> Json:
    both = {name: defaults[name] for name in defaults if name not in job}
    for name, value in job.items():
        default: Any = defaults.get(name)
        is_deep = isinstance(default, dict) and isinstance(value, dict)
        both[name] = default | value if is_deep else value
    return both


def _objects(
    parts: Mapping[Any, Any], member: str, errors: list[tuple[Path, str]]
) -> dict[str, Json]:
    found = {}
    for name, value in _object(parts, member, errors).items():
        if not isinstance(name, str):
            errors.append(((member, str(name)), "must be text: names are"))
        elif isinstance(value, dict):
            found[name] = value
        else:
            errors.append(((member, name), "must be an object"))
    return found


def _object(parts: Mapping[Any, Any], member: str, errors: list[tuple[Path, str]]) -> Json:
    found = parts.get(member)
    if isinstance(found, dict):
        return found
    if found is not None:
        form = "an object" if member == "defaults" else "an object, by name"
        errors.append(((member,), f"must be {form}"))
    return {}
