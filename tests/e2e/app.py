"""The CDK app of tests: this repository's own stack, with tasks of its users beside the samples."""

from pathlib import Path

from carillon.cdk.app import build
from carillon.cdk.tasks import Tasks

FAULTY = Path(__file__).with_name("faulty_tasks")

if __name__ == "__main__":
    build(tasks=Tasks.from_directory(FAULTY, modules=["faults"])).synth()
