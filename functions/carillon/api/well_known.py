"""`GET /.well-known/carillon`: what a client needs to sign in; it needs no token."""

import re
from typing import Literal
from urllib.parse import urlsplit

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel

from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON
from carillon.settings import Settings

PATH = "/.well-known/carillon"
_COGNITO = re.compile(r"cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")


class SignInForm(BaseModel):
    """`issuer` and `client_id` are what tokens must name (`iss`, and `aud` or `client_id`).

    `sign_in` is the way to get one: from the Cognito user pool that the issuer is, by user name and
    password, or from another issuer by its own ways. Pages sign in as `console_client_id`, where
    the stack serves the console; at `sign_in_url`, or as the issuer's own description says. A
    machine exchanges its client's id and secret for a token at `token_url`, or as that description
    says.
    """

    version: str
    issuer: str
    client_id: str
    sign_in: Literal["cognito", "oidc"]
    console_client_id: str | None
    sign_in_url: str | None
    token_url: str | None


class WellKnownRoutes(Resource):
    """The one route about the deployment itself."""

    def __init__(self, routes: Routes, settings: Settings, version: str) -> None:
        super().__init__(routes)
        is_cognito = bool(_COGNITO.fullmatch(urlsplit(settings.issuer).hostname or ""))
        self._form = SignInForm(
            version=version,
            issuer=settings.issuer,
            client_id=settings.audience,
            sign_in="cognito" if is_cognito else "oidc",
            console_client_id=settings.console_client_id or None,
            sign_in_url=settings.sign_in_url or None,
            token_url=settings.token_url or None,
        )

    @route(
        f"GET {PATH}",
        "Read what a client needs to sign in",
        {200: "Issuer and client"},
        is_open=True,
        role=None,
    )
    def tell_how_to_sign_in(self) -> Response[SignInForm]:
        """The issuer of tokens, and the client that they are for; it needs no token."""
        return Response(200, JSON, self._form)
