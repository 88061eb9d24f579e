"""`make bench-cold`: what loading each function costs, as it is deployed and as sources alone.

Processor time, not wall time, of awslambdaric until it asks for its first event: that is what a
cold start adds, whatever else this machine is at.
"""

import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carillon.local.emulator import Emulator
from tests.packaged.deployed import configured, synthesized, unpacked, without_bytecode
from tests.packaged.function import Assets, Function, link_client
from tests.support.tables import create_deployment

FUNCTIONS = ("tick", "executor-normal", "api")
REPETITIONS = 5


def main() -> None:
    """Print the median CPU seconds of loading by function, before and after."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Emulator() as emulator,
        pytest.MonkeyPatch.context() as environment,
    ):
        directory = Path(folder)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_ENDPOINT_URL", emulator.endpoint_url)
        stack = synthesized(directory / "cdk.out", sys.executable)
        deployed = unpacked(stack)
        sources = without_bytecode(deployed, directory / "sources")
        link_client(directory / "client")
        settings = create_deployment("cold")
        print("CPU seconds until the first event   sources alone   as deployed")
        for name in FUNCTIONS:
            properties = configured(stack, name, emulator.endpoint_url, settings)
            # As on Lambda, where what a cold start compiles is lost with it.
            properties["Environment"]["Variables"]["PYTHONDONTWRITEBYTECODE"] = "1"
            before, after = (
                load_seconds(properties, assets, directory) for assets in (sources, deployed)
            )
            print(f"{name:<36}{before:13.2f}{after:14.2f}")
        print("MB unpacked, code and layer         ", end="")
        print(f"{megabytes(sources):13.1f}{megabytes(deployed):14.1f}")


def load_seconds(properties: Mapping[str, Any], assets: Assets, directory: Path) -> float:
    """The median over some cold starts; nothing can be written, so each compiles what it must."""
    found = []
    for _ in range(REPETITIONS):
        function = Function(
            properties,
            assets,
            directory / "client",
            share=False,
            log_path=directory / "cold.log",
        )
        with function:
            found.append(function.cpu_seconds)
    return statistics.median(found)


def megabytes(assets: Assets) -> float:
    """The size of all files."""
    files = [*assets.code.rglob("*"), *assets.layer.rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
