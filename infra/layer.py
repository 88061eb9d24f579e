"""The layer with the functions' dependencies, built by uv and without Docker.

`python -m infra.layer DIRECTORY` installs what AWS gets into DIRECTORY; `make setup` does so once
to fill uv's cache, after which synthesis needs no network.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.options import Options

PYTHON_VERSION = "3.14"
"""The functions' Python: the newest that Lambda offers and that every dependency has wheels for."""

PLATFORM = "aarch64-manylinux2014"
REQUIREMENTS = Path(__file__).parent / "requirements" / "functions.txt"

SEARCH_PATH_FILE = "carillon_dependencies.pth"
SITE_DIRECTORY = f"python/lib/python{PYTHON_VERSION}/site-packages"
"""Where a layer's `.pth` files are read, on Lambda and on MiniStack."""


def runtime() -> lambda_.Runtime:
    """The runtime of PYTHON_VERSION."""
    return lambda_.Runtime.PYTHON_3_14


def create_layer(scope: Construct, construct_id: str, options: Options) -> lambda_.LayerVersion:
    """The dependency layer: for arm64 by default.

    Options for emulators: `local_layer_python` installs for that interpreter instead;
    `layer_directory` makes a layer of one file that puts a directory of this machine on the
    path, so that each new worker unpacks a hundred bytes instead of all dependencies.
    """
    bundling = cdk.BundlingOptions(image=runtime().bundling_image, local=_Bundling(options))
    return lambda_.LayerVersion(
        scope,
        construct_id,
        code=lambda_.Code.from_asset(
            str(REQUIREMENTS.parent),
            # A hash of the source could not tell the layer of this machine from that of Lambda.
            asset_hash_type=cdk.AssetHashType.CUSTOM,
            asset_hash=_asset_hash(options),
            bundling=bundling,
        ),
        compatible_architectures=[lambda_.Architecture.ARM_64],
        compatible_runtimes=[runtime()],
        description="Dependencies of the functions of Carillon",
    )


def install_dependencies(directory: Path, interpreter: str = "") -> None:
    """Install the pinned dependencies into `directory`: for Lambda, or for `interpreter`.

    Asks uv's cache first, so that nothing is fetched when it has everything.
    Raises RuntimeError with uv's words when that fails with the network, too.
    """
    # `python -m uv` finds the command whatever PATH says.
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config"]
    command += ["--target", str(directory), *_selection(interpreter)]
    command += ["--require-hashes", "--requirement", str(REQUIREMENTS)]
    for network in (["--offline"], []):
        done = subprocess.run([*command, *network], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise RuntimeError(f"the dependency layer could not be installed:\n{done.stderr}")


def _selection(interpreter: str) -> list[str]:
    """uv's arguments that choose for which Python wheels are taken."""
    if interpreter:
        return ["--python", interpreter]
    target = ["--python-platform", PLATFORM, "--python-version", PYTHON_VERSION]
    return [*target, "--only-binary", ":all:"]


def _asset_hash(options: Options) -> str:
    requirements = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    parts = [PLATFORM, PYTHON_VERSION, requirements]
    parts += [options.local_layer_python, options.layer_directory]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@jsii.implements(cdk.ILocalBundling)
class _Bundling:
    """Fills the layer on this machine, by the options' choice."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def try_bundle(self, output_dir: str, *_options: Any, **_keywords: Any) -> bool:
        """True: Docker is never tried."""
        output = Path(output_dir)
        if self._options.layer_directory:
            write_search_path(output, self._options.layer_directory)
        else:
            install_dependencies(output / "python", self._options.local_layer_python)
        return True


def write_search_path(layer: Path, directory: str) -> None:
    """Write the one file of a layer that puts `directory` first on the path."""
    site = layer / SITE_DIRECTORY
    site.mkdir(parents=True)
    # A bare path would be appended, behind the interpreter's own packages: an import line is
    # run instead, so that the pinned versions win.
    line = f"import sys; sys.path.insert(0, {directory!r})\n"
    (site / SEARCH_PATH_FILE).write_text(line)


def main(arguments: Sequence[str]) -> None:
    """Install what AWS gets into the directory named by the only argument."""
    (directory,) = arguments
    install_dependencies(Path(directory))


if __name__ == "__main__":
    main(sys.argv[1:])
