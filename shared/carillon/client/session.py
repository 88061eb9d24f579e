"""One deployment's API for one owner: tokens, repetitions, errors and pages, as steps."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from carillon.client.clock import Clock
from carillon.client.errors import ApiError, error_of, unexpected, unreachable
from carillon.client.paths import named_job_path, split_job
from carillon.client.sign_in import checked_url
from carillon.client.steps import Answer, Lost, Page, Request, Steps, Stream, Wait
from carillon.client.tokens import Token, Tokens, tokens_of
from carillon.errors import InvalidFieldError

T = TypeVar("T")

PAGE_SIZE = 100
MOST_REPETITIONS = 5
BASE_SECONDS = 0.2
"""The longest first wait; each next one may be twice as long."""
LONGEST_WAIT_SECONDS = 10.0

Json = dict[str, Any]
Query = Mapping[str, str | int]

_KEY: Final = "Idempotency-Key"
_TEAM_NAME: Final = "[a-z0-9][a-z0-9-]{0,62}"
_SAFE_TWICE = frozenset({"GET", "PUT", "DELETE"})
_AWAY = frozenset({502, 503, 504})


class Session:
    """Every failure is an ApiError, but for what cannot be sent (InvalidFieldError)."""

    def __init__(
        self, api_url: str, tokens: Tokens | None, clock: Clock, team: str | None = None
    ) -> None:
        """Requests act for `team`, with None for the token's subject."""
        self.api_url = api_url
        self._team = team
        self._tokens = tokens
        self._clock = clock

    @classmethod
    def of(cls, api_url: str, token: Token | None, clock: Clock, team: str | None = None) -> Self:
        """Without a token only what answers anybody can be read.

        Raises InvalidFieldError for an address that no token may be sent to, and for what is no
        team's name.
        """
        tokens = None if token is None else tokens_of(token, api_url)
        # Never without a header for an empty one: that would be another owner.
        if team is not None and not re.fullmatch(_TEAM_NAME, team):
            raise InvalidFieldError("team", f"{team!r} is none: letters a-z, digits and dashes")
        return cls(checked_url(api_url, "api_url"), tokens, clock, team)

    def token(self) -> Steps[str]:
        """The bearer token, good for a moment at least; without any an empty text."""
        return "" if self._tokens is None else (yield from self._tokens.current(self._clock))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Steps[Answer]:
        """The answer, which is a success."""
        sent = dict(headers or {})
        if self._team is not None:
            sent["Carillon-Team"] = self._team
        request = Request(method.upper(), self.api_url + path, query or {}, body, sent)
        return (yield from self._exchange(request))

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Steps[Any]:
        """The JSON object of the answer, of a type that the caller knows from the description; None
        for an answer without content (204)."""
        # Spelled as they are looked for here, whatever the caller's spelling is.
        sent = {name.title(): text for name, text in (headers or {}).items()}
        try:
            answer = yield from self.send(method, path, query=query, body=body, headers=sent)
            return None if answer.status == 204 else _object_of(answer, self.api_url)
        except ApiError as error:
            error.idempotency_key = sent.get(_KEY)
            raise

    def job_id(self, job: str) -> Steps[str]:
        """The id of the job that a text names by its id or its name."""
        job_id, name = split_job(job)
        if job_id is not None:
            return job_id
        return str((yield from self.ask("GET", named_job_path(name)))["job_id"])

    def once(self, path: str, body: object, key: str | None) -> Steps[Any]:
        """Post under an idempotency key, the caller's or a fresh one."""
        # An empty key is the API's to refuse: a script's unset variable must not lose its guard.
        key = self._clock.new_key() if key is None else key
        return (yield from self.ask("POST", path, body=body, headers={_KEY: key}))

    def pages(
        self,
        path: str,
        limit: int | None = None,
        query: Query | None = None,
        left_out: Callable[[Json], None] = lambda row: None,
    ) -> Stream[Any]:
        """The pages of a list until it ends or `limit` items were given; `left_out` gets the id and
        reason of each row that cannot be read."""
        left = limit
        cursor: str | None = None
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            here: dict[str, str | int] = {**(query or {}), "limit": size}
            if cursor is not None:
                here["cursor"] = cursor
            answer = yield from self.ask("GET", path, query=here)
            page = answer.get("items", [])[:left]
            for row in answer.get("unreadable") or ():
                left_out(row)
            yield Page(page)
            left = None if left is None else left - len(page)
            cursor = answer.get("next_cursor")
            if cursor is None:
                return

    def changes(self, method: str, path: str, query: Query, body: object = None) -> Stream[Json]:
        """The answer of each request; the next one has the cursor of the one before."""
        cursor: str | None = None
        while True:
            here = query if cursor is None else {**query, "cursor": cursor}
            answer = yield from self.ask(method, path, query=here, body=body)
            yield Page([answer])
            cursor = answer.get("next_cursor")
            if cursor is None:
                return

    def _exchange(self, request: Request) -> Steps[Answer]:
        may_be_done = False
        for number in range(MOST_REPETITIONS + 1):
            got: Answer | Lost = yield (yield from self._authorized(request))
            if isinstance(got, Answer) and 200 <= got.status < 300:
                return got
            if number == MOST_REPETITIONS or not is_repeated(request, got):
                break
            may_be_done = may_be_done or not _was_not_begun(got)
            yield Wait(wait_seconds(got, number, self._clock.fraction()))
        if isinstance(got, Lost):
            raise unreachable(self.api_url, got.reason)
        if may_be_done and request.method == "DELETE" and got.status == 404:
            return replace(got, status=204, content=b"")  # One of those before did it.
        raise error_of(got.status, got.content, got.reason)

    def _authorized(self, request: Request) -> Steps[Request]:
        """The request with a token that is good now: repetitions may outlast one."""
        if self._tokens is None:
            return request
        bearer = f"Bearer {(yield from self.token())}"
        return replace(request, headers={**request.headers, "Authorization": bearer})


def _object_of(answer: Answer, url: str) -> Json:
    try:
        value = json.loads(answer.content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise unexpected(url)
    return value


def is_repeated(request: Request, got: Answer | Lost) -> bool:
    """True if the request is to be sent again: it was not begun, or doing it twice is the same.

    A condition (If-Match) would not hold any more if it was done: it is not repeated then.
    """
    if _was_not_begun(got):
        return True
    if isinstance(got, Answer) and got.status not in _AWAY:
        return False
    is_conditional = (
        request.headers.get("If-Match", "*") != "*" or "If-None-Match" in request.headers
    )
    return _KEY in request.headers or (request.method in _SAFE_TWICE and not is_conditional)


def wait_seconds(got: Answer | Lost, number: int, fraction: float) -> float:
    """The wait before repetition `number`, counted from 0: full jitter over twice the last, and
    what the API asks for (Retry-After) besides."""
    asked = got.headers.get("Retry-After", "") if isinstance(got, Answer) else ""
    if asked.isdecimal():
        least = float(asked)
    else:
        least = 1.0 if isinstance(got, Answer) and got.status == 429 else 0.0
    return min(least + fraction * BASE_SECONDS * 2.0**number, LONGEST_WAIT_SECONDS)


def _was_not_begun(got: Answer | Lost) -> bool:
    if isinstance(got, Lost):
        return not got.is_begun
    return got.status == 429 or (got.status == 409 and "Retry-After" in got.headers)
