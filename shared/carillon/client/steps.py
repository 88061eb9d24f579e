"""Work with the API, told apart from doing it: a generator yields what is to be done next, and gets
what came of it. So each method stands here once, and `drivers` do it with or without asyncio."""

from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

if TYPE_CHECKING:
    from carillon.client.drivers import AsyncDriver, Driver
    from carillon.client.session import Session

P = ParamSpec("P")
T = TypeVar("T")
DriverT = TypeVar("DriverT")


@dataclass(frozen=True, slots=True)
class Request:
    """To be sent, with a `body` of JSON or a `form`; the answer is an Answer, or Lost."""

    method: str
    url: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of HTTP, of whatever status; `reason` is the status's name."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came; `is_begun` if the request may have reached the API all the same."""

    reason: str
    is_begun: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """To be waited for; there is no answer."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items for whoever iterates; there is no answer."""

    items: Sequence[T]


Steps: TypeAlias = Generator[Request | Wait, Any, T]
Stream: TypeAlias = Generator[Request | Wait | Page[T], Any, None]


def sent(request: Request) -> Steps[Answer | Lost]:
    """One request, sent once: its answer, or its loss."""
    got: Answer | Lost = yield request
    return got


def next_page(stream: Stream[T]) -> Steps[Sequence[T] | None]:
    """The next items of a stream; None at its end."""
    given: object = None
    while True:
        try:
            step = stream.send(given)
        except StopIteration:
            return None
        if isinstance(step, Page):
            return step.items
        given = yield step


def collected(stream: Stream[T]) -> Steps[list[T]]:
    """All items of a stream."""
    found: list[T] = []
    while (page := (yield from next_page(stream))) is not None:
        found += page
    return found


def only(stream: Stream[T], keep: Callable[[T], bool]) -> Stream[T]:
    """The items of a stream that are to be kept."""
    while (page := (yield from next_page(stream))) is not None:
        yield Page([item for item in page if keep(item)])


class Resource(Generic[DriverT]):
    """A part of the API; its methods are marked as `call` or `stream`."""

    def __init__(self, session: "Session", driver: DriverT) -> None:
        self._session = session
        self._driver = driver


class call(Generic[P, T]):
    """A method that answers T, or a coroutine of T, as the resource's driver does it."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, resource: None, owner: Any) -> Self: ...

    @overload
    def __get__(self, resource: "Resource[Driver]", owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, resource: "Resource[AsyncDriver]", owner: Any
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, resource: Any, owner: Any) -> Any:
        if resource is None:
            return self
        return _bound(self._steps, resource, resource._driver.run)


class stream(Generic[P, T]):
    """A method that gives an iterator of T, or an asynchronous one."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, resource: None, owner: Any) -> Self: ...

    @overload
    def __get__(self, resource: "Resource[Driver]", owner: Any) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(
        self, resource: "Resource[AsyncDriver]", owner: Any
    ) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, resource: Any, owner: Any) -> Any:
        if resource is None:
            return self
        return _bound(self._steps, resource, resource._driver.stream)


def _bound(
    steps: Callable[..., Any], resource: object, drive: Callable[[Any], Any]
) -> Callable[..., Any]:
    def method(*arguments: Any, **named: Any) -> Any:
        return drive(steps(resource, *arguments, **named))

    return update_wrapper(method, steps)
