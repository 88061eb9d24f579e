"""Settings that are too long for a function's environment, which holds 4 KB."""

from collections.abc import Sequence

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from carillon.cdk.constructs.helpers import at_synthesis
from carillon.cdk.constructs.permissions import allow_parameters
from carillon.settings import PARAMETERS_ROOT

VALUES_EACH = 20
"""A parameter holds 4 KB, and an ARN, or the name of a task, has 200 characters at most."""


class Parameters(Construct):
    """Lists, each in as many parameters as it needs: `/carillon-settings/{name}/{variable}/1` and
    so on. A list may grow until synthesis."""

    def __init__(self, scope: Construct, construct_id: str, name: str) -> None:
        super().__init__(scope, construct_id)
        self._path = f"{PARAMETERS_ROOT}/{name}"
        self._lists: dict[str, list[str]] = {}
        self._opened: list[lambda_.Function] = []
        self._readers: list[lambda_.Function] = []

    def add(self, variable: str, values: Sequence[str]) -> None:
        listed = self._lists.setdefault(variable, [])
        for value in values:
            if len(listed) % VALUES_EACH == 0:
                self._begin(variable, listed, len(listed))
            listed.append(value)

    def open_to(self, function: lambda_.Function) -> None:
        """Let a function read all of them, whether its present version does or not: an earlier one
        that does may be made live again, and could not begin without."""
        if function not in self._opened:
            self._opened.append(function)
            allow_parameters(function, self._path)

    def read_by(self, function: lambda_.Function) -> None:
        """Have a function read all of them when its processes begin."""
        if function in self._readers:
            return
        self._readers.append(function)
        self.open_to(function)
        function.add_environment("PARAMETERS", self._path)
        function.current_version.node.add_dependency(self)

    def _begin(self, variable: str, values: list[str], first: int) -> None:
        number = first // VALUES_EACH + 1
        ssm.StringParameter(
            self,
            f"{variable.title().replace('_', '')}{number}",
            parameter_name=f"{self._path}/{variable}/{number}",
            string_value=at_synthesis(lambda: ",".join(values[first : first + VALUES_EACH])),
        )
