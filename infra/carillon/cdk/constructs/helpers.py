"""Acknowledged findings of cdk-nag, and texts that are settled at synthesis."""

from collections.abc import Callable

import aws_cdk as cdk
import jsii
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept what `rule` finds on `construct` and below, for `reason`."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))


def at_synthesis(text: Callable[[], str]) -> str:
    """The text as it is when all of the app is known."""
    return cdk.Lazy.string(_Produced(text))


@jsii.implements(cdk.IStableStringProducer)
class _Produced:
    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def produce(self) -> str:
        return self._text()
