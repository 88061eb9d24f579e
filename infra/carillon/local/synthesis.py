"""The CDK app of the local stack: the ordinary one, and what an emulator needs otherwise."""

import argparse

from carillon.cdk.app import build
from carillon.cdk.options import Emulation


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m carillon.local.synthesis")
    parser.add_argument("--layer-directory", required=True)
    parser.add_argument("--longest-delay-seconds", type=int, required=True)
    build(emulation=Emulation(**vars(parser.parse_args()))).synth()


if __name__ == "__main__":
    main()
