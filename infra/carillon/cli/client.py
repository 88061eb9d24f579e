"""The API over HTTP. httpx is imported on first use: `carillon preview` never needs it."""

import json
from collections.abc import Callable, Iterator, Mapping
from time import sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from carillon.cli.exits import CliError, ExitCode, exit_code_of_status
from carillon.domain.spec.names import is_job_id

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0
PAGE_SIZE = 100
MOST_WAITS = 5
"""A request that comes too soon after others (429) was not begun: it is sent again so often."""
LONGEST_WAIT_SECONDS = 10
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Json = dict[str, Any]
Query = Mapping[str, str | int]


def is_loopback(url: str) -> bool:
    """True if the URL's host is this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def checked_url(url: str, field: str) -> str:
    """The URL without a trailing slash; raises CliError unless a secret may be sent there."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise CliError.bad_field(field, f"{url!r} is not a URL such as https://example.com")
    if parts.scheme == "http" and not is_loopback(url):
        message = "must be https: a token would cross the network in the clear"
        raise CliError.bad_field(field, message)
    return url.rstrip("/")


def checked_token(text: str) -> str:
    """The token without white space around it; raises CliError for what no header can carry."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise CliError.bad_field("token", "is empty, or no bearer token")
    return token


def new_http_client(url: str) -> "httpx.Client":
    """A client for one API; requests to this machine bypass the environment's proxy."""
    import httpx

    return httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=not is_loopback(url))


def job_path(job_id: str, suffix: str = "") -> str:
    """`/jobs/{job_id}` + suffix; raises CliError for text that cannot be a job id."""
    return f"/jobs/{_path_part(job_id, 'job_id', 'a job id')}{suffix}"


def calendar_path(name: str) -> str:
    """`/calendars/{name}`; raises CliError for text that cannot be a name."""
    return f"/calendars/{_path_part(name, 'name', 'the name of a calendar')}"


def run_path(run_id: str, suffix: str = "") -> str:
    """`/jobs/{job_id}/runs/{run_id}` + suffix: a run's id begins with its job's.

    Raises CliError for text that cannot be a run id.
    """
    job_id, underscore, _ = run_id.partition("_")
    if not underscore:
        raise CliError.bad_field("run_id", f"{run_id!r} is not a run id such as `runs` shows")
    return job_path(job_id, f"/runs/{quote(run_id, safe='')}{suffix}")


def dead_letter_path(run_id: str, suffix: str = "") -> str:
    """`/dead-letters/{run_id}` + suffix; raises CliError for text that cannot be a run id."""
    return f"/dead-letters/{_path_part(run_id, 'run_id', 'a run id')}{suffix}"


def operation_path(operation_id: str, suffix: str = "") -> str:
    """`/operations/{operation_id}` + suffix; raises CliError for text that cannot be an id."""
    return f"/operations/{_path_part(operation_id, 'operation_id', 'an operation id')}{suffix}"


def _path_part(text: str, field: str, what: str) -> str:
    if not text or text.strip(".") == "":
        raise CliError.bad_field(field, f"{text!r} is not {what}")
    return quote(text, safe="")


class ApiClient:
    """One deployment's API, with one owner's token.

    Every failure is a CliError: with the API's own problem, or `UNREACHABLE`.
    """

    def __init__(self, api_url: str, token: str | None) -> None:
        """Without a token only what answers anybody can be read."""
        self._api_url = api_url
        self._http = new_http_client(api_url)
        if token is not None:
            self._http.headers["Authorization"] = f"Bearer {token}"

    @property
    def api_url(self) -> str:
        """The base URL, without a slash at the end."""
        return self._api_url

    def close(self) -> None:
        self._http.close()

    def job_id(self, job: str) -> str:
        """The id of the job that a text names by its id or its name.

        No name has the form of an id; `id:` and `name:` before it settle what is meant otherwise.
        """
        kind, colon, rest = job.partition(":")
        if is_job_id(job) or (colon and kind == "id"):
            return rest or job
        name = rest if colon and kind == "name" else job
        path = f"/jobs/named/{_path_part(name, 'job', 'the name of a job')}"
        return str(self.get(path)["job_id"])

    def job_path(self, job: str, suffix: str = "") -> str:
        """`/jobs/{job_id}` + suffix of the job with this id or name; raises CliError."""
        return job_path(self.job_id(job), suffix)

    def get(self, path: str, query: Query | None = None) -> Json:
        return self._object(self._send("GET", path, query=query))

    def post(
        self, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Json:
        return self._object(self._send("POST", path, body=body, headers=headers))

    def post_once(self, path: str, body: Json | None, key: str | None) -> Json:
        """Post under an idempotency key, the caller's or a fresh one.

        If the effect is unknown, the problem states how to repeat it safely.
        """
        # An empty key is the API's to refuse: a script's unset variable must not lose its guard.
        key = uuid4().hex if key is None else key
        try:
            return self.post(path, body, {"Idempotency-Key": key})
        except CliError as error:
            if error.is_outcome_unknown:
                error.add(f"repeat with --idempotency-key {key}: it cannot be done twice")
            raise

    def put(self, path: str, body: Json) -> Json:
        return self._object(self._send("PUT", path, body=body))

    def patch(self, path: str, body: Json, headers: Mapping[str, str]) -> Json:
        return self._object(self._send("PATCH", path, body=body, headers=headers))

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def change_all(
        self, method: str, path: str, query: Query, show: Callable[[int], None] = lambda count: None
    ) -> int:
        """The number of jobs that a request has changed; it is repeated under the cursor that it
        answers.

        `show` gets the count after each answer. The problem of one that fails in between has the
        number changed before.
        """
        changed = 0
        cursor: str | None = None
        while True:
            here = query if cursor is None else {**query, "cursor": cursor}
            try:
                answer = self._object(self._send(method, path, query=here))
            except CliError as error:
                if changed:
                    error.add(f"{changed} were changed before that; repeat the same command")
                raise
            changed += int(answer.get("changed", 0))
            show(changed)
            cursor = answer.get("next_cursor")
            if cursor is None:
                return changed

    def items(self, path: str, limit: int | None, query: Query | None = None) -> Iterator[Json]:
        """The items of a paged list, page by page, at most `limit` (None: all of them)."""
        for page in self.pages(path, limit, query):
            yield from page

    def pages(
        self, path: str, limit: int | None, filters: Query | None = None
    ) -> Iterator[list[Json]]:
        """The pages of a list until it ends or `limit` items were given."""
        left = limit
        cursor: str | None = None
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            query: dict[str, str | int] = {**(filters or {}), "limit": size}
            if cursor is not None:
                query["cursor"] = cursor
            answer = self.get(path, query)
            page = answer.get("items", [])[:left]
            yield page
            left = None if left is None else left - len(page)
            cursor = answer.get("next_cursor")
            if cursor is None:
                return

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "httpx.Response":
        import httpx

        try:
            for left in reversed(range(MOST_WAITS + 1)):
                response = self._http.request(
                    method, self._api_url + path, params=query, json=body, headers=headers
                )
                if response.status_code != 429 or not left:
                    break
                sleep(requested_wait_seconds(response))
        # A header or a JSON value that HTTP has no form for: half a surrogate pair, infinity ...
        except (httpx.LocalProtocolError, ValueError, RecursionError) as error:
            raise CliError.bad_field("request", f"cannot be sent: {error}") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            detail = f"{self._api_url}: {error or type(error).__name__}"
            raise CliError.local(
                ExitCode.UNREACHABLE, "The API cannot be reached", detail
            ) from error
        if not response.is_success:
            raise CliError(exit_code_of_status(response.status_code), problem_of(response))
        return response

    def _object(self, response: "httpx.Response") -> Json:
        try:
            value = response.json()
        except ValueError:
            value = None
        if not isinstance(value, dict):
            detail = f"{self._api_url} did not answer a JSON object; is this the API's address?"
            raise CliError.local(ExitCode.UNEXPECTED, "Unexpected answer", detail)
        return value


def requested_wait_seconds(response: "httpx.Response") -> int:
    """The wait before a request that came too soon (429) is sent again."""
    text = response.headers.get("Retry-After", "")
    return min(int(text), LONGEST_WAIT_SECONDS) if text.isdecimal() else 1


def problem_of(response: "httpx.Response") -> Json:
    """The problem in an error response; the gateway's own `{"message"}` is made into one."""
    try:
        value = json.loads(response.content)
    except ValueError:
        value = None
    problem: Json = {
        "type": "about:blank",
        "title": response.reason_phrase or "Error",
        "status": response.status_code,
        "detail": "",
    }
    if isinstance(value, dict):
        message = value.get("message")
        problem.update(value if "title" in value else {"detail": str(message or "")})
    elif response.text:
        problem["detail"] = response.text[:200]
    if response.status_code == 401:
        problem["detail"] = f"{problem['detail'] or 'no valid token'}; run `carillon login`"
    return problem
