"""The caller of a request: whom the gateway's authorizer has verified, for which owner, as what."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from carillon.api.http.problems import Kind, ProblemError
from carillon.domain.spec.owners import Author, AuthorKind, Via, team_owner, user_owner
from carillon.domain.spec.teams import SCOPE_PREFIX, TEAM_NAME, Role, names_of
from carillon.settings import Settings

Event = Mapping[str, Any]

MOST_SUBJECT_CHARACTERS = 255
"""The characters that OpenID Connect allows in a subject; it becomes part of keys of the store,
so none of them is a control character."""

TEAM_HEADER = "Carillon-Team"
_TEAM_PATH = re.compile(rf"/(?P<root>aws|aws-admin)/(?P<team>{TEAM_NAME})(?P<path>/.*)")
_ROLES_OF_PATHS = {"aws": Role.EDITOR, "aws-admin": Role.ADMIN}
_NAMES = ("username", "preferred_username", "name", "email")
"""The claims that may say how people know the subject, best first."""
_CLIENTS = ("client_id", "cid", "azp")
"""The claims that name the client: of RFC 9068, of Okta, of OpenID Connect."""
_MOST_NAME_CHARACTERS = 128
_AGENTS = {"carillon-cli": Via.CLI, "carillon-console": Via.CONSOLE}


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, and for whom it is: what audit trails and quotas need.

    `owner` is whose jobs the request is about: `team/{name}` by the header `Carillon-Team`, or by
    the path of a role of IAM, else the caller's own `user/{sub}`. `role` is what the caller may do
    for that owner, None for nothing (personal jobs that are switched off). `author` is what changes
    are noted under:

    - `author.kind` person: a token with a subject; machine: a token whose `sub` is its client
      (client credentials), whose teams are in its scopes, and which has no jobs of its own; role: a
      role of IAM. System is never a caller: `owners.SYSTEM` is the author of what Carillon does by
      itself.
    - `author.id` is the subject or the role's ARN, `author.name` what people know it by, "" for
      none: from the first of `_NAMES` in the token, the machine's or the role's name.
    - `author.via` comes from the agent's name.

    `teams` are all that the token names, each with the role there. `is_operator`: it is in the
    operators' group. `acts_as_operator`: `role` comes from that alone, by
    `operators_act_for_teams`; the author's name says so, too.
    """

    owner: str
    role: Role | None
    author: Author
    teams: Mapping[str, Role] = field(default_factory=dict)
    is_operator: bool = False
    acts_as_operator: bool = False

    @property
    def subject(self) -> str:
        return self.author.id

    @property
    def name(self) -> str:
        return self.author.name

    @property
    def kind(self) -> AuthorKind:
        return self.author.kind

    def require(self, needed: Role, what: str = "") -> None:
        """Raises ProblemError unless the caller's role includes `needed`; `what` says for what."""
        if self.role is None:
            detail = f"name the team to act for: {TEAM_HEADER}, or `carillon --team`"
            if self.kind is AuthorKind.MACHINE:
                detail = f"a machine has no jobs of its own: {detail}"
            raise ProblemError(Kind.TEAM_REQUIRED, detail)
        if not self.role.includes(needed):
            detail = f"you are {self.role} of {self.owner}: this {what}".rstrip()
            raise ProblemError(Kind.ROLE_TOO_LOW, f"{detail} takes {needed}")

    def require_operator(self) -> None:
        """Raises ProblemError unless the caller is one of those who run the deployment."""
        if not self.is_operator:
            raise ProblemError(Kind.ROLE_TOO_LOW, "this is for operators of the deployment")


def caller_of(event: Event, settings: Settings) -> Caller:
    """The sender of the request; raises ProblemError where it is nobody, or no member of the team
    that it names."""
    team = _asked_team(event)
    role = _role_of(event)
    if role is not None:
        if team not in (None, role["team"]):
            raise _not_a_member(str(team))
        author = Author(AuthorKind.ROLE, role["userArn"], _role_name(role["userArn"]), _via(event))
        owner = team_owner(role["team"])
        return Caller(owner, role["role"], author, {role["team"]: role["role"]})
    claims = _claims_of(event)
    author = _author(_checked_subject(event), claims, _via(event), settings.machine_names)
    names = names_of(claims.get(settings.team_claim))
    is_operator = settings.operators_group in names
    if author.kind is AuthorKind.MACHINE:
        scopes = names_of(claims.get(settings.machine_scope_claim))
        names |= {
            each.removeprefix(SCOPE_PREFIX) for each in scopes if each.startswith(SCOPE_PREFIX)
        }
    caller = Caller(
        owner=user_owner(author.id),
        role=None,
        author=author,
        teams=settings.teams.teams_in(names),
        is_operator=is_operator,
    )
    return _for_itself(caller, settings) if team is None else _for_team(caller, team, settings)


def admin_of(caller: Caller, team: str, settings: Settings, what: str) -> Author:
    """The author of what the caller does as an admin of another team, too; raises ProblemError
    where it is none, `what` says of what."""
    there = _for_team(caller, team, settings)
    there.require(Role.ADMIN, what)
    return caller.author if caller.acts_as_operator else there.author


def _for_itself(caller: Caller, settings: Settings) -> Caller:
    """An operator that has no jobs of its own may still look, and see the deployment."""
    if settings.personal_jobs and caller.kind is not AuthorKind.MACHINE:
        return replace(caller, role=Role.ADMIN)
    return replace(caller, role=Role.VIEWER if caller.is_operator else None)


def _for_team(caller: Caller, team: str, settings: Settings) -> Caller:
    role = caller.teams.get(team)
    caller = replace(caller, owner=team_owner(team), role=role)
    if role is not Role.ADMIN and caller.is_operator and settings.operators_act_for_teams:
        name = f"{caller.name} (operator)".strip()
        author = replace(caller.author, name=name)
        return replace(caller, role=Role.ADMIN, author=author, acts_as_operator=True)
    if role is None:
        raise _not_a_member(team)
    return caller


def is_subject(text: str) -> bool:
    """True if a token may have it as its subject."""
    return 0 < len(text) <= MOST_SUBJECT_CHARACTERS and text.isascii() and text.isprintable()


def subject_of(event: Event) -> str | None:
    """The token's subject, or the role that signed; None for a request without one."""
    role = _role_of(event)
    subject = _claims_of(event).get("sub") if role is None else role["userArn"]
    return subject if isinstance(subject, str) and subject else None


def for_team(event: Event) -> Event:
    """A request of a role of IAM as one for the team in its path, `/aws/{team}/jobs`; any other as
    it is. Raises ProblemError.

    The policy that let it in names path and methods: who may call `/aws-admin` is an admin.
    """
    role = _role_of(event)
    if role is None:
        return event
    found = _TEAM_PATH.fullmatch(str(event.get("rawPath", "")))
    if found is None or not role.get("userArn"):
        raise ProblemError(Kind.UNAUTHENTICATED, "a role acts for a team: /aws/{team}/jobs")
    context = event["requestContext"]
    # Only the gateway writes an authorizer, so no sender can name a team by its own words.
    known = {"team": found["team"], "role": _ROLES_OF_PATHS[found["root"]]}
    return {
        **event,
        "rawPath": found["path"],
        "requestContext": {
            **context,
            "http": {**context["http"], "path": found["path"]},
            "authorizer": {"iam": {**role, **known}},
        },
    }


def _asked_team(event: Event) -> str | None:
    """The team that the header names. An empty one is refused: a script's unset variable must not
    turn a team's job into a person's."""
    headers = event.get("headers") or {}
    found = [text for name, text in headers.items() if str(name).lower() == TEAM_HEADER.lower()]
    if not found:
        return None
    team = ",".join(str(text).strip() for text in found)  # as a gateway joins several
    if not re.fullmatch(TEAM_NAME, team):
        message = "must be a team's name: letters a-z, digits and dashes, at most 63"
        errors = [(TEAM_HEADER, message)]
        raise ProblemError(Kind.INVALID_HEADER, f"{TEAM_HEADER} {message}", errors)
    return team


def _not_a_member(team: str) -> ProblemError:
    detail = f"your token names no role for team {team}; `carillon whoami` shows your teams"
    return ProblemError(Kind.NOT_A_MEMBER, detail, [(TEAM_HEADER, "is no team of yours")])


def _checked_subject(event: Event) -> str:
    subject = subject_of(event)
    if subject is None:
        raise ProblemError(Kind.UNAUTHENTICATED, "the token names no subject")
    if not is_subject(subject):
        detail = (
            f"the token's subject is not at most {MOST_SUBJECT_CHARACTERS} printable characters "
            "of ASCII"
        )
        raise ProblemError(Kind.UNAUTHENTICATED, detail)
    return subject


def _role_of(event: Event) -> Mapping[str, Any] | None:
    return (event.get("requestContext", {}).get("authorizer") or {}).get("iam") or None


def _role_name(arn: str) -> str:
    """Of `arn:aws:sts::123456789012:assumed-role/deployer/session` the name `deployer`."""
    return "/".join(arn.split("/")[1:2])[:_MOST_NAME_CHARACTERS]


def _author(
    subject: str, claims: Mapping[str, Any], via: Via, machine_names: Mapping[str, str]
) -> Author:
    name = next((claims[member] for member in _NAMES if isinstance(claims.get(member), str)), "")
    # A client that signed in by itself, with its secret, is its own subject.
    is_machine = subject in (claims.get(member) for member in _CLIENTS)
    kind = AuthorKind.MACHINE if is_machine else AuthorKind.PERSON
    if is_machine:
        name = machine_names.get(subject, name)
    return Author(kind, subject, name[:_MOST_NAME_CHARACTERS], via)


def _via(event: Event) -> Via:
    """By what the client calls itself; nothing but the history depends on it."""
    agent = str(event.get("requestContext", {}).get("http", {}).get("userAgent", ""))
    return next((via for beginning, via in _AGENTS.items() if agent.startswith(beginning)), Via.API)


def _claims_of(event: Event) -> Mapping[str, Any]:
    authorizer = event.get("requestContext", {}).get("authorizer") or {}
    return (authorizer.get("jwt") or {}).get("claims") or {}
