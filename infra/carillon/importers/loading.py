"""The user's own objects, by `module:name`: their code is imported, as their program does it."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from carillon.errors import InvalidFieldError, reason_of


def object_of(reference: str, field: str) -> Any:
    """The object that `package.module:name` names, or the module; raises InvalidFieldError."""
    module, _, name = reference.partition(":")
    with _here_first():
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:
            missing = getattr(error, "name", None) or ""
            hint = ""
            if isinstance(error, ModuleNotFoundError) and not module.startswith(missing):
                hint = f": install {missing.partition('.')[0]} beside carillon"
            message = f"{module} cannot be imported, {reason_of(error)}{hint}"
            raise InvalidFieldError(field, message) from error
    try:
        return reduce(getattr, name.split("."), found) if name else found
    except AttributeError as error:
        raise InvalidFieldError(field, f"{module} has no {name}") from error


def library(name: str, field: str) -> Any:
    """A module of another library, which is there only where its user has it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        first = name.partition(".")[0]
        message = f"needs {first}, which is not installed: install it beside carillon ({error})"
        raise InvalidFieldError(field, message) from error


@contextmanager
def _here_first() -> Iterator[None]:
    """A script's own folder is on the path, not the one it is called in: Celery does this too."""
    here = str(Path.cwd())
    if here in sys.path:
        yield
        return
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
