"""The errors of a client, each with the API's own problem (RFC 9457).

ApiError                an answer that is no success; also one that the client did not expect
├── Refused             400, 413, 415, 422: `errors` has each field and its fault
├── NotAllowed          401, 403: no valid token, or not for this
├── NotFound            404, or gone: 410
├── Conflict            409, 412, 428: it has changed meanwhile, or its state forbids it
│   └── Managed         it is another's to change: a manifest's or a stack's
├── QuotaExceeded       429, or a quota of the owner: more than the deployment gives each
└── Unavailable         502 to 504, or no connection, beyond the repetitions
InvalidSignature        a webhook that Carillon did not send, or not now (carillon.client.verify)

A value that can be no request is an InvalidFieldError, a missing or wrong setting a
ConfigurationError (carillon.errors).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from carillon.errors import CarillonError

if TYPE_CHECKING:
    from carillon.client.types.answers import FieldProblem

Problem = Mapping[str, Any]
"""As `carillon.client.types.answers.Problem`; what stands before the API may leave members out."""


class ApiError(CarillonError):
    """`problem` is the API's; its `status` is 0 where no HTTP answer is behind it.

    `idempotency_key` is the request's: what is sent again under it cannot be done twice.
    """

    def __init__(self, problem: Problem, idempotency_key: str | None = None) -> None:
        self.problem = problem
        self.idempotency_key = idempotency_key
        super().__init__(f"{self.title}{f': {self.detail}' if self.detail else ''}")

    @property
    def status(self) -> int:
        return int(self.problem.get("status") or 0)

    @property
    def title(self) -> str:
        return str(self.problem.get("title") or "Error")

    @property
    def detail(self) -> str:
        return str(self.problem.get("detail") or "")

    @property
    def errors(self) -> list[FieldProblem]:
        """The fields that the API named, each with its fault."""
        found = self.problem.get("errors")
        return found if isinstance(found, list) else []


class Refused(ApiError):
    pass


class NotAllowed(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class Managed(Conflict):
    pass


class QuotaExceeded(ApiError):
    pass


class Unavailable(ApiError):
    pass


class InvalidSignature(CarillonError):
    """A request with this signature is not to be acted upon; the message has the reason."""


_BY_TYPE = {
    "urn:carillon:problem:managed": Managed,
    "urn:carillon:problem:quota-exceeded": QuotaExceeded,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    **dict.fromkeys((400, 413, 415, 422), Refused),
    **dict.fromkeys((401, 403), NotAllowed),
    **dict.fromkeys((404, 410), NotFound),
    **dict.fromkeys((409, 412, 428), Conflict),
    429: QuotaExceeded,
    **dict.fromkeys((502, 503, 504), Unavailable),
}


def error_of(status: int, content: bytes, reason: str) -> ApiError:
    """The error for an answer that is no success; `reason` is the name of its status."""
    problem = _problem_of(status, content, reason)
    kind = _BY_TYPE.get(problem["type"]) or _BY_STATUS.get(status, ApiError)
    return kind(problem)


def _problem_of(status: int, content: bytes, reason: str) -> dict[str, Any]:
    """The problem in an answer; the gateway's own `{"message"}` is made into one."""
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    problem = {"type": "about:blank", "title": reason or "Error", "status": status, "detail": ""}
    if isinstance(value, dict):
        message = value.get("message")
        problem.update(value if "title" in value else {"detail": str(message or "")})
    else:
        problem["detail"] = content.decode(errors="replace")[:200]
    # Another server's, at a wrong address, may have anything there.
    return {**problem, "type": str(problem["type"]), "status": status}


def unreachable(url: str, reason: str) -> Unavailable:
    """The error for a connection that failed."""
    title, detail = "The API cannot be reached", f"{url}: {reason}"
    return Unavailable(_local(title, detail))


def unexpected(url: str) -> ApiError:
    """The error for a success that is no JSON object."""
    detail = f"{url} did not answer a JSON object; is this the API's address?"
    return ApiError(_local("Unexpected answer", detail))


def _local(title: str, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": title, "status": 0, "detail": detail}
