"""Times as people write them, in text, and RocketMQ's timers."""

import ast
import importlib
from collections import defaultdict
from datetime import UTC, datetime

import pytest

from rebalance_core.model import times
from rebalance_core.model.times import read_duration, read_instant, utc, utc_ms, utc_time
from rebalance_core.protocol import order_locks, settling_windows
from tests.tree import TREE

# Times as people write them: durations and instants.


@pytest.mark.parametrize(
    ("text", "ms"),
    [("5m", 300_000), ("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert read_duration(text) == ms


@pytest.mark.parametrize("value", ["", "5", 5, "5 parsecs", "-5m", "m", None])
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        read_duration(value)


@pytest.mark.parametrize(
    "value",
    [1795231709901, "1795231709901", "2026-11-21T03:28:29.901Z", "2026-11-21T11:28:29.901+08:00",
     datetime(2026, 11, 21, 3, 28, 29, 901_000, UTC)],
)  # fmt: skip
def test_instants(value: object) -> None:
    assert read_instant(value) == 1795231709901


def test_an_instant_in_seconds_is_told() -> None:
    for value in (1795231709, "1795231709"):
        with pytest.raises(ValueError, match="in seconds; expected epoch milliseconds"):
            read_instant(value)


# Times in text, inside the calendar and beyond it.


def test_a_time_is_cut_to_the_second() -> None:
    assert utc(1_795_231_709_999) == "2026-11-21 03:28:29Z"
    assert utc_ms(1_795_231_709_009) == "2026-11-21 03:28:29.009Z"


def test_before_1970_seconds_are_cut_downwards() -> None:
    assert utc_ms(-1) == "1969-12-31 23:59:59.999Z"


@pytest.mark.parametrize("time_ms", [10**18, -(10**18)])
def test_a_time_beyond_the_calendar_is_a_number(time_ms: int) -> None:
    assert utc_time(time_ms) is None
    assert utc(time_ms) == f"{time_ms} ms"
    assert utc_ms(time_ms) == f"{time_ms} ms"


# RocketMQ's timers are stated once, and a name of a span means one span.

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
