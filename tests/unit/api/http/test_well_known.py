"""What a client is told before it has a token."""

from dataclasses import replace

import pytest

from carillon.api.app import VERSION
from tests.unit.api.conftest import SETTINGS, new_world
from tests.unit.api.gateway import answer_of, event

POOL = "https://cognito-idp.eu-north-1.amazonaws.com/eu-north-1_abc"


@pytest.mark.parametrize(
    ("issuer", "sign_in"),
    [
        (POOL, "cognito"),
        ("https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_abc", "cognito"),
        ("https://login.example.com/realms/one", "oidc"),
        ("https://cognito-idp.eu-north-1.amazonaws.com.example.com/pool", "oidc"),
    ],
)
def test_anybody_is_told_where_users_sign_in(issuer: str, sign_in: str) -> None:
    world = new_world()
    settings = replace(SETTINGS, issuer=issuer, audience="client-1")
    answer = answer_of(world.api(settings=settings), event("GET", "/.well-known/carillon"))
    assert answer.status == 200
    assert answer.json == {
        "version": VERSION,
        "issuer": issuer,
        "client_id": "client-1",
        "sign_in": sign_in,
        "console_client_id": None,
        "sign_in_url": None,
        "token_url": None,
    }


def test_machines_are_told_where_they_get_their_tokens() -> None:
    settings = replace(SETTINGS, token_url="https://users.example.com/oauth2/token")
    answer = answer_of(new_world().api(settings=settings), event("GET", "/.well-known/carillon"))
    assert answer.json["token_url"] == "https://users.example.com/oauth2/token"
