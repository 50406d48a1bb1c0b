"""Recorded results: isolations, attempts though avoided, order of rows."""

import pytest

from rebalance_core.producers.client_replay import Result, replay_client
from rebalance_core.producers.result_rows import checked_rows
from tests.unit.producers.models import variant

BASE = 1_795_000_000_000


def result(at_ms: int, broker: str, latency_ms: int = 5, status: str = "SEND_OK") -> Result:
    return Result(BASE + at_ms, "t", broker, latency_ms, status)


def isolations(version: str, *results: Result) -> list[tuple[str, int, int, int, str]]:
    made = replay_client(results, variant(version, True), detector=False, slice_ms=1000)
    return [
        (i.broker_name, i.from_ms - BASE, i.to_ms - BASE, i.latency_ms, i.reason)
        for i in made.isolations
    ]


def test_a_slow_result_isolates_and_a_later_one_extends_from_5_1_4() -> None:
    results = (result(600, "a", 600), result(1500, "a", 700), result(1600, "a", 5))
    assert isolations("5.3.3", *results) == [("a", 600, 3500, 700, "LATENCY")]
    assert isolations("4.9.7", *results) == [("a", 600, 1600, 700, "LATENCY")]


@pytest.mark.parametrize(
    ("status", "to_5_1_3_ms", "from_5_1_4_ms"),
    [
        ("TIMEOUT", 600_000, 10_000),
        ("BROKER_ERROR", 600_000, 10_000),
        ("CONNECT_FAILED", 600_000, 10_000),
        ("SEND_FAILED", 600_000, 10_000),
        ("NO_ADDRESS", 600_000, 0),
        ("INTERRUPTED", 0, 0),
        ("FLUSH_DISK_TIMEOUT", 0, 0),
    ],
)
def test_each_failure_isolates_as_its_version_states(
    status: str, to_5_1_3_ms: int, from_5_1_4_ms: int
) -> None:
    for version, length in (("4.9.7", to_5_1_3_ms), ("5.3.3", from_5_1_4_ms)):
        found = isolations(version, result(1000, "a", 5, status))
        assert found == ([("a", 1000, 1000 + length, 5, "FAILURE")] if length else [])


def test_two_stretches_apart_are_two_rows() -> None:
    found = isolations("5.3.3", result(600, "a", 600), result(9000, "a", 600))
    assert [row[1:3] for row in found] == [(600, 2600), (9000, 11_000)]


def test_an_attempt_at_an_avoided_broker_counts_if_there_was_another() -> None:
    slow = [result(600, "a", 600), result(900, "a"), result(2700, "a"), result(2800, "b")]
    made = replay_client(slow, variant("5.3.3", True), detector=False, slice_ms=1000)
    assert made.counts["t", "a"].avoided == 1  # at 895, not at 2695
    assert made.counts["t", "a"].slow == 1
    alone = replay_client(slow[:3], variant("5.3.3", True), detector=False, slice_ms=1000)
    assert alone.counts["t", "a"].avoided == 0  # the client uses no other broker


def test_choices_are_counted_where_attempts_begin() -> None:
    made = replay_client(
        [result(999, "a", 5), result(1002, "a", 5), result(1999, "b", 5)],
        variant("5.3.3", True),
        detector=False,
        slice_ms=1000,
    )
    first = BASE // 1000
    assert made.choices == {("t", "a", first): 2, ("t", "b", first + 1): 1}


def row(at_ms: int, source: str | None, broker: str = "a") -> dict[str, object]:
    return {**result(at_ms, broker)._asdict(), "_source": source}


def test_rows_in_the_wrong_order_of_a_file_are_named() -> None:
    rows = [row(30, "f:10"), row(10, "f:2"), row(20, "f:9"), row(15, "g:11"), row(19, "f:11")]
    good, bad = checked_rows(rows, None)
    assert [r["event_ms"] - BASE for r in good] == [10, 15, 20, 30]
    assert [(r["_source"], [i["code"] for i in issues]) for r, issues in bad] == [
        ("f:11", ["TIME_WENT_BACK"])
    ]
    assert "before the 1795000000030 of a line above" in bad[0][1][0]["message"]


def test_rows_without_lines_are_sorted() -> None:
    good, bad = checked_rows([row(30, None), row(10, None)], None)
    assert [r["event_ms"] - BASE for r in good] == [10, 30]
    assert bad == []


def test_unknown_brokers_are_named() -> None:
    good, bad = checked_rows([row(30, "f:1"), row(10, "f:2", "x")], {"a", "b"})
    assert len(good) == 1
    assert [i["code"] for i in bad[0][1]] == ["UNKNOWN_BROKER", "TIME_WENT_BACK"]
    assert "brokers of cluster_events: a, b" in bad[0][1][0]["message"]
