"""A user of the local deployment and real tokens for it.

The HTTP API's authorizer checks issuer, signature, lifetime and audience. A Cognito access token
has no `aud`; the authorizer then takes its `client_id` for it, on AWS and on MiniStack. So both
kinds of token pass. What is handed out here is the access token: it carries the subject and the
groups, and nothing else about the user.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from carillon.local.deployment import Deployment
from carillon.settings import OPERATORS_GROUP

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient


@dataclass(frozen=True)
class User:
    """An account of the deployment's user pool with a password known to us."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Tokens:
    """What a sign-in gives; both tokens open the API until `expires_at`."""

    access_token: str = field(repr=False)
    id_token: str = field(repr=False)
    expires_at: datetime


def make_password() -> str:
    """A random password that any password policy of Cognito accepts."""
    return f"aA1!{secrets.token_urlsafe(24)}"


def create_user(deployment: Deployment, name: str, *, operator: bool = False) -> User:
    """Create the user, or give an existing one a new password; its subject stays the same.

    An operator also sees the lag of every segment in `GET /status`.
    """
    cognito: CognitoIdentityProviderClient = deployment.client("cognito-idp")
    pool_id = deployment.outputs["UserPoolId"]
    user = User(name, make_password())
    with contextlib.suppress(cognito.exceptions.UsernameExistsException):
        cognito.admin_create_user(UserPoolId=pool_id, Username=name, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(
        UserPoolId=pool_id, Username=name, Password=user.password, Permanent=True
    )
    if operator:
        cognito.admin_add_user_to_group(
            UserPoolId=pool_id, Username=name, GroupName=OPERATORS_GROUP
        )
    return user


def sign_in(deployment: Deployment, user: User) -> Tokens:
    """Exchange name and password for tokens, by the flow that programs use."""
    cognito: CognitoIdentityProviderClient = deployment.client("cognito-idp")
    answer = cognito.initiate_auth(
        ClientId=deployment.outputs["UserPoolClientId"],
        AuthFlow="USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": user.name, "PASSWORD": user.password},
    )
    result = answer["AuthenticationResult"]
    return Tokens(
        access_token=result["AccessToken"],
        id_token=result["IdToken"],
        expires_at=datetime.now(UTC) + timedelta(seconds=result["ExpiresIn"]),
    )
