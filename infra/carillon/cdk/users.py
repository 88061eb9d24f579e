"""The user pool: accounts, and the clients by which people and programs sign in."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options
from carillon.settings import OPERATORS_GROUP


class Users(Construct):
    """The default identity provider: accounts that an administrator makes, and one group."""

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
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
        self._acknowledge_findings()

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
