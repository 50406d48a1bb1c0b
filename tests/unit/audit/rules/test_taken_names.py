"""Two brokers with id 0 that register one name in turns."""

from typing import Any

import pytest

from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import Row, fact, judge_cluster, ms

RULE = "BROKER_NAME_TAKEN"


def master(address: str, first: float, last: float, times: int, cluster: str = "c") -> Row:
    named = {"address": address, "cluster": cluster}
    return fact("MASTER_ADDRESS", first, last, times, broker_name="a", **named)


def found(*rows: Row, until: float = 2_000) -> list[dict[str, Any]]:
    collected = fact("COLLECTED", 0, until, start_ms=ms(0), end_ms=ms(until))
    _, findings = judge_cluster([collected, *rows])
    return [row for row in findings if row["rule_id"] == RULE]


def test_two_clusters_with_one_name_are_named_with_their_addresses() -> None:
    (one,) = found(master("1.1.1.1:1", 0, 1_900, 7), master("2.2.2.2:1", 600, 1_800, 6, "stage"))
    assert one["severity"] == "ERROR"
    assert f"in turns since {utc(ms(600))}" in one["summary"]
    assert "1.1.1.1:1 (c, 7 times" in one["summary"]
    assert "2.2.2.2:1 (stage, 6 times" in one["summary"]


@pytest.mark.parametrize(
    "rows",
    [
        # a pod that came back with another address, and its cluster's name
        (master("1.1.1.1:1", 0, 0, 1), master("2.2.2.2:1", 600, 600, 1)),
        (master("1.1.1.1:1", 0, 0, 1), master("2.2.2.2:1", 600, 600, 1, "renamed")),
        # a master that failed over and came back
        (master("1.1.1.1:1", 0, 900, 2), master("2.2.2.2:1", 600, 600, 1)),
        # a broker that two name servers saw
        (master("1.1.1.1:1", 0, 900, 9),),
    ],
)
def test_near_misses(rows: tuple[Row, ...]) -> None:
    assert found(*rows) == []


def test_in_one_cluster_it_takes_more_turns_than_a_failover() -> None:
    rows = master("1.1.1.1:1", 0, 1_900, 4), master("2.2.2.2:1", 600, 1_800, 3)
    assert [one["severity"] for one in found(*rows)] == ["ERROR"]
    slaves = fact("BROKER_SLAVES", 0, 2_000, broker_name="a")
    assert found(*rows, slaves) == [], "a controller or DLedger may elect each by turns"


def test_it_is_over_where_no_other_address_registers_any_more() -> None:
    rows = master("1.1.1.1:1", 0, 900, 4), master("2.2.2.2:1", 600, 800, 3, "stage")
    assert [one["severity"] for one in found(*rows)] == ["INFO"]
