"""The deployment of Carillon: the CDK app, and what it packages."""

import os
import sys
from pathlib import Path

# The CDK library starts `node` when it is imported: that of this environment, whatever the path
# has.
_NODE = Path(sys.executable).with_name("node")
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))
