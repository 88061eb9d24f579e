"""The user pool: accounts, and the clients by which people and programs sign in."""

from collections.abc import Mapping
from functools import cached_property

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options
from carillon.domain.spec.teams import SCOPE_PREFIX
from carillon.errors import ConfigurationError
from carillon.settings import OPERATORS_GROUP

_LONGEST_NAME = 63 - len("-123456789012")


class Users(Construct):
    """The default identity provider: accounts that an administrator makes, one group, and a client
    with a secret for each of the option `machine_clients`; `machines` has their ids by name."""

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self._name = options.name
        self.pool = cognito.UserPool(
            self,
            "Pool",
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_lowercase=True,
                require_uppercase=True,
                require_digits=True,
                require_symbols=True,
            ),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            removal_policy=options.data_policy,
        )
        self.client = self.pool.add_client(
            "Client",
            auth_flows=cognito.AuthFlow(
                user_password=True, user_srp=True, admin_user_password=True
            ),
            prevent_user_existence_errors=True,
            access_token_validity=Duration.hours(1),
            id_token_validity=Duration.hours(1),
            disable_o_auth=True,
        )
        cognito.CfnUserPoolGroup(
            self,
            "Operators",
            user_pool_id=self.pool.user_pool_id,
            group_name=OPERATORS_GROUP,
            description="May see the whole deployment's status",
        )
        self.machines = self._machines(options.machine_clients)
        self._acknowledge_findings()

    def _machines(self, wanted: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
        """Cognito puts the resource server before each scope: `carillon/billing:editor`."""
        if not wanted:
            return {}
        roles = {role for each in wanted.values() for role in each}
        scopes = {
            role: cognito.ResourceServerScope(scope_name=role, scope_description=role)
            for role in sorted(roles)
        }
        server = self.pool.add_resource_server(
            "Scopes", identifier=SCOPE_PREFIX.rstrip("/"), scopes=list(scopes.values())
        )
        clients = {
            name: self.pool.add_client(
                f"Machine-{name}",
                user_pool_client_name=name,
                generate_secret=True,
                # Left out, Cognito lets people sign in by it.
                auth_flows=cognito.AuthFlow(user_srp=False),
                access_token_validity=Duration.hours(1),
                o_auth=cognito.OAuthSettings(
                    flows=cognito.OAuthFlows(client_credentials=True),
                    scopes=[
                        cognito.OAuthScope.resource_server(server, scopes[role])
                        for role in sorted(granted)
                    ],
                ),
            )
            for name, granted in wanted.items()
        }
        return {name: client.user_pool_client_id for name, client in clients.items()}

    @cached_property
    def sign_in_url(self) -> str:
        """The address of the pool's domain, which is made for the first who asks."""
        # Prefixes are unique among all accounts of a region.
        prefix = f"{_domain_name(self._name)}-{Aws.ACCOUNT_ID}"
        cognito.CfnUserPoolDomain(
            self, "Domain", domain=prefix, user_pool_id=self.pool.user_pool_id
        )
        return f"https://{prefix}.auth.{Stack.of(self).region}.amazoncognito.com"

    def _acknowledge_findings(self) -> None:
        acknowledge(
            self.pool,
            "AwsSolutions-COG2",
            "programs sign in, too; who needs a second factor brings an OIDC issuer",
        )
        acknowledge(
            self.pool,
            "AwsSolutions-COG8",
            "the plus plan has a monthly price per user; an idle deployment must cost nothing",
        )

    @property
    def issuer(self) -> str:
        """The `iss` of the pool's tokens."""
        # Not the pool's ProviderURL: emulators answer it with an address of their own.
        stack = Stack.of(self)
        return f"https://cognito-idp.{stack.region}.{stack.url_suffix}/{self.pool.user_pool_id}"


def _domain_name(name: str) -> str:
    """The beginning of the pool's domain. Raises ConfigurationError for what Cognito refuses: the
    words that it keeps to itself, and more than 63 letters with the account's twelve."""
    lower = name.lower()
    reserved = [word for word in ("aws", "amazon", "cognito") if word in lower]
    if reserved or len(lower) > _LONGEST_NAME:
        fault = f"contains {reserved[0]!r}" if reserved else f"is longer than {_LONGEST_NAME}"
        message = (
            f"{name!r} {fault}: Cognito has no such domain, where console and machines sign in"
        )
        raise ConfigurationError("name", message)
    return lower
