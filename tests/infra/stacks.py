"""The stack as a value: synthesized once per choice of options, read by type."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from carillon.cdk.app import build
from carillon.cdk.emulation import EMULATION, ON_AWS, Emulation
from carillon.cdk.releases import LIVE

REPOSITORY = Path(__file__).parents[2]

ACCOUNT = "123456789012"
REGION = "eu-west-1"

TARGETS = (
    "arn:aws:lambda:*:210987654321:function:report-*",
    "arn:aws:lambda:eu-west-1:123456789012:function:bill:live",
    "arn:aws:sqs:eu-west-1:123456789012:orders",
    "arn:aws:sns:eu-west-1:123456789012:news*",
    "arn:aws:events:eu-west-1:123456789012:event-bus/default",
    "arn:aws:states:eu-west-1:123456789012:stateMachine:close-month",
    "arn:aws:ecs:eu-west-1:123456789012:task-definition/report:*",
    "arn:aws:batch:eu-west-1:123456789012:job-definition/report:3",
    "arn:aws:batch:eu-west-1:123456789012:job-queue/nightly",
)
"""What jobs may call in the unusual stack."""
ROLES = (
    "arn:aws:iam::123456789012:role/report-task",
    "arn:aws:iam::123456789012:role/ecs/report-execution",
)
"""Those of the task definition there."""

Resource = Mapping[str, Any]


def default_context() -> dict[str, object]:
    """The context of cdk.json."""
    content = json.loads((REPOSITORY / "cdk.json").read_text())
    return dict(content["context"])


@dataclass(frozen=True)
class SynthesizedStack:
    """A template with the stack's name, the directory that it was written to, and the path in the
    stack of the construct."""

    name: str
    template: Mapping[str, Any]
    directory: Path
    path: str = ""

    def resources(self, kind: str) -> dict[str, Resource]:
        """The resources of a type like `SQS::Queue`, by logical id."""
        return {
            logical_id: resource
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == f"AWS::{kind}"
        }

    def properties(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """The properties of the resources of a type, by logical id."""
        return {
            logical_id: resource["Properties"]
            for logical_id, resource in self.resources(kind).items()
        }

    def output(self, name: str) -> str:
        """The logical id of the resource that an output refers to."""
        return str(self.template["Outputs"][name]["Value"]["Ref"])

    def functions(self) -> dict[str, Mapping[str, Any]]:
        """The functions' properties: by tick, executor-high …, dead-letter-consumer, api."""
        named: dict[str, Mapping[str, Any]] = {}
        for logical_id, properties in self.properties("Lambda::Function").items():
            if logical_id.startswith(self.path):
                named[self.function_name(logical_id)] = properties
        return named

    def function_name(self, logical_id: str) -> str:
        """The name that functions() gives to a function."""
        properties = self.properties("Lambda::Function")[logical_id]
        service = str(properties["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"])
        for lane in ("High", "Normal", "Low", "Slow"):
            if self.aliased(self.output(f"{self.path}ExecutorFunction{lane}")) == logical_id:
                return f"{service}-{lane.lower()}"
        return service

    def aliased(self, alias: str) -> str:
        """The logical id of the function whose live version an alias stands for."""
        properties = self.properties("Lambda::Alias")[alias]
        assert properties["Name"] == LIVE
        return referred(properties["FunctionName"])

    def called(self, value: object) -> str:
        """The name that functions() gives to the function whose alias is named by `value`: its
        ARN, or the function's name and the alias's."""
        if isinstance(value, Mapping) and "Fn::Join" in value:
            _, (name, alias) = value["Fn::Join"]
            assert alias == f":{LIVE}"
            position, split = name["Fn::Select"]
            assert position == 6, "of an ARN split by colons the name is the sixth part"
            value = split["Fn::Split"][1]
        return self.function_name(self.aliased(referred(value)))


def synthesize(
    directory: Path, emulation: Emulation = ON_AWS, **options: object
) -> SynthesizedStack:
    """Synthesize with cdk.json's context changed by `options`; no asset is built."""
    return synthesize_whole(directory, emulation, **options, **{"aws:cdk:bundling-stacks": []})


def synthesize_whole(
    directory: Path, emulation: Emulation = ON_AWS, **options: object
) -> SynthesizedStack:
    """The same with the assets, which takes half a minute."""
    emulated = {EMULATION: asdict(emulation)}
    app = build({**default_context(), **emulated, **options}, str(directory))
    (stack,) = app.synth().stacks
    return SynthesizedStack(stack.stack_name, stack.template, directory)


def referred(value: object) -> str:
    """The logical id that a `Ref` or `Fn::GetAtt` names."""
    assert isinstance(value, Mapping), value
    if "Ref" in value:
        return str(value["Ref"])
    return str(value["Fn::GetAtt"][0])


def deployed(value: object) -> str:
    """A text of the template as it would read when deployed: references become logical ids."""
    if isinstance(value, str):
        return value
    assert isinstance(value, Mapping), value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(deployed(part) for part in parts)
    if "Fn::Select" in value:
        number, split = value["Fn::Select"]
        separator, text = split["Fn::Split"]
        return f"{deployed(text)} {separator} {number}"
    pseudo = {
        "AWS::Region": REGION,
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::URLSuffix": "amazonaws.com",
    }
    return pseudo.get(referred(value), referred(value))
