"""The functions' assets as CDK takes them: their code, the layer of their dependencies, and the
runtime that both are compiled for."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from carillon.cdk import packages
from carillon.cdk.constructs.helpers import at_synthesis
from carillon.cdk.emulation import Emulation
from carillon.cdk.options import Options
from carillon.cdk.runtime import runtime_of
from carillon.cdk.tasks import DEPLOYED_PATH, FOLDER, Tasks

SEARCH_PATH_FILE = "carillon_dependencies.pth"
SITE_DIRECTORY = f"python/lib/python{packages.PYTHON_VERSION}/site-packages"
"""The folder where a layer's `.pth` files are read, on Lambda and on MiniStack."""


class Assets(Construct):
    """Code, layer and runtime, and `release`: a digest that changes with any of them, with the
    options, or with what else is counted in, that is with every deployment that changes what
    functions do."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        emulation: Emulation,
        tasks: Tasks | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.runtime = runtime_of(options.python)
        hash_of_layer = layer_hash(emulation)
        self.code = built(packages.code_digest(), packages.build_code, self.runtime)
        self.layer = lambda_.LayerVersion(
            self,
            "Dependencies",
            code=built(
                hash_of_layer,
                lambda output: _fill_layer(output, emulation),
                self.runtime,
            ),
            compatible_architectures=[lambda_.Architecture.ARM_64],
            compatible_runtimes=[self.runtime],
            description="Dependencies of the functions of Carillon",
        )
        chosen = {name: str(value) for name, value in vars(options).items()}
        self.task_layers: list[lambda_.LayerVersion] = []
        self.task_folder = ""
        if tasks is not None:
            self._add(tasks, emulation)
        self._parts: list[object] = [packages.code_digest(), hash_of_layer, chosen, str(emulation)]
        self._parts.append(tasks and tasks.digest(emulation.layer_python))
        self.release = at_synthesis(self._release)

    def _add(self, tasks: Tasks, emulation: Emulation) -> None:
        """A layer of its own; an emulator has no place for it, and is told where it was built."""
        digest = tasks.digest(emulation.layer_python)
        if emulation.is_on:
            stage = cdk.Stage.of(self)
            assert stage is not None
            folder = Path(stage.outdir).resolve() / f"{FOLDER}-{digest[:16]}"
            if not folder.exists():
                tasks.build(folder, emulation.layer_python)
            self.task_folder = str(folder)
            return
        layer = lambda_.LayerVersion(
            self,
            "Tasks",
            code=built(
                digest,
                lambda output: tasks.build(output / FOLDER, emulation.layer_python),
                self.runtime,
            ),
            compatible_architectures=[lambda_.Architecture.ARM_64],
            compatible_runtimes=[self.runtime],
            description="Tasks, and what they require",
        )
        self.task_layers.append(layer)
        self.task_folder = DEPLOYED_PATH

    def count_in(self, part: object) -> None:
        """Have the release change with `part`, a list for instance that is still to grow."""
        self._parts.append(part)

    def _release(self) -> str:
        # Of what an app gives by a token it is the template's reference that counts.
        parts = cdk.Stack.of(self).resolve(self._parts)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def layer_hash(emulation: Emulation) -> str:
    """A digest that changes with the layer."""
    if emulation.layer_directory:
        return hashlib.sha256(emulation.layer_directory.encode()).hexdigest()
    return packages.layer_digest(emulation.layer_python)


def _fill_layer(output: Path, emulation: Emulation) -> None:
    if emulation.layer_directory:
        write_search_path(output, emulation.layer_directory)
    else:
        packages.build_layer(output / "python", emulation.layer_python)


def write_search_path(layer: Path, directory: str) -> None:
    """Write the one file of a layer that puts `directory` first on the path: emulators' new workers
    unpack a hundred bytes instead of all dependencies."""
    site = layer / SITE_DIRECTORY
    site.mkdir(parents=True)
    # A bare path would be appended, behind the interpreter's own packages: an import line is
    # run instead, so that the pinned versions win.
    line = f"import sys; sys.path.insert(0, {directory!r})\n"
    (site / SEARCH_PATH_FILE).write_text(line)


def built(
    digest: str, build: Callable[[Path], None], for_runtime: lambda_.Runtime
) -> lambda_.AssetCode:
    """The asset that `build` fills a folder with, which changes with the digest alone."""
    return lambda_.Code.from_asset(
        str(packages.REQUIREMENTS.parent),
        # A hash of this folder would not cover what is built, nor for which machine.
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        asset_hash=digest,
        bundling=cdk.BundlingOptions(image=for_runtime.bundling_image, local=_Bundling(build)),
    )


@jsii.implements(cdk.ILocalBundling)
class _Bundling:
    """Builds on this machine; Docker is never tried."""

    def __init__(self, build: Callable[[Path], None]) -> None:
        self._build = build

    def try_bundle(self, output_dir: str, *_options: Any, **_keywords: Any) -> bool:
        self._build(Path(output_dir))
        return True
