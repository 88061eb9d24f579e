"""Workloads of jobs as POST /jobs takes them."""

from collections.abc import Iterable
from typing import Any

from carillon.manifest.manifest import Manifest
from carillon.simulation.workload import Workload


def workload_of(jobs: Iterable[dict[str, Any]], **more: Any) -> Workload:
    """`more` are other members of the manifest."""
    by_name = {}
    for job in jobs:
        by_name[job["name"]] = {name: job[name] for name in job if name != "name"}
    return Workload.of(Manifest.of({"jobs": by_name, **more}))
