"""The OpenAPI description, and that the API does what it says, for generated requests."""

import json
import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.unit.api.conftest import BODY, new_world
from tests.unit.api.gateway import Client, Json, answer_of, event
from tests.unit.api.wsgi import Gateway

API = new_world().api()


def _described() -> Any:
    """The API behind a gateway that has already let every request in: tokens are its matter."""
    gateway = Gateway(API, {"sub": "owner-1"})
    schema = schemathesis.openapi.from_wsgi("/openapi.json", gateway)
    del schema.raw_schema["security"]
    for methods in schema.raw_schema["paths"].values():
        for operation in methods.values():
            # Most teams that are made up are not the caller's; test_team_roles has that.
            parameters = operation.get("parameters", [])
            parameters[:] = [each for each in parameters if each["name"] != "carillon-team"]
    return schema


SCHEMA = _described()
CHECKS: list[Any] = [
    allow_header_conformance,
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]
ROUTES = {
    "/apply": {"post"},
    "/changes": {"get"},
    "/jobs/{job_id}/changes": {"get"},
    "/completions/{run_id}/complete": {"post"},
    "/completions/{run_id}/fail": {"post"},
    "/completions/{run_id}/heartbeat": {"post"},
    "/jobs": {"get", "post", "delete"},
    "/jobs/bulk": {"patch", "post"},
    "/jobs/named/{name}": {"get", "put", "delete"},
    "/jobs/pause": {"post"},
    "/jobs/hand-over": {"post"},
    "/jobs/resume": {"post"},
    "/jobs/{job_id}": {"get", "patch", "delete"},
    "/jobs/{job_id}/pause": {"post"},
    "/jobs/{job_id}/resume": {"post"},
    "/jobs/{job_id}/run": {"post"},
    "/jobs/{job_id}/runs": {"get"},
    "/jobs/{job_id}/runs/{run_id}": {"get"},
    "/jobs/{job_id}/runs/{run_id}/cancel": {"post"},
    "/jobs/{job_id}/missed": {"get"},
    "/jobs/{job_id}/backfill": {"post"},
    "/jobs/{job_id}/upcoming": {"get"},
    "/runs": {"get"},
    "/runs/summary": {"get"},
    "/runs/{run_id}": {"get"},
    "/upcoming": {"get"},
    "/schedules/preview": {"post"},
    "/forecast": {"get"},
    "/forecast/jobs": {"get"},
    "/calendars": {"get"},
    "/notifications": {"get"},
    "/notifications/{name}": {"get", "put", "delete"},
    "/notifications/{name}/test": {"post"},
    "/calendars/{name}": {"get", "put", "delete"},
    "/dead-letters": {"get"},
    "/dead-letters/redrive": {"post"},
    "/dead-letters/discard": {"post"},
    "/dead-letters/{run_id}": {"delete"},
    "/dead-letters/{run_id}/redrive": {"post"},
    "/operations": {"get"},
    "/operations/{operation_id}": {"get"},
    "/operations/{operation_id}/outcomes": {"get"},
    "/operations/{operation_id}/cancel": {"post"},
    "/quota": {"get"},
    "/owners/{kind}/{name}/quota": {"get", "put"},
    "/status": {"get"},
    "/deployment": {"get"},
    "/runs/{run_id}/logs": {"get"},
    "/openapi.json": {"get"},
    "/.well-known/carillon": {"get"},
}


GATEWAYS_OWN = {"401", "429", "500", "503"}
"""What the gateway answers by itself is `{"message": …}`."""


def _check(case: "schemathesis.Case[Any]") -> None:
    parameters = case.path_parameters
    if parameters and "job_id" in parameters:
        # A job that is there: ids made at random never are.
        made = Client(API).put("/jobs/named/there", BODY | {"name": "there"}).json["job"]
        parameters["job_id"] = made["job_id"]
    case.call_and_validate(checks=CHECKS)


bounded = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
test_the_api_does_what_it_says = SCHEMA.parametrize()(bounded(_check))


@pytest.fixture(scope="module")
def description() -> Json:
    # Tools fetch it without a token.
    answer = answer_of(API, event("GET", "/openapi.json"))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    described: Json = answer.json
    return described


def test_every_route_is_described_and_no_other(description: Json) -> None:
    assert {path: set(methods) for path, methods in description["paths"].items()} == ROUTES
    assert description["openapi"].startswith("3.1")


def test_every_refusal_is_described_as_a_problem(description: Json) -> None:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                where = f"{method} {path} {status}"
                types = set(response.get("content", {}))
                if int(status) >= 400:
                    by_gateway = {"application/json"} if status in GATEWAYS_OWN else set()
                    assert types == {"application/problem+json"} | by_gateway, where
                else:
                    assert types == (set() if status == "204" else {"application/json"}), where


def test_it_is_valid_openapi(description: Json) -> None:
    errors = OpenAPIV31SpecValidator(description).iter_errors()

    assert [error.message for error in errors] == []


def test_every_target_must_say_its_type(description: Json) -> None:
    schemas = description["components"]["schemas"]
    targets = [name for name in schemas if name.endswith("Target")]

    assert len(targets) == 9
    for name in targets:
        assert "type" in schemas[name]["required"], name
        assert "default" not in schemas[name]["properties"]["type"], name


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("idempotency-key", ["k", '"k"', 'a"b', "a b", "x" * 255], ["", " ", '"', '""', "x" * 256]),
        ("if-match", ["*", "3", '"3"'], ["", "x", '"3', 'W/"3"', "**"]),
        ("if-none-match", ["*"], ["", '"3"']),
        ("cursor", ["WyJh-_0"], ["", "a=", "a b"]),
    ],
)
def test_headers_and_cursors_have_patterns(
    description: Json, name: str, taken: list[str], refused: list[str]
) -> None:
    patterns = {
        parameter["schema"].get("pattern")
        for methods in description["paths"].values()
        for operation in methods.values()
        for parameter in operation.get("parameters", ())
        if parameter["name"] == name
    }

    (pattern,) = patterns
    assert [text for text in taken if not re.search(pattern, text)] == []
    assert [text for text in refused if re.search(pattern, text)] == []


def test_keys_are_taken_as_they_are_described(client: Client) -> None:
    for key, status in (("k", 201), ('"k"', 200), ('"', 400), ('""', 400), ('"k', 400)):
        assert client.post("/jobs", BODY, key=key).status == status, key


def test_paths_that_can_be_taken_for_items_tell_of_405(description: Json) -> None:
    told = {
        (method, path)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if "405" in operation["responses"]
    }
    assert told == {
        ("get", "/jobs/{job_id}"),
        ("patch", "/jobs/{job_id}"),
        ("delete", "/jobs/{job_id}"),
        ("delete", "/dead-letters/{run_id}"),
        ("get", "/runs/{run_id}"),
    }


def test_the_gateway_s_own_refusal_is_described(description: Json) -> None:
    content = description["paths"]["/jobs"]["get"]["responses"]["401"]["content"]

    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/GatewayMessage"}
    assert "401" not in description["paths"]["/openapi.json"]["get"]["responses"]


def test_every_reference_leads_somewhere(description: Json) -> None:
    text = json.dumps(description)
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}

    assert names == set(description["components"]["schemas"]) - {"unused"}


def test_only_instants_with_an_offset_are_said_to_be_date_times(
    description: Json,
) -> None:
    """RFC 3339, to which the format refers, knows no time without an offset."""
    members = description["components"]["schemas"]["PreviewBody"]["properties"]

    def formats(name: str) -> set[str | None]:
        return {kind.get("format") for kind in members[name]["anyOf"]}

    assert formats("start_at") == formats("end_at") == {None}
    assert formats("after") == {"date-time", None}


def test_all_but_the_description_needs_a_token(description: Json) -> None:
    assert description["security"] == [{"jwt": []}]
    assert description["components"]["securitySchemes"]["jwt"]["scheme"] == "bearer"
    open_paths = [
        path
        for path, methods in description["paths"].items()
        if any(operation.get("security") == [] for operation in methods.values())
    ]
    reports = [f"/completions/{{run_id}}/{action}" for action in ("complete", "fail", "heartbeat")]
    assert open_paths == [*reports, "/.well-known/carillon", "/openapi.json"]
