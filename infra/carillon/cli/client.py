"""The API for commands: requests of `carillon.client`, whose errors end a command as its own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from carillon.cli.exits import CliError, ExitCode, exit_code_of_status
from carillon.client import paths
from carillon.client.clock import Clock
from carillon.client.drivers import Driver
from carillon.client.errors import ApiError, NotAllowed, Unavailable
from carillon.client.session import Json as Json
from carillon.client.session import Query as Query
from carillon.client.session import Session
from carillon.client.steps import Steps, Stream, next_page
from carillon.client.tokens import Token
from carillon.errors import ConfigurationError, InvalidFieldError

if TYPE_CHECKING:
    from carillon.client.drivers import Transport

T = TypeVar("T")


@contextmanager
def as_command_errors() -> Iterator[None]:
    """Raises CliError for every error of the client."""
    try:
        yield
    except ApiError as error:
        raise CliError(_exit_code_of(error), _problem_of(error)) from error
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    except ConfigurationError as error:
        title = "The sign-in cannot be read"
        raise CliError.local(ExitCode.NOT_ALLOWED, title, str(error)) from error


def _exit_code_of(error: ApiError) -> ExitCode:
    if error.status:
        return exit_code_of_status(error.status)
    match error:
        case Unavailable():
            return ExitCode.UNREACHABLE
        case NotAllowed():
            return ExitCode.NOT_ALLOWED
    return ExitCode.UNEXPECTED


def _problem_of(error: ApiError) -> Json:
    problem = dict(error.problem)
    if error.status == 401:
        problem["detail"] = f"{error.detail or 'no valid token'}; run `carillon login`"
    return problem


@as_command_errors()
def job_path(job_id: str, suffix: str = "") -> str:
    """As `paths.job_path`; raises CliError, as all of these."""
    return paths.job_path(job_id, suffix)


@as_command_errors()
def calendar_path(name: str) -> str:
    return paths.calendar_path(name)


@as_command_errors()
def notification_path(name: str, suffix: str = "") -> str:
    return paths.notification_path(name, suffix)


@as_command_errors()
def quota_path(owner: str | None) -> str:
    return paths.quota_path(owner)


@as_command_errors()
def run_path(run_id: str, suffix: str = "") -> str:
    return paths.run_path(run_id, suffix)


@as_command_errors()
def dead_letter_path(run_id: str, suffix: str = "") -> str:
    return paths.dead_letter_path(run_id, suffix)


@as_command_errors()
def operation_path(operation_id: str, suffix: str = "") -> str:
    return paths.operation_path(operation_id, suffix)


class ApiClient:
    """One deployment's API, with one owner's token.

    Every failure is a CliError: with the API's own problem, or `UNREACHABLE`.
    """

    def __init__(
        self,
        api_url: str,
        token: Token | None,
        transport: "Transport | None" = None,
        team: str | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Requests act for `team`, with None for the token's subject. Without a token
        only what answers anybody can be read. `note` gets what people are to know beside an
        answer."""
        self._note = note
        clock = Clock()
        with as_command_errors():
            self.session = Session.of(api_url, token, clock, team)
            self._driver = Driver.to(self.session.api_url, clock, transport, "carillon-cli")

    @property
    def api_url(self) -> str:
        """The base URL, without a slash at the end."""
        return self.session.api_url

    def close(self) -> None:
        self._driver.close()

    def run(self, steps: Steps[T]) -> T:
        """The result of steps with the session."""
        with as_command_errors():
            return self._driver.run(steps)

    def job_id(self, job: str) -> str:
        """The id of the job that a text names by its id or its name.

        No name has the form of an id; `id:` and `name:` before it settle what is meant otherwise.
        """
        return self.run(self.session.job_id(job))

    def job_path(self, job: str, suffix: str = "") -> str:
        """`/jobs/{job_id}` + suffix of the job with this id or name; raises CliError."""
        return job_path(self.job_id(job), suffix)

    def get(self, path: str, query: Query | None = None) -> Json:
        return self._ask("GET", path, query=query)

    def post(
        self, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Json:
        return self._ask("POST", path, body=body, headers=headers)

    def post_once(self, path: str, body: Json | None, key: str | None) -> Json:
        """Post under an idempotency key, the caller's or a fresh one.

        If the effect is unknown, the problem states how to repeat it safely.
        """
        try:
            answer: Json = self.run(self.session.once(path, body, key))
        except CliError as error:
            cause = error.__cause__
            if error.is_outcome_unknown and isinstance(cause, ApiError):
                hint = f"repeat with --idempotency-key {cause.idempotency_key}"
                error.add(f"{hint}: it cannot be done twice")
            raise
        return answer

    def put(self, path: str, body: Json) -> Json:
        return self._ask("PUT", path, body=body)

    def patch(self, path: str, body: Json, headers: Mapping[str, str]) -> Json:
        return self._ask("PATCH", path, body=body, headers=headers)

    def delete(self, path: str) -> None:
        self.run(self.session.send("DELETE", path))

    def change_all(
        self,
        method: str,
        path: str,
        query: Query,
        show: Callable[[int], None] = lambda count: None,
        body: Json | None = None,
    ) -> dict[str, int]:
        """The numbers of jobs that a request has `changed`, and left as `managed`; it is repeated
        under the cursor that it answers.

        `show` gets the count after each answer. The problem of one that fails in between has the
        number changed before.
        """
        total = {"changed": 0, "managed": 0}
        try:
            for answers in self._pages(self.session.changes(method, path, query, body)):
                for answer in answers:
                    total = {name: total[name] + int(answer.get(name, 0)) for name in total}
                    show(total["changed"])
        except CliError as error:
            if total["changed"]:
                error.add(f"{total['changed']} were changed before that; repeat the same command")
            raise
        return total

    def items(self, path: str, limit: int | None, query: Query | None = None) -> Iterator[Json]:
        """The items of a paged list, page by page, at most `limit` (None: all of them)."""
        for page in self.pages(path, limit, query):
            yield from page

    def pages(
        self, path: str, limit: int | None, filters: Query | None = None
    ) -> Iterator[list[Json]]:
        """The pages of a list until it ends or `limit` items were given."""

        def left_out(row: Json) -> None:
            self._note(f"Note: {row['id']} cannot be read, and is left out: {row['reason']}")

        return self._pages(self.session.pages(path, limit, filters, left_out))

    def _pages(self, stream: Stream[T]) -> Iterator[list[T]]:
        while (page := self.run(next_page(stream))) is not None:
            yield list(page)

    def _ask(self, method: str, path: str, **parts: Any) -> Json:
        answer: Json = self.run(self.session.ask(method, path, **parts))
        return answer
