"""The console as the stack serves it, with a sign-in at the user pool.

Pages of the pool have addresses of AWS here, too: the browser is led to the emulator instead.
"""

from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Page, Route, expect

from carillon.local.deployment import Deployment, create_user
from tests.browser.conftest import Visit
from tests.e2e.conftest import Person


def _lead_to_the_emulator(page: Page, sign_in_url: str, endpoint: str) -> None:
    def forward(route: Route) -> None:
        asked = urlsplit(route.request.url)
        address = f"{endpoint}{asked.path}?{asked.query}"
        if route.request.is_navigation_request():
            body = f'<meta http-equiv="refresh" content="0; url={address}">'
            route.fulfill(status=200, content_type="text/html", body=body)
            return
        answer = httpx2.post(
            address,
            content=route.request.post_data_buffer or b"",
            headers={"Content-Type": route.request.headers["content-type"]},
        )
        route.fulfill(
            status=answer.status_code,
            headers={"Access-Control-Allow-Origin": "*", "Content-Type": "application/json"},
            body=answer.content,
        )

    page.route(f"{sign_in_url}/**", forward)


def _let_back(deployment: Deployment, client_id: str, page: str) -> None:
    """The emulator's API has another address than AWS's, which the template names."""
    pool = deployment.outputs["UserPoolId"]
    cognito = deployment.client("cognito-idp")
    known = cognito.describe_user_pool_client(UserPoolId=pool, ClientId=client_id)
    kept = known["UserPoolClient"]
    members = ("AllowedOAuthFlows", "AllowedOAuthScopes", "AllowedOAuthFlowsUserPoolClient")
    cognito.update_user_pool_client(
        UserPoolId=pool,
        ClientId=client_id,
        CallbackURLs=[*kept.get("CallbackURLs", []), page],
        SupportedIdentityProviders=["COGNITO"],
        **{name: kept[name] for name in members if name in kept},
    )


def test_a_person_signs_in_and_the_token_is_nowhere(deployment: Deployment, visit: Visit) -> None:
    page, address = visit.page, f"{deployment.api_url}/console/index.html"
    with Person(deployment.api_url, None) as nobody:
        told = nobody.http.get("/.well-known/carillon").json()
    _let_back(deployment, told["console_client_id"], address)
    _lead_to_the_emulator(page, told["sign_in_url"], deployment.endpoint_url)
    user = create_user(deployment, "dora")

    page.goto(f"{address}#/jobs?state=active")
    page.locator("[name=username]").fill(user.name)
    if not page.locator("[name=password]").count():
        page.keyboard.press("Enter")
    page.locator("[name=password]").fill(user.password)
    page.keyboard.press("Enter")
    expect(page.get_by_text("No job matches")).to_be_visible()

    assert page.url == f"{address}#/jobs?state=active"
    assert (
        page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])") == "[{},{}]"
    )
    assert page.get_by_role("button", name="Sign out").is_visible()
    assert visit.findings() == []


def test_only_its_files_are_served(deployment: Deployment) -> None:
    with Person(deployment.api_url, None) as nobody:
        answer = nobody.http.get("/console/index.html")
        assert answer.status_code == 200
        assert "require-trusted-types-for 'script'" in answer.headers["content-security-policy"]
        assert nobody.http.get("/console/handler.py").status_code == 404
        assert nobody.http.get("/jobs").status_code == 401
