"""Deployed processes spare the collector what they have loaded."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FUNCTIONS = Path(__file__).resolve().parents[2] / "functions" / "carillon"
PROGRAM = """
import gc
from carillon.garbage import spare_what_is_loaded
loaded = [[] for _ in range(50_000)]
spare_what_is_loaded()
young, *others = gc.get_threshold()
assert gc.get_freeze_count() > 50_000, gc.get_freeze_count()
assert (young, others) == (10_000, [10, 10]), gc.get_threshold()
class Node: pass
before = len(gc.get_objects())
for _ in range(30_000):
    node = Node()
    node.itself = node
assert len(gc.get_objects()) - before < 20_000, "what comes later is collected"
"""


def test_what_is_loaded_is_spared_and_what_comes_later_is_collected() -> None:
    # In a process of its own: the tests' process would keep its garbage for ever.
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


@pytest.mark.parametrize("function", ["api", "executor", "tick"])
def test_handlers_do_so_when_all_is_composed(function: str) -> None:
    statements = ast.parse((FUNCTIONS / function / "handler.py").read_text()).body
    code = [each for each in statements if not isinstance(each, ast.FunctionDef)]
    assert ast.unparse(code[-1]) == "spare_what_is_loaded()"
