"""The CDK app of this repository: `cdk synth` and `cdk deploy` start here."""

from collections.abc import Mapping

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from carillon.cdk.construct import Carillon
from carillon.cdk.options import Options
from carillon.cdk.tasks import Tasks


def build(
    context: Mapping[str, object] | None = None,
    outdir: str | None = None,
    tasks: Tasks | None = None,
) -> cdk.App:
    """The app with its one stack; `context` adds to what the CDK command gives.

    `outdir` is the folder for synthesis, by default that of the CDK command. `tasks` are of tests.

    Raises ConfigurationError naming the context key. Synthesis fails on any finding of cdk-nag
    that is not acknowledged with its reason.
    """
    app = cdk.App(context=context, outdir=outdir)
    options = Options.from_context(app.node.get_all_context())
    stack = cdk.Stack(app, options.stack_name, description="Carillon: a serverless job scheduler")
    Carillon(stack, "Default", tasks=tasks, **vars(options))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app


if __name__ == "__main__":
    build().synth()
