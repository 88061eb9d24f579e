"""Routes with what the resolver leaves out: 405, unknown query parameters, unexpected bodies."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import MethodType
from typing import Any, Final, Literal, TypeVar, get_args

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.openapi.types import OpenAPIResponse, OpenAPIResponseHeader
from pydantic import BaseModel, TypeAdapter, ValidationError

from carillon.api.http.callers import Caller, admin_of, caller_of
from carillon.api.http.problems import (
    CONTENT_TYPE,
    Kind,
    Problem,
    ProblemError,
    invalid_fields,
)
from carillon.api.http.requests import body_fields
from carillon.domain.spec.owners import Author
from carillon.domain.spec.teams import Role
from carillon.settings import Settings

_PARAMETER = re.compile(r"<(\w+)>")
_ALWAYS = (
    Kind.INVALID_JSON,
    Kind.INVALID_HEADER,
    Kind.UNAUTHENTICATED,
    Kind.NOT_A_MEMBER,
    Kind.TEAM_REQUIRED,
    Kind.ROLE_TOO_LOW,
    Kind.TOO_LARGE,
    Kind.UNSUPPORTED_MEDIA_TYPE,
    Kind.INVALID_FIELD,
    Kind.TOO_MANY_REQUESTS,
    Kind.INTERNAL,
    Kind.UNAVAILABLE,
)
_OF_OWNERS = frozenset(
    {
        Kind.INVALID_HEADER,
        Kind.UNAUTHENTICATED,
        Kind.NOT_A_MEMBER,
        Kind.TEAM_REQUIRED,
        Kind.ROLE_TOO_LOW,
        Kind.TOO_MANY_REQUESTS,
    }
)
"""An open route does not ask who sent the request."""

_SWITCHES = {
    "dry_run": Role.VIEWER,
    "force": Role.ADMIN,
    "adopt": Role.ADMIN,
    "keep": Role.ADMIN,
}
"""Fields that make of an operation another one, for another role: a rehearsal, or one that touches
what others manage; with `keep` an apply prunes."""
_BOOL = TypeAdapter(bool)


class GatewayMessage(BaseModel):
    """The gateway's own answer to requests that it does not pass on."""

    message: str


GATEWAYS_OWN = (401, 429, 500, 503)
"""Statuses that the gateway answers by itself, too: a token that it does not accept, a throttle."""


OPERATOR: Final = "operator"
"""The role of those who run the deployment, for no owner."""
Needed = Role | Literal["operator"] | None

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Route:
    """`answers`: success statuses and what they mean; `headers`: those of the answers. `role` is
    the least that the caller needs for the owner, None where any token will do; or OPERATOR."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, str]
    problems: tuple[Kind, ...]
    headers: Mapping[str, str]
    is_open: bool
    role: Needed


def route(
    request: str,
    summary: str,
    answers: Mapping[int, str],
    *problems: Kind,
    role: Needed,
    headers: Mapping[str, str] | None = None,
    is_open: bool = False,
) -> Callable[[_Method], _Method]:
    """Mark a method of a Resource as the one that answers `request`, such as `GET /jobs`; if it
    `is_open`, without a token. A `role` is needed for its owner, or None."""
    method, path = request.split()

    def mark(call: _Method) -> _Method:
        found = Route(method, path, summary, answers, problems, headers or {}, is_open, role)
        vars(call)["route"] = found
        return call

    return mark


class Routes:
    """Registers routes with the resolver, and remembers what each of them takes, and of whom."""

    def __init__(self, app: APIGatewayHttpResolver, settings: Settings) -> None:
        self.app = app
        self._settings = settings
        self._operations: dict[str, tuple[Route, _Fields]] = {}
        self._methods: defaultdict[str, list[str]] = defaultdict(list)
        self._fields: dict[tuple[str, str], _Fields] = {}
        app.use(middlewares=[self._refuse_unknown])

    def add(self, route: Route, call: MethodType) -> None:
        template = _PARAMETER.sub(r"{\1}", route.path)
        self._methods[template].append(route.method)
        fields, form = _signature(call.__func__)
        self._fields[route.method, template] = fields
        self._operations[call.__name__] = route, fields
        always = [kind for kind in _ALWAYS if not route.is_open or kind not in _OF_OWNERS]
        described = {name: _header(text) for name, text in route.headers.items()}
        successes: dict[int, OpenAPIResponse] = {
            status: {"description": meaning, "headers": described, "content": _content(form)}
            for status, meaning in route.answers.items()
        }
        self.app.route(
            route.path,
            method=route.method,
            summary=route.summary,
            description=inspect.getdoc(call),
            responses={**_documented(*always, *route.problems), **successes},
            tags=[template.strip("/").partition("/")[0]],
            operation_id=call.__name__,
            status_code=min(route.answers),
            openapi_extensions=_extensions(route, fields),
        )(call)

    def caller(self) -> Caller:
        """The sender of the request; raises ProblemError."""
        return caller_of(self.app.current_event.raw_event, self._settings)

    def admin_of(self, team: str, what: str) -> Author:
        """The caller as an admin of another team, too; raises ProblemError where it is none."""
        return admin_of(self.caller(), team, self._settings, what)

    def permit(self, operation: str) -> None:
        """Raises ProblemError where the caller may not do this for the owner of the request."""
        found = self._operations.get(operation)
        if found is None or found[0].is_open:
            return  # of the resolver itself, where no route fits
        route, fields = found
        caller = self.caller()
        if route.role is None:
            return
        if route.role == OPERATOR:
            caller.require_operator()
            return
        event = self.app.current_event
        # A switch in a place where the operation has none opens nothing.
        query, body = event.query_string_parameters or {}, event.json_body or {}
        given = {name: query.get(name) for name in fields.query}
        given |= {name: body.get(name) for name in fields.body or ()}
        on = [name for name in _SWITCHES if name in given and _is_on(name, given[name])]
        needed = _SWITCHES[on[0]] if on else route.role
        if "dry_run" in on:
            needed = Role.VIEWER
        caller.require(needed, f"with {on[0]}" if on else "")

    def no_route(self) -> ProblemError:
        """The reason why no route fits the request: its path is unknown, or only its method is."""
        event = self.app.current_event
        methods = self._methods_of(event.path)
        if methods and event.http_method not in methods:
            return _not_allowed(event.http_method, methods)
        return ProblemError(Kind.NOT_FOUND, "there is no such resource")

    def is_ambiguous(self, template: str) -> bool:
        """True if a path of its own could be taken for an item of this one, by a method that it
        does not have: the answer is 405 then."""
        return "{" in template and any(
            "{" not in path and _fits(template, path) for path in self._methods
        )

    def _methods_of(self, path: str) -> list[str]:
        """The methods of a path; one of its own is no item of that name (`/jobs/pause`)."""
        if path in self._methods:
            return self._methods[path]
        for template, methods in self._methods.items():
            if _fits(template, path):
                return methods
        return []

    def _refuse_unknown(
        self, app: APIGatewayHttpResolver, next_middleware: NextMiddleware
    ) -> Response[Any]:
        event = app.current_event
        methods = self._methods_of(event.path)
        if methods and event.http_method not in methods:
            # The resolver took a path of its own for an item: `GET /jobs/pause` asks for no job.
            raise _not_allowed(event.http_method, methods)
        fields = self._fields.get((event.http_method.upper(), app.request.route))
        if fields is not None:
            known, given = fields.query, event.query_string_parameters or {}
            unknown = [name for name in given if name not in known]
            wanted = f"use {', '.join(sorted(known))}" if known else "there are none here"
            errors = [(name[:200], f"is not a known query parameter: {wanted}") for name in unknown]
            if fields.body is None:
                message = "is not a known field: the body must be empty"
                errors += [(name[:200], message) for name in body_fields(app)]
            if errors:
                raise invalid_fields(errors[:50])
        answer: Response[Any] = next_middleware(app)
        return answer


class Resource:
    """The routes of a resource: each method that is marked as a `route` answers it."""

    def __init__(self, routes: Routes) -> None:
        self._app = routes.app
        self._routes = routes
        for name, member in vars(type(self)).items():
            if isinstance(getattr(member, "route", None), Route):
                routes.add(member.route, getattr(self, name))

    def _caller(self) -> Caller:
        return self._routes.caller()

    def _owner(self) -> str:
        return self._caller().owner


def _fits(template: str, path: str) -> bool:
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
    return re.fullmatch(pattern, path) is not None


def _extensions(route: Route, fields: "_Fields") -> dict[str, Any]:
    if route.is_open:
        # It requires none of the schemes that hold for all others.
        return {"security": []}
    told: dict[str, Any] = {"x-carillon-role": str(route.role or "any")}
    switches = {
        name: role.value
        for name, role in _SWITCHES.items()
        if name in fields.query or name in (fields.body or ())
    }
    if switches:
        told["x-carillon-role-with"] = switches
    return told


@dataclass(frozen=True, slots=True)
class _Fields:
    """The parameters in the query, and the members of the body, that a method takes; None: it takes
    no body."""

    query: frozenset[str]
    body: frozenset[str] | None


@cache
def _signature(method: Callable[..., Any]) -> tuple[_Fields, Any]:
    """The fields that a method takes, and the model that it answers: Response[model]."""
    signature = inspect.signature(method)
    query: set[str] = set()
    body: frozenset[str] | None = None
    for name, parameter in signature.parameters.items():
        kind, *marks = get_args(parameter.annotation) or (None,)
        for mark in marks:
            if isinstance(mark, Query):
                query.add(mark.alias or name)
            if isinstance(mark, Body):
                models = (kind, *get_args(kind))
                body = frozenset(chain(*(getattr(each, "model_fields", ()) for each in models)))
    (form,) = get_args(signature.return_annotation)
    return _Fields(frozenset(query), body), form


def _is_on(name: str, value: Any) -> bool:
    """True for a switch as requests are read; what cannot be read is refused afterwards."""
    if name == "keep":
        return value is not None
    try:
        return _BOOL.validate_python(value)
    except ValidationError:
        return False


def _not_allowed(method: str, methods: Iterable[str]) -> ProblemError:
    allowed = ", ".join(sorted(methods))
    detail = f"{method} is not among {allowed}"
    return ProblemError(Kind.METHOD_NOT_ALLOWED, detail[:200], headers={"Allow": allowed})


def _content(form: Any) -> dict[str, Any]:
    if form is type(None) or form is None:
        return {}
    return {"application/json": {"model": form}}


def _header(description: str) -> OpenAPIResponseHeader:
    return {"description": description, "schema": {"type": "string"}}


def _documented(*kinds: Kind) -> dict[int, Any]:
    """The OpenAPI responses for these problems."""
    titles: defaultdict[int, list[str]] = defaultdict(list)
    for kind in kinds:
        titles[kind.status].append(kind.title)
    by_gateway = {"application/json": {"model": GatewayMessage}}
    return {
        status: {
            "description": "; ".join(meant),
            "content": {
                CONTENT_TYPE: {"model": Problem},
                **(by_gateway if status in GATEWAYS_OWN else {}),
            },
        }
        for status, meant in titles.items()
    }
