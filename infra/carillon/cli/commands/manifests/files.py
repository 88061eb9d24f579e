"""Manifests as commands read and refuse them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.inputs import read_text
from carillon.errors import InvalidFieldError
from carillon.manifest.manifest import Manifest, ManifestFile, ManifestRefusedError, Path

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A manifest, YAML or JSON: `jobs` and `calendars` by name. Several files are one; - "
        "for stdin.",
        show_default=False,
    ),
]


def read_manifest(files: Sequence[str]) -> Manifest:
    """The manifest of the files; raises CliError with the line of all that is wrong."""
    try:
        found = [ManifestFile(name, read_text(name, "file")) for name in files]
        return Manifest.of_files(found)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    except ManifestRefusedError as error:
        raise refusal(Manifest(), error.errors) from error


def refusal(manifest: Manifest, errors: Sequence[tuple[Path, str]]) -> CliError:
    """The error that names each member of a manifest which is wrong, with its line."""
    faults = [
        {"field": ".".join(path), "message": manifest.located(path, message)}
        for path, message in errors
    ]
    problem = {"type": "about:blank", "title": "Bad input", "detail": "", "errors": faults}
    return CliError(ExitCode.BAD_INPUT, problem)
