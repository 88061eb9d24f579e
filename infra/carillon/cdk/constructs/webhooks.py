"""The secret with which webhooks are signed."""

from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from carillon.cdk.constructs.acknowledgments import acknowledge
from carillon.cdk.options import Options

SECRET_LENGTH = 48
"""Letters and digits: 285 bits of chance in 48 bytes; Standard Webhooks asks for 24 to 64 bytes."""


class Webhooks(Construct):
    """One signing secret per deployment, made by AWS and never seen by the template.

    AWS makes text, not base64: the Standard Webhooks secret that both sides use is `whsec_`
    followed by the base64 of this text's bytes. A value that begins with `whsec_`, which an
    operator may put there instead, is used as it stands.
    """

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self.secret = secretsmanager.Secret(
            self,
            "SigningSecret",
            description="Signs the webhooks of Carillon: whsec_ and the base64 of this text",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=SECRET_LENGTH, exclude_punctuation=True
            ),
            removal_policy=options.data_policy,
        )
        acknowledge(
            self.secret,
            "AwsSolutions-SMG4",
            "every receiver holds a copy, so a rotation that AWS begins would break them all",
        )
