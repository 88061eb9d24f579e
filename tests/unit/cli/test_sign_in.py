"""`carillon login`, the stored sign-in, and where a token is sent."""

import json
import stat
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from carillon.cli.commands.login import pool_of
from tests.unit.cli.conftest import FakeApi, Run


def _login(run: Run, api: FakeApi, *more: str) -> int:
    return run(
        "login", "--api-url", api.url, "--username", "ieva", "--client-id", "client-1",
        "--cognito-endpoint", api.url, *more,
    ).exit_code  # fmt: skip


def test_login_stores_the_token_for_its_owner_only(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "pass word")
    api.answer("POST", "/", {"AuthenticationResult": {"AccessToken": "tok-1", "IdToken": "id"}})

    assert _login(run, api) == 0

    (request,) = api.requests
    assert request.headers["x-amz-target"] == "AWSCognitoIdentityProviderService.InitiateAuth"
    assert request.headers["content-type"] == "application/x-amz-json-1.1"
    assert request.body == {
        "AuthFlow": "USER_PASSWORD_AUTH",
        "ClientId": "client-1",
        "AuthParameters": {"USERNAME": "ieva", "PASSWORD": "pass word"},
    }
    assert json.loads(credentials_file.read_text()) == {"api_url": api.url, "token": "tok-1"}
    assert stat.S_IMODE(credentials_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(credentials_file.parent.stat().st_mode) == 0o700
    assert list(credentials_file.parent.iterdir()) == [credentials_file]


def test_a_stored_sign_in_is_used(run: Run, api: FakeApi) -> None:
    api.answer("GET", "/status", {"state": "idle"})
    assert run("login", "--api-url", f"{api.url}/", "--token", "tok-2").exit_code == 0

    assert run("status").exit_code == 0
    assert run("--api-url", f"{api.url}/", "status").exit_code == 0

    assert [r.headers["authorization"] for r in api.requests] == ["Bearer tok-2"] * 2


def test_a_sign_in_with_cognito_is_renewed(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "pass word")
    old, new = _token(sub="u", exp=1), _token(sub="u", exp=4_000_000_000)
    tokens = {"AccessToken": old, "RefreshToken": "refresh-1"}
    api.answer("POST", "/", {"AuthenticationResult": tokens})
    api.then("POST", "/", {"AuthenticationResult": {"AccessToken": new}})
    api.answer("GET", "/status", {"state": "idle"})
    assert _login(run, api) == 0

    assert run("status").exit_code == 0
    api.answer("GET", "/deployment", {})
    assert run("whoami").exit_code == 0

    assert api.requests[1].body["AuthParameters"] == {"REFRESH_TOKEN": "refresh-1"}
    assert [one.headers["authorization"] for one in api.requests[2:]] == [f"Bearer {new}"] * 2
    refresh = {"endpoint": api.url, "client_id": "client-1", "token": "refresh-1"}
    stored = {"api_url": api.url, "token": new, "refresh": refresh}
    assert json.loads(credentials_file.read_text()) == stored


def test_a_sign_in_that_has_ended_is_told(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "pass word")
    tokens = {"AccessToken": _token(sub="u", exp=1), "RefreshToken": "refresh-1"}
    api.answer("POST", "/", {"AuthenticationResult": tokens})
    api.then("POST", "/", {"__type": "NotAuthorizedException", "message": "revoked"}, status=400)
    assert _login(run, api) == 0

    result = run("status")

    assert result.exit_code == 5
    assert result.stderr == "Error: The sign-in has ended: run `carillon login`\n"


def test_a_second_login_replaces_the_first(run: Run, api: FakeApi, credentials_file: Path) -> None:
    run("login", "--api-url", api.url, "--token", "old")
    credentials_file.chmod(0o644)

    result = run("login", "--token", "-", "--json", stdin="new\n")

    assert json.loads(result.stdout) == {
        "api_url": api.url, "credentials": str(credentials_file)
    }  # fmt: skip
    assert json.loads(credentials_file.read_text())["token"] == "new"
    assert stat.S_IMODE(credentials_file.stat().st_mode) == 0o600


def test_a_stored_token_is_not_sent_to_another_api(run: Run, api: FakeApi) -> None:
    run("login", "--api-url", "https://carillon.example.com", "--token", "tok")

    result = run("--api-url", api.url, "status")

    assert result.exit_code == 5
    assert api.requests == []


def test_an_option_of_the_command_goes_over_the_global_one(signed_in: Run, api: FakeApi) -> None:
    api.answer("GET", "/status", {"state": "idle"})

    signed_in("--token", "global", "status")
    signed_in("--token", "global", "status", "--token", "own")

    sent = [request.headers["authorization"] for request in api.requests]
    assert sent == ["Bearer global", "Bearer own"]


@pytest.mark.parametrize(
    "url", ["http://carillon.example.com", "carillon", "ftp://a", "http://[", ""]
)
def test_a_token_is_sent_over_https_or_to_this_machine(run: Run, url: str) -> None:
    assert run("status", "--api-url", url, "--token", "t").exit_code in (2, 3)
    assert run("login", "--api-url", url, "--token", "t").exit_code in (2, 3)


def test_without_a_sign_in_nothing_is_sent(run: Run, api: FakeApi) -> None:
    assert run("status").exit_code == 2
    assert run("status", "--api-url", api.url).exit_code == 5
    assert api.requests == []


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_sign_in_says_so(run: Run, credentials_file: Path, content: str) -> None:
    credentials_file.parent.mkdir(parents=True)
    credentials_file.write_text(content)

    result = run("status")

    assert result.exit_code == 5
    assert str(credentials_file) in result.stderr


@pytest.mark.parametrize(
    ("status", "answer", "exit_code"),
    [
        (400, {"__type": "NotAuthorizedException", "message": "Incorrect"}, 5),
        (400, {"__type": "com.amazonaws#UserNotFoundException", "message": "?"}, 5),
        (400, {"__type": "ResourceNotFoundException", "message": "no such client"}, 3),
        (400, {"__type": "TooManyRequestsException", "message": "slow down"}, 7),
        (200, {"ChallengeName": "SOFTWARE_TOKEN_MFA", "Session": "s"}, 5),
        (400, {"__type": "InvalidPasswordException", "message": "too short"}, 3),
        (503, None, 7),
        (500, {"__type": "InternalErrorException"}, 1),
        (200, {}, 1),
    ],
)
def test_a_refused_sign_in_stores_nothing(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch,
    status: int, answer: dict[str, str] | None, exit_code: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("CARILLON_PASSWORD", "secret")
    api.answer("POST", "/", answer, status=status)

    assert _login(run, api) == exit_code
    assert not credentials_file.exists()


def _challenge(api: FakeApi) -> None:
    known = {"USER_ID_FOR_SRP": "user-1", "requiredAttributes": "[]"}
    challenge = {
        "ChallengeName": "NEW_PASSWORD_REQUIRED",
        "Session": "s",
        "ChallengeParameters": known,
    }
    api.answer("POST", "/", challenge)


def test_a_temporary_password_is_replaced_at_the_first_sign_in(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "temporary")
    monkeypatch.setenv("CARILLON_NEW_PASSWORD", "new pass word")
    _challenge(api)
    api.then("POST", "/", {"AuthenticationResult": {"AccessToken": "tok-1"}})

    assert _login(run, api) == 0

    answered = api.requests[1]
    target = "AWSCognitoIdentityProviderService.RespondToAuthChallenge"
    assert answered.headers["x-amz-target"] == target
    assert answered.body == {
        "ChallengeName": "NEW_PASSWORD_REQUIRED",
        "ChallengeResponses": {"USERNAME": "user-1", "NEW_PASSWORD": "new pass word"},
        "ClientId": "client-1",
        "Session": "s",
    }
    assert json.loads(credentials_file.read_text())["token"] == "tok-1"


def test_a_new_password_that_the_pool_refuses_is_named(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "temporary")
    monkeypatch.setenv("CARILLON_NEW_PASSWORD", "short")
    _challenge(api)
    refusal = {"__type": "InvalidPasswordException", "message": "Password not long enough"}
    api.then("POST", "/", refusal, status=400)

    assert _login(run, api) == 3
    assert not credentials_file.exists()


def test_off_a_terminal_a_new_password_is_not_asked_for(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "temporary")
    _challenge(api)
    assert _login(run, api) == 2
    assert len(api.requests) == 1


def test_login_off_a_terminal_does_not_ask(run: Run, api: FakeApi) -> None:
    assert _login(run, api) == 2
    assert api.requests == []


@pytest.mark.parametrize("token", ["", "a\nb", "ā"])
def test_a_token_that_no_header_can_carry_is_refused(run: Run, api: FakeApi, token: str) -> None:
    assert run("login", "--api-url", api.url, "--token", token).exit_code == 3


WELL_KNOWN = "/.well-known/carillon"
ISSUER = "https://cognito-idp.eu-north-1.amazonaws.com/eu-north-1_abc"


def test_the_api_tells_where_its_users_sign_in(api: FakeApi) -> None:
    api.answer("GET", WELL_KNOWN, {"issuer": ISSUER, "client_id": "client-2"})
    assert pool_of(api.url) == ("https://cognito-idp.eu-north-1.amazonaws.com", "client-2")
    assert "authorization" not in api.requests[0].headers


def test_login_needs_no_more_than_the_api_s_address(
    run: Run, api: FakeApi, credentials_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "pass word")
    monkeypatch.setenv("CARILLON_COGNITO_ENDPOINT", api.url)  # Cognito is not here
    api.answer("GET", WELL_KNOWN, {"issuer": ISSUER, "client_id": "client-2"})
    api.answer("POST", "/", {"AuthenticationResult": {"AccessToken": "tok-1"}})
    assert run("login", "--api-url", api.url, "--username", "ieva").exit_code == 0
    assert api.requests[-1].body["ClientId"] == "client-2"
    assert json.loads(credentials_file.read_text())["token"] == "tok-1"


@pytest.mark.parametrize(
    "issuer",
    [
        "https://login.example.com/realms/one",
        "https://cognito-idp.eu-north-1.amazonaws.com.example.com/pool",
        "http://cognito-idp.eu-north-1.amazonaws.com/pool",
        "",
    ],
)
def test_a_password_goes_to_cognito_only(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, issuer: str
) -> None:
    monkeypatch.setenv("CARILLON_PASSWORD", "pass word")
    api.answer("GET", WELL_KNOWN, {"issuer": issuer, "client_id": "client-2"})
    told = run("login", "--api-url", api.url, "--username", "ieva")
    assert told.exit_code == 2
    assert "--token" in told.stderr
    assert len(api.requests) == 1


def _token(**claims: object) -> str:
    part = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


def test_whoami_tells_of_the_token(run: Run, api: FakeApi) -> None:
    claims = {"username": "ieva", "sub": "user-1", "exp": 4_102_444_800, "cognito:groups": ["a"]}
    run("login", "--api-url", api.url, "--token", _token(**claims))
    caller = {"teams": {"billing": "editor"}, "is_operator": True}
    api.answer("GET", "/deployment", {"caller": caller})
    told = run("whoami", "--json", "--team", "other")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == {
        "api_url": api.url,
        "name": "ieva",
        "owner": "user/user-1",
        **caller,
        "expires_at": "2100-01-01T00:00:00Z",
        "expired": False,
    }
    assert "carillon-team" not in api.requests[0].headers


def test_whoami_says_that_a_token_is_over(run: Run, api: FakeApi) -> None:
    run("login", "--api-url", api.url, "--token", _token(sub="user-1", exp=1_000_000_000))
    told = run("whoami")
    assert told.exit_code == 5
    assert "2001-09-09T01:46:40Z" in told.stdout


def test_whoami_of_a_token_that_tells_nothing(run: Run, api: FakeApi) -> None:
    run("login", "--api-url", api.url, "--token", "opaque")
    told = run("whoami")
    assert told.exit_code == 5
    assert "not a JSON web token" in told.stderr


def test_a_machine_signs_in_by_itself_once(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = _token(sub="c1", client_id="c1", exp=4_000_000_000)
    api.answer("GET", "/.well-known/carillon", {"token_url": f"{api.url}/oauth2/token"})
    api.answer("POST", "/oauth2/token", {"access_token": token})
    api.answer("GET", "/status", {"state": "idle"})
    caller = {"kind": "machine", "name": "ci", "teams": {"billing": "editor"}}
    api.answer("GET", "/deployment", {"caller": caller})
    for name, value in (("API_URL", api.url), ("CLIENT_ID", "c1"), ("CLIENT_SECRET", "s")):
        monkeypatch.setenv(f"CARILLON_{name}", value)

    assert run("status").exit_code == 0
    told = json.loads(run("whoami", "--json").stdout)

    assert (told["name"], told["owner"], told["teams"]) == ("ci", None, {"billing": "editor"})
    sent = [(each.path, each.headers.get("authorization", "")[:7]) for each in api.requests]
    assert sent == [
        ("/.well-known/carillon", ""),
        ("/oauth2/token", "Basic Y"),
        ("/status", "Bearer "),
        ("/deployment", "Bearer "),
    ]
    # A token that is given goes first.
    run("status", "--token", "mine")
    assert api.requests[-1].headers["authorization"] == "Bearer mine"


def test_half_a_machine_is_refused(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARILLON_API_URL", api.url)
    monkeypatch.setenv("CARILLON_CLIENT_ID", "c1")
    result = run("status")
    assert result.exit_code == 5
    assert "CARILLON_CLIENT_SECRET: must be set together with CARILLON_CLIENT_ID" in result.stderr


def test_a_sign_in_that_cannot_be_stored_is_told(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken = tmp_path / "file"
    taken.touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(taken))
    result = run("login", "--api-url", api.url, "--token", "opaque")
    assert (result.exit_code, "The sign-in cannot be stored" in result.stderr) == (2, True)
    assert str(taken) in result.stderr
