"""Calls that fail, processes that die in them, and others that act just before."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from carillon.errors import StoreUnavailableError

THROTTLED = StoreUnavailableError("throttled")


class Killed(BaseException):
    """The process dies here: nothing after it runs, not even an except clause."""


@contextmanager
def failing(
    port: Any,
    method: str,
    error: BaseException = THROTTLED,
    *,
    after: int = 0,
    times: int | None = None,
) -> Iterator[None]:
    """The method raises: each time but the first `after`, or so many times."""
    original, count = getattr(port, method), 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count <= after or (times is not None and count > after + times):
            return original(*arguments, **named)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(port, method, call)
        yield


@contextmanager
def dying(port: Any, method: str, *, after: int = 0) -> Iterator[None]:
    """The process dies in the method; the block must come to that."""
    with failing(port, method, Killed(), after=after), pytest.raises(Killed):
        yield


@contextmanager
def preceded(
    port: Any, method: str, act: Callable[[], object], *, number: int = 1
) -> Iterator[None]:
    """Somebody else acts just before the method's call of this number."""
    original, count = getattr(port, method), 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            act()
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(port, method, call)
        yield
