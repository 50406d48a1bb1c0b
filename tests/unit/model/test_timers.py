"""RocketMQ's timers are stated once, and the name of a span has a single value."""

import ast
import importlib
from collections import defaultdict

from rebalance_core.model import times
from rebalance_core.protocol import order_locks, settling_windows
from tests.tree import TREE

PURE = ("audit", "client", "ingest", "kernels", "planning", "protocol", "replay", "synthetic")


def spans() -> dict[str, dict[str, object]]:
    """Name -> module -> value of every constant in milliseconds that a module assigns."""
    values: dict[str, dict[str, object]] = defaultdict(dict)
    for package in ("model", *PURE):
        for path in sorted((TREE / "rebalance_core" / package).rglob("*.py")):
            name = ".".join(path.relative_to(TREE).with_suffix("").parts)
            assigned = set()
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.Assign):
                    assigned |= {ast.unparse(target) for target in node.targets}
                elif isinstance(node, ast.AnnAssign):
                    assigned.add(ast.unparse(node.target))
            for constant in (text for text in assigned if text.endswith("_MS") and text.isupper()):
                values[constant][name] = getattr(importlib.import_module(name), constant)
    return values


def test_no_two_constants_of_one_name_differ() -> None:
    differing = {name: of for name, of in spans().items() if len(set(map(repr, of.values()))) > 1}
    assert differing == {}


def test_a_timer_of_rocketmq_stands_in_one_file() -> None:
    of_rocketmq = {name: list(of) for name, of in spans().items() if times.__name__ in of}
    assert len(of_rocketmq) > 20
    assert all(modules == [times.__name__] for modules in of_rocketmq.values())


def test_the_windows_that_derive_from_them() -> None:
    assert (settling_windows.NOTIFIED_MS, settling_windows.OWN_PASS_MS) == (3_000, 23_000)
    assert (settling_windows.SCAN_AND_PASS_MS, settling_windows.ROUTE_MS) == (33_000, 53_000)
    assert order_locks.ORDER_LOCK_MS == 61_000
