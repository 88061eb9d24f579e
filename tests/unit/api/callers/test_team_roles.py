"""Owners that are teams: membership, and the role that each operation takes."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.spec.teams import Role
from tests.unit.api.callers.test_roles import JOB, signed
from tests.unit.api.conftest import BODY, World, new_world
from tests.unit.api.gateway import Client, Json, answer_of, event

WORLD = new_world()
API = WORLD.api()
DESCRIPTION: Json = answer_of(API, event("GET", "/openapi.json")).json
TEAM = {"Carillon-Team": "billing"}
SCOPES = "carillon/billing:editor other/billing:admin openid"


def member(world: World, groups: Any, subject: str = "ann", **claims: Any) -> Client:
    """Somebody with these groups, of which every request is for the team billing."""
    client = Client(world.api(), f"user/{subject}", groups, team="billing")
    client._claims |= claims
    return client


def operations() -> Iterator[tuple[str, str, str, Json]]:
    """Method, path, and the role that it takes; of each switch the same operation with it."""
    for template, methods in DESCRIPTION["paths"].items():
        path = re.sub(r"\{\w+\}", "0" * 26, template)
        for method, operation in methods.items():
            if operation.get("security") == []:
                continue
            yield method.upper(), path, operation["x-carillon-role"], {}
            for switch, role in operation.get("x-carillon-role-with", {}).items():
                yield method.upper(), path, role, {switch: ["x"] if switch == "keep" else True}


OPERATIONS = list(operations())


@pytest.mark.parametrize("held", Role)
@pytest.mark.parametrize(("method", "path", "needed", "switch"), OPERATIONS)
def test_every_operation_is_for_those_who_have_its_role(
    method: str, path: str, needed: str, switch: Json, held: Role
) -> None:
    client = member(WORLD, f"[billing:{held} other:admin]")
    query = {name: json.dumps(value) for name, value in switch.items()}
    is_in_body = path == "/apply"
    body = (switch if is_in_body else {},) if method in ("POST", "PUT", "PATCH") else ()
    answer = client.send(method, path, *body, query=None if is_in_body or not query else query)

    assert needed in ("any", "operator", *Role)
    refused = needed == "operator" or (needed != "any" and not held.includes(Role(needed)))
    is_refusal = answer.status == 403 and answer.json["type"].endswith(":role-too-low")
    assert is_refusal == refused, answer.text


def test_a_write_is_never_a_viewer_s() -> None:
    """What changes nothing is named here: a route that is new is a write until somebody says so."""
    harmless = {("POST", "/schedules/preview")}
    for method, path, needed, switch in OPERATIONS:
        if method != "GET" and (method, path) not in harmless and "dry_run" not in switch:
            assert needed in ("editor", "admin", "operator"), (method, path)


def test_what_only_admins_may() -> None:
    assert {(method, path) for method, path, role, switch in OPERATIONS if role == "admin"} >= {
        ("DELETE", "/jobs"),
        ("POST", "/dead-letters/discard"),
        ("PUT", f"/notifications/{'0' * 26}"),
        ("DELETE", f"/notifications/{'0' * 26}"),
        ("POST", f"/notifications/{'0' * 26}/test"),
        ("POST", "/apply"),
        ("POST", "/jobs/hand-over"),
    }
    switches = {(method, path): [*switch] for method, path, role, switch in OPERATIONS if switch}
    assert len([1 for *_, switch in OPERATIONS if "force" in switch]) == 7, switches
    assert [path for _, path, _, switch in OPERATIONS if "keep" in switch] == ["/apply"]


def test_a_rehearsal_of_everything_is_a_viewer_s(world: World) -> None:
    viewer = member(world, ["billing:viewer"])
    manifest = {"manifest": "m", "jobs": {"a": BODY | {"name": "a"}}, "force": True}
    prune = {"manifest": "m", "keep": []}
    assert viewer.post("/apply", prune | {"dry_run": True}).status == 200
    assert member(world, ["billing:editor"]).post("/apply", prune).status == 403
    assert viewer.post("/apply", manifest | {"dry_run": True}).status == 200
    assert viewer.post("/apply", manifest | {"dry_run": False}).status == 403
    path = "/jobs/named/a"
    body = BODY | {"name": "a"}
    assert viewer.send("PUT", path, body, query={"dry_run": "true", "force": "1"}).status == 200
    for words in ({"dry_run": "false"}, {"dry_run": "perhaps"}, {"force": "yes"}):
        assert viewer.send("PUT", path, body, query=words).status == 403
    # What an operation does not take opens nothing.
    assert viewer.send("POST", "/jobs", body | {"dry_run": True}).status == 403
    assert viewer.send("POST", "/jobs", body, query={"dry_run": "true"}).status == 403
    # Nor does what it takes elsewhere.
    assert viewer.send("PUT", path, body | {"dry_run": True}).status == 403
    off = {"dry_run": "false"}
    assert viewer.send("PUT", path, body | {"dry_run": True}, query=off).status == 403
    assert viewer.send("POST", "/apply", manifest, query={"dry_run": "true"}).status == 403
    assert member(world, ["billing:editor"]).get("/jobs").json["items"] == []


def test_force_of_an_item_of_many_is_an_admin_s(world: World) -> None:
    job_id = member(world, ["billing:editor"]).post("/jobs", BODY).json["job_id"]
    item = {"job_id": job_id, "patch": {"description": "d"}, "force": True}
    for role, status in (("editor", 403), ("admin", 200)):
        changed = member(world, [f"billing:{role}"]).send("PATCH", "/jobs/bulk", {"items": [item]})
        assert changed.json["items"][0]["status"] == status


def test_two_members_see_one_list_and_a_third_person_nothing(world: World) -> None:
    ann = member(world, "[billing:editor]")
    ben = member(world, "[billing:viewer operators]", "ben")
    eve = member(world, "[other:admin billing]", "eve")
    created = ann.post("/jobs", BODY)
    path = f"/jobs/{created.json['job_id']}"
    job = world.jobs.get("team/billing", created.json["job_id"])

    assert job is not None
    assert job.author.id == "ann"
    assert [job["name"] for job in ben.get("/jobs").json["items"]] == [BODY["name"]]
    refused = eve.get("/jobs")
    assert (refused.status, refused.json["type"]) == (403, "urn:carillon:problem:not-a-member")
    assert eve.get(path).status == 403
    for stranger in (Client(world.api(), "user/eve", "[other:admin]"), Client(world.api())):
        assert stranger.get(path).status == 404
        assert stranger.get("/jobs").json["items"] == []
    # A person's own jobs are not the team's.
    assert Client(world.api(), "user/ann", "[billing:editor]").get(path).status == 404


ODD_NAMES = [
    *("", "Billing", "a/b", "user/owner-1", "a#b", "x" * 64, "a b", "*", ".*", "billing:admin"),
    *("billing,billing", "billing, other", "[billing]", '["billing"]', "team/billing", "%62illing"),
    *("billing\n", "billing\0", "-billing", "b\u0456lling", "\uff42illing", "\u0661", "../billing"),
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_team_has_a_name(world: World, name: str) -> None:
    client = Client(world.api(), groups="[billing:admin]")
    answer = client.send("GET", "/jobs", headers={"Carillon-Team": name})
    is_taken = name.strip() == "billing"
    assert (answer.status, is_taken or answer.fields == ["Carillon-Team"]) == (
        (200, True) if is_taken else (400, True)
    )


def test_several_headers_name_no_team(world: World) -> None:
    """A gateway joins them by commas; whatever does not is refused all the same."""
    made = event(
        "GET", "/jobs", claims={"sub": "ann", "cognito:groups": "[billing:viewer a:admin]"}
    )
    made["headers"] = {"Carillon-Team": "billing", "carillon-team": "a"}
    answer = answer_of(world.api(), made)
    assert (answer.status, answer.fields) == (400, ["Carillon-Team"])
    made["headers"] = {"CARILLON-TEAM": "billing"}
    assert answer_of(world.api(), made).status == 200


@pytest.mark.parametrize("subject", ["ann\0", "a\nb", "\x7f", "b\xfcrgel", "x" * 256, ""])
def test_a_subject_is_printable(world: World, subject: str) -> None:
    client = Client(world.api())
    client._claims = {"sub": subject}
    assert client.get("/jobs").status == 401


def test_a_deployment_may_have_jobs_of_teams_only(world: World) -> None:
    world.settings = replace(world.settings, personal_jobs=False)
    alone = Client(world.api(), groups=["billing:viewer"])
    for answer in (alone.get("/jobs"), alone.post("/jobs", BODY)):
        assert (answer.status, answer.json["type"]) == (403, "urn:carillon:problem:team-required")
    said = alone.get("/deployment").json
    assert said["features"]["personal_jobs"] is False
    assert (said["caller"]["role"], said["caller"]["teams"]) == (None, {"billing": "viewer"})
    assert member(world, ["billing:viewer"]).get("/jobs").status == 200
    operator = Client(world.api(), groups=["operators"])
    assert operator.get("/status").json["segments"]
    assert operator.post("/jobs", BODY).status == 403


def test_operators_act_for_teams_where_that_is_allowed_and_it_is_noted(world: World) -> None:
    claims = {"username": "olga"}
    assert member(world, ["operators"], "o", **claims).get("/jobs").status == 403
    world.settings = replace(world.settings, operators_act_for_teams=True)
    created = member(world, ["operators"], "o", **claims).post("/jobs", BODY)
    job = world.jobs.get("team/billing", created.json["job_id"])
    assert job is not None
    assert job.author.name == "olga (operator)"
    admin = member(world, ["operators", "billing:admin"], "o", **claims)
    assert admin.get("/deployment").json["caller"]["name"] == "olga"


@pytest.mark.parametrize(
    ("claim", "pattern", "default", "value", "teams"),
    [
        ("groups", r"/(?P<team>[a-z]+)/(?P<role>\w+)", "", "[/billing/editor /ops]", "editor"),
        ("roles", r"carillon\.(?P<team>[a-z]+)", "viewer", ["carillon.billing", "x"], "viewer"),
        ("groups", r"(?P<team>.+):(?P<role>.+)", "", "[billing:owner a/b:admin]", None),
        ("groups", r"(?P<team>\w+)(:(?P<role>\w+))?", "", "billing", None),
        (
            "groups",
            r"(?P<team>\w+):(?P<role>\w+)",
            "",
            ["x billing:admin", "[billing:admin]"],
            None,
        ),
        ("groups", r"(?P<team>\w+):(?P<role>\w+)", "", "[billing:viewer billing:admin]", "admin"),
        ("groups", r"(?P<team>\w+):(?P<role>\w+)", "", 7, None),
    ],
)
def test_any_issuer_s_claim_is_read(
    world: World, claim: str, pattern: str, default: str, value: Any, teams: str | None
) -> None:
    world.settings = replace(
        world.settings, team_claim=claim, team_pattern=pattern, team_default_role=default
    )
    said = Client(world.api())
    said._claims |= {claim: value, "cognito:groups": ["billing:admin"]}
    assert said.get("/deployment").json["caller"]["teams"].get("billing") == teams


@pytest.mark.parametrize(
    ("claims", "claim"),
    [
        ({"client_id": "c1", "scope": SCOPES}, "scope"),
        ({"cid": "c1", "scp": f"[{SCOPES}]", "scope": "carillon/billing:admin"}, "scp"),
        ({"azp": "c1", "permissions": SCOPES.split()}, "permissions"),
    ],
)
def test_a_machine_is_a_member_by_its_scope(world: World, claims: Json, claim: str) -> None:
    world.settings = replace(
        world.settings, machine_scope_claim=claim, machine_names={"c1": "ci", "c2": "other"}
    )
    machine = member(world, None, "c1", **claims)
    told = machine.get("/deployment").json["caller"]
    assert (told["kind"], told["role"], told["owner"]) == ("machine", "editor", "team/billing")
    assert (told["name"], told["teams"]) == ("ci", {"billing": "editor"})
    # A person's scopes are those of an application.
    assert member(world, None, "ann", **claims).get("/jobs").status == 403


def test_no_scope_makes_an_operator(world: World) -> None:
    """Operators are named in the claim of teams."""
    scopes = "carillon/operators carillon/billing:viewer"
    machine = member(world, None, "c1", client_id="c1", scope=scopes)
    assert machine.get("/deployment").json["caller"]["is_operator"] is False
    assert machine.get("/status").json["segments"] is None
    assert machine.put("/owners/team/billing/quota", {"jobs": 0}).status == 403


def test_a_machine_has_no_jobs_of_its_own(world: World) -> None:
    machine = Client(world.api(), "user/c1")
    machine._claims |= {"client_id": "c1", "scope": SCOPES}
    for refused in (machine.get("/jobs"), machine.post("/jobs", BODY)):
        assert (refused.status, refused.json["type"]) == (403, "urn:carillon:problem:team-required")
        assert "a machine has no jobs of its own: name the team" in refused.json["detail"]
    told = machine.get("/deployment").json["caller"]
    assert (told["role"], told["teams"]) == (None, {"billing": "editor"})


def test_a_role_of_iam_is_an_editor_unless_its_policy_opens_the_path_of_admins(
    world: World,
) -> None:
    created = signed(world, "POST", "/aws/billing/jobs", JOB)
    assert created.status == 201
    everything = '{"all": true}'
    assert signed(world, "POST", "/aws/billing/dead-letters/discard", everything).status == 403
    path = "/aws-admin/billing/dead-letters/discard"
    started = signed(world, "POST", path, everything)
    assert started.status == 202
    assert started.headers["location"].startswith("/aws-admin/billing/operations/")
    assert member(world, ["billing:viewer"]).get("/jobs").json["items"][0]["name"] == "nightly"


def test_the_path_of_a_role_stands_above_the_header(world: World) -> None:
    for team, status in (("billing", 200), ("other", 403)):
        made = event("GET", "/aws/billing/jobs", headers={"Carillon-Team": team})
        made["requestContext"]["authorizer"] = {"iam": {"userArn": "arn:aws:iam::1:role/r"}}
        assert answer_of(world.api(), made).status == status
