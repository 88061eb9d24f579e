"""The user pool of a deployment, with AWS credentials, and the teams that its groups are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from carillon.cli.commands.admin.stores import outputs_of, settings_of
from carillon.cli.exits import CliError, ExitCode

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient

    from carillon.domain.spec.teams import Role, TeamPattern


@dataclass
class UserPool:
    """`outputs` are those of its stack."""

    stack: str
    outputs: Mapping[str, str]
    cognito: "CognitoIdentityProviderClient"

    @property
    def id(self) -> str:
        return self.outputs["UserPoolId"]

    @cached_property
    def teams(self) -> "TeamPattern":
        """The reader of teams in groups, as the deployment reads them."""
        settings = settings_of(self.stack)
        if settings.team_claim != "cognito:groups":
            detail = f"its option team_claim is {settings.team_claim}: a group makes no member"
            raise CliError.local(ExitCode.USAGE, "Teams are no groups here", detail)
        return settings.teams

    def group_of(self, team: str, role: "Role") -> str:
        """The group for a role; raises CliError where the deployment would not read it so."""
        group = f"{team}:{role}"
        if self.teams.teams_in([group]) != {team: role}:
            detail = (
                f"team_pattern is {self.teams.pattern}, by which {group} is no {role} of {team}"
            )
            raise CliError.local(ExitCode.BAD_INPUT, "No such team", detail)
        return group

    def groups_of(self, user: str) -> Iterator[str]:
        pages = self.cognito.get_paginator("admin_list_groups_for_user").paginate(
            UserPoolId=self.id, Username=user
        )
        for page in pages:
            yield from (group["GroupName"] for group in page["Groups"])

    def groups_in(self, user: str, team: str) -> list[str]:
        """The user's groups that give a role in the team."""
        return [group for group in self.groups_of(user) if team in self.teams.teams_in([group])]

    def put_into(self, user: str, group: str) -> None:
        """Make the user a member of a group, which is made where it is missing."""
        with suppress(self.cognito.exceptions.GroupExistsException):
            self.cognito.create_group(UserPoolId=self.id, GroupName=group)
        self.cognito.admin_add_user_to_group(UserPoolId=self.id, Username=user, GroupName=group)

    def take_out_of(self, user: str, group: str) -> None:
        self.cognito.admin_remove_user_from_group(
            UserPoolId=self.id, Username=user, GroupName=group
        )

    def put_into_team(self, user: str, team: str, role: "Role") -> str:
        """The group for the role; the user's others in the team are left, after that."""
        group = self.group_of(team, role)
        self.put_into(user, group)
        for other in self.groups_in(user, team):
            if other != group:
                self.take_out_of(user, other)
        return group


def joined(item: dict[str, Any], column: str) -> Any:
    """The cell of a table: names of a list with commas between them."""
    value = item[column]
    return ", ".join(value) if isinstance(value, list) else value


@contextmanager
def opened(stack: str, otherwise: str) -> Iterator[UserPool]:
    """The pool of the stack; raises CliError, with `otherwise` as its title for what AWS refuses
    inside the block."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from carillon.errors import ConfigurationError

    try:
        outputs = outputs_of(stack)
        if "UserPoolId" not in outputs:
            detail = "the deployment has an issuer of its own: look after users and clients there"
            raise CliError.local(ExitCode.NOT_FOUND, "No user pool", detail)
        yield UserPool(stack, outputs, boto3.client("cognito-idp"))
    except ClientError as error:
        is_unknown = error.response["Error"]["Code"] == "UserNotFoundException"
        code = ExitCode.NOT_FOUND if is_unknown else ExitCode.NOT_ALLOWED
        raise CliError.local(code, otherwise, f"stack {stack}: {error}") from error
    except (BotoCoreError, ConfigurationError) as error:
        detail = f"stack {stack}: {error}"
        raise CliError.local(ExitCode.NOT_ALLOWED, otherwise, detail) from error
