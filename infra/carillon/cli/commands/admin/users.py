"""`carillon admin users`, `add-user`, `add-to-team`, `remove-from-team`: the accounts of the user
pool, and the teams that they are members of."""

import secrets
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.commands.admin.stores import AdminOptions
from carillon.cli.commands.admin.user_pool import UserPool, joined, opened
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_done, write_items
from carillon.domain.spec.teams import Role

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp.type_defs import AttributeTypeTypeDef

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
EmailOption = Annotated[str | None, typer.Option(help="To sign in by, and to recover by.")]
OperatorOption = Annotated[
    bool, typer.Option("--operator", help="May see the whole deployment's status.")
]
TeamOption = Annotated[str, typer.Option("--team", help="The team.", show_default=False)]
RoleOption = Annotated[Role, typer.Option("--role", help="The role there.", show_default=False)]
NoTeamOption = Annotated[str | None, typer.Option("--team", help="Make the user a member.")]
NoRoleOption = Annotated[Role | None, typer.Option("--role", help="The role in the team.")]
NowOption = Annotated[
    bool, typer.Option("--now", help="End the user's sign-ins, too: no token is renewed any more.")
]
_COLUMNS = ("name", "email", "status", "teams", "is_operator")
_LAST_TOKEN = "the user's last token counts until it ends, an hour at most"


def add_user(
    name: NameArgument,
    *,
    email: EmailOption = None,
    team: NoTeamOption = None,
    role: NoRoleOption = None,
    operator: OperatorOption = False,
    options: AdminOptions,
) -> None:
    """Add a user, with a temporary password that `carillon login` replaces by one of the user's.

    The groups that team and role need are made. Of a user that is there nothing changes, but that
    --team and --role, or --operator, count for it, too.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if (team is None) != (role is None):
        raise typer.BadParameter("--team and --role are given together")
    with opened(options.stack, f"{name} was not added") as pool:
        if team is not None and role is not None:
            pool.group_of(team, role)  # Refused before there is a user without it.
        password = _added(pool, name, email, is_fine_if_there=operator or team is not None)
        told = {"user": name} | ({"temporary_password": password} if password else {})
        try:
            told |= _memberships(pool, name, team, role, operator)
        except (BotoCoreError, ClientError) as error:  # The password is shown once: now.
            known = password or "the one that was shown before"
            detail = f"temporary password: {known}; repeat the command: {error}"
            title = f"{name} is there, but not in all groups"
            raise CliError.local(ExitCode.NOT_ALLOWED, title, detail) from error
        url = pool.outputs["ApiUrl"]
        told["sign_in"] = f"carillon login --api-url {url} --username {name}"
    text = "\n".join(f"{key}: {value}" for key, value in told.items())
    write_done(text, told, options.is_json)


def add_to_team(
    name: NameArgument, *, team: TeamOption, role: RoleOption, options: AdminOptions
) -> None:
    """Give a user a role in a team, in the place of the one that it had there.

    It counts from the user's next token on: after an hour at most, or the next `carillon login`.
    """
    with opened(options.stack, f"{name} was not added to {team}") as pool:
        group = pool.put_into_team(name, team, role)
    told = {"user": name, "group": group}
    write_done(f"{name} is {role} of {team}, from the next token on", told, options.is_json)


def remove_from_team(
    name: NameArgument, *, team: TeamOption, now: NowOption = False, options: AdminOptions
) -> None:
    """Take a user out of a team.

    The user's last token counts until it ends, an hour at most: no gateway asks whether it has been
    revoked.
    """
    with opened(options.stack, f"{name} was not removed from {team}") as pool:
        left = pool.groups_in(name, team)
        if not left and not now:
            raise CliError.local(ExitCode.NOT_FOUND, f"{name} is not in {team}")
        for group in left:
            pool.take_out_of(name, group)
        if now:
            pool.cognito.admin_user_global_sign_out(UserPoolId=pool.id, Username=name)
    told = {"user": name, "groups": left, "signed_out": now}
    ended = ", and must sign in anew" if now else ""
    write_done(f"{name} is not in {team} any more{ended}; {_LAST_TOKEN}", told, options.is_json)


def users(*, options: AdminOptions) -> None:
    """List the users, with the teams and roles that their groups give them."""
    from carillon.settings import OPERATORS_GROUP

    with opened(options.stack, "The users cannot be read") as pool:
        groups = _groups_by_user(pool)
        pages = pool.cognito.get_paginator("list_users").paginate(UserPoolId=pool.id)
        rows = [
            {
                "name": user["Username"],
                "email": next(
                    (each["Value"] for each in user["Attributes"] if each["Name"] == "email"), None
                ),
                "status": user["UserStatus"].lower() if user["Enabled"] else "disabled",
                "teams": [
                    f"{team}:{role}"
                    for team, role in pool.teams.teams_in(groups[user["Username"]]).items()
                ],
                "is_operator": OPERATORS_GROUP in groups[user["Username"]],
            }
            for page in pages
            for user in page["Users"]
        ]
    write_items(sorted(rows, key=lambda row: row["name"]), _COLUMNS, options.is_json, joined)


def _groups_by_user(pool: UserPool) -> defaultdict[str, list[str]]:
    """Asked group by group: there are fewer of them than users."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    groups = pool.cognito.get_paginator("list_groups").paginate(UserPoolId=pool.id)
    for group in (group["GroupName"] for page in groups for group in page["Groups"]):
        members = pool.cognito.get_paginator("list_users_in_group").paginate(
            UserPoolId=pool.id, GroupName=group
        )
        for user in (user for page in members for user in page["Users"]):
            found[user["Username"]].append(group)
    return found


def _added(pool: UserPool, name: str, email: str | None, *, is_fine_if_there: bool) -> str:
    """The temporary password, "" where the user is there already. Nothing is sent by e-mail."""
    # Any password policy of Cognito takes it.
    password = f"aA1!{secrets.token_urlsafe(16)}"
    try:
        pool.cognito.admin_create_user(
            UserPoolId=pool.id,
            Username=name,
            TemporaryPassword=password,
            MessageAction="SUPPRESS",
            UserAttributes=_attributes(email),
        )
    except pool.cognito.exceptions.UsernameExistsException as error:
        if not is_fine_if_there:
            raise CliError.local(ExitCode.CONFLICT, f"{name} is there already") from error
        return ""
    return password


def _memberships(
    pool: UserPool, name: str, team: str | None, role: Role | None, operator: bool
) -> dict[str, str]:
    from carillon.settings import OPERATORS_GROUP

    groups = []
    if team is not None and role is not None:
        groups.append(pool.put_into_team(name, team, role))
    if operator:
        pool.put_into(name, OPERATORS_GROUP)
        groups.append(OPERATORS_GROUP)
    return {"groups": ", ".join(groups)} if groups else {}


def _attributes(email: str | None) -> "list[AttributeTypeTypeDef]":
    if email is None:
        return []
    return [{"Name": "email", "Value": email}, {"Name": "email_verified", "Value": "true"}]
