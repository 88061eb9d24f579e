"""The app's own assets and functions, with tables and queues on an emulator behind them."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carillon.cdk import packages
from carillon.cdk.emulation import Emulation
from carillon.settings import Settings
from tests.infra.stacks import SynthesizedStack, deployed, synthesize_whole
from tests.packaged.function import Assets


def unpacked(stack: SynthesizedStack) -> Assets:
    """The assets of a synthesized stack, where synthesis laid them."""
    (layer,) = stack.properties("Lambda::LayerVersion").values()
    code = stack.functions()["tick"]["Code"]
    of_layer, of_code = (
        stack.directory / f"asset.{str(content['S3Key']).removesuffix('.zip')}"
        for content in (layer["Content"], code)
    )
    return Assets(code=of_code, layer=of_layer)


def without_bytecode(assets: Assets, directory: Path) -> Assets:
    """The same code without bytecode, and the layer with all of botocore: what was deployed before
    there were packages."""
    packages.install(directory / "layer" / "python", sys.executable, packages.PINNED)
    shutil.copytree(assets.code, directory / "code")
    for compiled in [*directory.rglob("__pycache__")]:
        shutil.rmtree(compiled)
    return Assets(code=directory / "code", layer=directory / "layer")


def configured(stack: SynthesizedStack, name: str, endpoint_url: str, settings: Settings) -> Any:
    """The properties of a function of the template, with what is behind it here."""
    properties: Mapping[str, Any] = stack.functions()[name]
    variables = {
        variable: deployed(value)
        for variable, value in properties["Environment"]["Variables"].items()
    }
    here = {
        "AWS_ENDPOINT_URL": endpoint_url,
        "JOBS_TABLE": settings.jobs_table,
        "WHEEL_TABLE": settings.wheel_table,
        "RUNS_TABLE": settings.runs_table,
        "LANE_QUEUES": json.dumps({k.value: url for k, url in settings.lane_queues.items()}),
    }
    return {**properties, "Environment": {"Variables": {**variables, **here}}}


def synthesized(directory: Path, interpreter: str) -> SynthesizedStack:
    """The stack with its assets built: the code as on AWS, the layer for this machine."""
    return synthesize_whole(directory, Emulation(layer_python=interpreter))
