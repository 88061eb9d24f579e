"""Generated requests of every operation, each sent as several callers: no 5xx, nobody is told of
another owner, and nobody does what its role does not allow."""

import json
from typing import Any
from zlib import crc32

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from carillon.domain.spec.teams import Role
from tests.unit.api.conftest import new_world
from tests.unit.api.gateway import Answer
from tests.unit.api.marked import MarkedWorld
from tests.unit.api.wsgi import Gateway

MARKED = MarkedWorld(new_world())
VICTIM = MARKED.of("team/billing")
GATEWAY = Gateway(MARKED.api, {})
CALLERS: dict[str, tuple[str, str, Role]] = {
    "admin of another team": ("[{other}:admin]", "{other}", Role.ADMIN),
    "person": ("", "", Role.ADMIN),
    "operator": ("[operators {other}:viewer]", "{other}", Role.VIEWER),
    "viewer": ("[billing:viewer {other}:admin]", "billing", Role.VIEWER),
    "editor": ("[billing:editor]", "billing", Role.EDITOR),
    "admin": ("[billing:admin]", "billing", Role.ADMIN),
}
"""Groups, the team acted for, and the role there; `other` is a team for each operation, so that it
has nothing but what that has made. Who may change what the first must not see comes last."""
CHECKS: list[Any] = [
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
]
NAMES = {
    "jobs": VICTIM.job_name,
    "calendars": VICTIM.calendar,
    "notifications": VICTIM.notification,
    "owners": "nobody",
}


def _described() -> Any:
    schema = schemathesis.openapi.from_wsgi("/openapi.json", GATEWAY)
    del schema.raw_schema["security"]
    for methods in schema.raw_schema["paths"].values():
        for operation in methods.values():
            parameters = operation.get("parameters", [])
            parameters[:] = [each for each in parameters if each["name"] != "carillon-team"]
    return schema


SCHEMA = _described()


def _check(case: "schemathesis.Case[Any]") -> None:
    """The ids and names in the path are those of the team billing."""
    MARKED.seed_all()
    told = {
        "job_id": VICTIM.job_id,
        "run_id": VICTIM.dead_id,
        "operation_id": VICTIM.operation_id,
        "name": NAMES.get(case.path.split("/")[1], ""),
    }
    case.path_parameters.update({name: told[name] for name in case.path_parameters if name in told})
    sent = json.dumps([case.path_parameters, str(case.query), str(case.body), str(case.headers)])
    role_of_it = case.operation.definition.raw.get("x-carillon-role")
    switches = case.operation.definition.raw.get("x-carillon-role-with", {})
    other = f"team-{crc32(case.operation.label.encode())}"
    for name, (groups, acts_for, role) in CALLERS.items():
        team = acts_for.format(other=other)
        subject = f"{other}-{name}"
        GATEWAY.claims = {"sub": subject, "cognito:groups": groups.format(other=other)}
        headers = {"carillon-team": team} if team else {}
        response = case.call(headers=headers)
        case.validate_response(response, checks=CHECKS, headers=headers)
        answer = Answer(
            response.status_code,
            {name: str(text) for name, text in response.headers.items()},
            response.text,
        )
        owner = f"team/{team}" if team else f"user/{subject}"
        assert not MARKED.leaked(owner, sent, answer), (name, answer)
        if role_of_it in list(Role) and not switches and not role.includes(Role(role_of_it)):
            # What is no JSON is refused before anybody looks at who sent it.
            assert answer.status in (400, 403, 413, 415), (name, answer)


bounded = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
test_no_caller_is_told_of_another_owner = SCHEMA.parametrize()(bounded(_check))
