"""Every assertion of RocketMQ's own unit tests that concerns a rule of ours."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.upstream_assertions import RULES, compare
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors" / "upstream-assertions.jsonl"
ASSERTIONS = 29_816
Row = dict[str, Any]


def rows() -> list[Row]:
    return [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]


def test_every_assertion_holds() -> None:
    assert compare(VECTORS) == (ASSERTIONS, [])


def test_the_file_is_what_the_script_prints() -> None:
    script = [sys.executable, "scripts/upstream_assertions.py"]
    printed = subprocess.run(script, cwd=TREE, capture_output=True, check=True, timeout=60).stdout
    assert printed == VECTORS.read_bytes()


def test_every_rule_is_used() -> None:
    assert {row["rule"] for row in rows()[1:]} == RULES.keys()


def first_share(row: Row) -> Row:
    return next(iter(row["shares"].values()))


CORRUPTIONS: dict[str, Callable[[Row], Any]] = {
    "allocate": lambda row: first_share(row).update(size=99),
    "pop_share": lambda row: row["sizes"].append([99, 99]),
    "start_offset": lambda row: row.update(offset=99),
    "threshold": lambda row: row["expected"].__setitem__(1, 99),
    "timestamp_search": lambda row: row["found"][3].__setitem__(1, 99),
    "offset_store": lambda row: row["steps"][1].__setitem__(1, 99),
    "broker_offsets": lambda row: row["queries"][0].__setitem__(2, 99),
    "broker_reply": lambda row: row.update(reply=99),
    "order_lock": lambda row: row.update(granted=[1]),
    "default_strategy": lambda row: row.update(name="AVG_BY_CIRCLE"),
}


def corrupted(tmp_path: Path, rule: str, corrupt: Callable[[Row], Any]) -> Path:
    head, *all_rows = rows()
    row = next(row for row in all_rows if row["rule"] == rule)
    row["versions"] = row["versions"][:1]
    corrupt(row)
    path = tmp_path / "corrupted.jsonl"
    path.write_text(f"{json.dumps(head)}\n{json.dumps(row)}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("rule", CORRUPTIONS)
def test_a_corrupted_value_is_a_mismatch(tmp_path: Path, rule: str) -> None:
    _, mismatches = compare(corrupted(tmp_path, rule, CORRUPTIONS[rule]))
    assert len(mismatches) == 1
    assert mismatches[0].startswith("corrupted.jsonl:2: ")
    assert "expected" in mismatches[0]


@pytest.mark.parametrize("corrupt", [lambda row: row.pop("rule"), lambda row: row.update(rule="x")])
def test_a_line_that_cannot_be_compared_is_a_mismatch(
    tmp_path: Path, corrupt: Callable[[Row], Any]
) -> None:
    _, mismatches = compare(corrupted(tmp_path, "threshold", corrupt))
    assert len(mismatches) == 1
    assert "cannot be compared" in mismatches[0]


def test_a_ring_that_moves_more_than_it_must_is_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A ring point that depends on how many ask: every change of the group moves nearly everything.
    from rebalance_core.strategies import consistent_hash

    real = consistent_hash._node_points.__wrapped__
    calls = iter(range(10**6))
    monkeypatch.setattr(
        consistent_hash, "_node_points", lambda cid, *rest: real(f"{cid}{next(calls)}", *rest)
    )
    consistent_hash.RINGS.clear()
    consistent_hash._owners.cache_clear()
    monkeypatch.setattr(consistent_hash, "_distances", consistent_hash._distances.__wrapped__)
    try:
        path = corrupted(
            tmp_path,
            "ring",
            lambda row: row.update(queues=[["T", "b", 0, 20]], clients=[["CID-", 10]]),
        )
        _, mismatches = compare(path)
    finally:
        consistent_hash.RINGS.clear()
        consistent_hash._owners.cache_clear()
    assert any("after one left" in mismatch for mismatch in mismatches)
    assert any("after one joined" in mismatch for mismatch in mismatches)


def test_a_queue_in_another_room_is_a_mismatch(tmp_path: Path) -> None:
    def without_members(row: Row) -> None:
        row["clients"] = row["clients"][1:]  # IDC1's queues now go to everybody

    _, mismatches = compare(corrupted(tmp_path, "rooms", without_members))
    assert mismatches
    assert "IDC1-brokerName" in mismatches[0]


@pytest.mark.parametrize("head", ["{}", '{"format":"upstream-assertions","format_version":2}', "7"])
def test_another_file_is_refused(tmp_path: Path, head: str) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(head + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="upstream-assertions"):
        compare(other)
