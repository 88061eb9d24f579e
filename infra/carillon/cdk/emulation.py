"""The differences of a deployment for an emulator."""

import json
from dataclasses import dataclass, replace

from constructs import Construct

from carillon.cdk.options import MOST_EXECUTORS_OF_AWS, Options
from carillon.domain.message import LONGEST_DELAY_SECONDS


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """The differences of a deployment for an emulator; none of them is an option of one for AWS.
    They are the context key `carillon:emulation`, an object, of whichever app.

    Layers are built for the interpreter `layer_python`. `layer_directory` is a directory of this
    machine that the layer of dependencies only puts on the path, in one file. Retries later than
    `longest_delay_seconds` come by the wheel; less than SQS's own limit lets that be watched.
    No lane has more than `most_executors` at a time, since each is a process of this machine.
    """

    layer_directory: str = ""
    layer_python: str = ""
    longest_delay_seconds: int = LONGEST_DELAY_SECONDS
    most_executors: int = MOST_EXECUTORS_OF_AWS

    @property
    def is_on(self) -> bool:
        """True if there is an emulator, which knows no metric math."""
        return bool(self.layer_directory)

    def within(self, options: Options) -> Options:
        """The options with as many executors as there may be."""
        wanted = ((lane, each["max_concurrency"]) for lane, each in options.lanes.items())
        lanes = {lane: {"max_concurrency": min(n, self.most_executors)} for lane, n in wanted}
        return replace(options, lanes=lanes)

    @classmethod
    def of(cls, construct: Construct) -> "Emulation":
        """That of the construct's app."""
        told = construct.node.try_get_context(EMULATION) or {}
        return cls(**(json.loads(told) if isinstance(told, str) else told))


EMULATION = "carillon:emulation"
ON_AWS = Emulation()
