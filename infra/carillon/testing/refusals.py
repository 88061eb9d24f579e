"""Bad input of a test: what was wrong, where, and what would be right."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, TypeVar

from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.http.problems import ProblemError, problem_of
from carillon.errors import CarillonError

_T = TypeVar("_T")


class RefusedError(CarillonError):
    """The API, or the test's own world, does not take what the test asks for."""


def asked(what: str, request: Callable[[], _T]) -> _T:
    """The answer to a request; raises RefusedError, which names `what` was asked."""
    try:
        return request()
    except RefusedError:
        raise
    except ValidationError as error:
        raise RefusedError(told(what, field_errors(error.errors()))) from None
    except (CarillonError, ProblemError) as error:
        problem = problem_of(error)
        raise RefusedError(told(what, problem.errors or [("", problem.detail)])) from error


def refuse_unsendable(what: str, members: Mapping[str, Any], path: str = "") -> None:
    """Raises RefusedError for a member that no request could carry: JSON has no form for it."""
    for name, value in members.items():
        default = None if name == "payload" else _time
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False, default=default).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RefusedError(told(what, [(f"{path}{name}", f"is not JSON: {error}")])) from None


def _time(value: object) -> str:
    """A member of a job that is a time may be one, though none in a payload; raises TypeError for
    all else."""
    if isinstance(value, date):
        return str(value)
    raise TypeError(f"{value!r:.40} has no form in it")


def told(what: str, errors: "list[tuple[str, str]] | tuple[tuple[str, str], ...]") -> str:
    """One line if there is one error, else one line for each."""
    lines = [f"{field} {message}".strip() for field, message in errors]
    return f"{what}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{what}:", *lines])
