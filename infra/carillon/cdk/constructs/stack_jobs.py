"""The jobs of the stack: a document in S3, applied by a custom resource when it has changed."""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IConstruct

from carillon.cdk.constructs.functions import STACK_JOBS_TIMEOUT_SECONDS, Functions
from carillon.cdk.constructs.parameters import Parameters
from carillon.cdk.constructs.permissions import acknowledge_wildcard, allow
from carillon.cdk.declared import Declared
from carillon.cdk.options import Options

ANSWER_SECONDS = 60
"""After the function's own end CloudFormation waits no longer."""


class StackJobs(Construct):
    """The custom resource is there even without jobs: those of the deployment before go then."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        team: str,
        functions: Functions,
        parameters: Parameters,
        declared: Declared,
    ) -> None:
        super().__init__(scope, construct_id)
        function = functions.stack_jobs
        assert function is not None
        stack = cdk.Stack.of(self)
        path = scope.node.path.removeprefix(stack.node.path).strip("/")
        self._function = function
        self._declared = declared
        self._resource = cdk.CustomResource(
            self,
            "Resource",
            service_token=functions.live(function).function_arn,
            service_timeout=cdk.Duration.seconds(STACK_JOBS_TIMEOUT_SECONDS + ANSWER_SECONDS),
            resource_type="Custom::CarillonJobs",
            properties={
                "Team": team,
                "Manager": f"stack/{stack.stack_name}/{path}",
                # Where tables stay, their jobs do: a stack that is taken up again has them.
                "TablesGo": "false" if options.keep_data else "true",
                "Document": cdk.Lazy.any(_Content(self)),
            },
        )
        # New jobs meet new tasks, and an allow-list that has their targets.
        self._resource.node.add_dependency(parameters)
        for executor in functions.executors.values():
            self._resource.node.add_dependency(functions.live(executor))
        cdk.Aspects.of(self).add(_Finish(self))
        self.document: s3_assets.Asset | None = None
        self.values: Mapping[str, str] = {}

    def finish(self) -> None:
        """Make the asset, when all jobs are declared."""
        content, self.values = self._declared.document()
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "jobs.json"
            path.write_text(json.dumps(content, sort_keys=True))
            self.document = s3_assets.Asset(self, "Document", path=str(path))
        # Of the one before, too: a rollback may read it before its permission is back.
        documents = self.document.bucket.arn_for_objects("*.json")
        allow(self._function, ["s3:GetObject"], [documents])
        bucket = cdk.Stack.of(self).resolve(self.document.s3_bucket_name)
        told = bucket.get("Fn::Sub", "") if isinstance(bucket, dict) else bucket
        # As cdk-nag writes what is known at deployment only.
        name = re.sub(r"\$\{(.*?)\}", r"<\1>", told)
        reason = "documents of jobs, of this deployment and the one before"
        acknowledge_wildcard(self._function, f"arn:<AWS::Partition>:s3:::{name}/*.json", reason)


@jsii.implements(cdk.IAspect)
class _Finish:
    """Visits the construct when the app is complete, before its template is made."""

    def __init__(self, jobs: StackJobs) -> None:
        self._jobs = jobs

    def visit(self, node: IConstruct) -> None:
        if self._jobs.document is None:
            self._jobs.finish()


@jsii.implements(cdk.IStableAnyProducer)
class _Content:
    def __init__(self, jobs: StackJobs) -> None:
        self._jobs = jobs

    def produce(self) -> Any:
        document = self._jobs.document
        if document is None:
            return {}
        where = {"Bucket": document.s3_bucket_name, "Key": document.s3_object_key}
        return {**where, "Values": dict(self._jobs.values)}
