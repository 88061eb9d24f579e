"""The deployment of Carillon: the CDK app, and what it packages.

`from carillon.cdk import Carillon` is for CDK apps of others.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carillon.cdk.construct import Carillon
    from carillon.cdk.tasks import Tasks

__all__ = ["Carillon", "Tasks"]

# The CDK library starts `node` when it is imported: that of this environment, whatever the path
# has.
_NODE = Path(sys.executable).with_name("node")
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))


def __getattr__(name: str) -> object:
    # Not above: releases and packages are imported without the CDK library, which takes seconds.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from carillon.cdk import construct, tasks
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is missing: pip install 'carillon[cdk]'") from error
    return {"Carillon": construct.Carillon, "Tasks": tasks.Tasks}[name]
