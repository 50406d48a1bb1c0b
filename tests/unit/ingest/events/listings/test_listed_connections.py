from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.listings import listed_connections
from rebalance_core.ingest.evidence import Evidence
from tests.unit.ingest.events.listings.pieces import CONTEXT, connected, listed, said, started


def dated(*pieces: Evidence, context: ClusterContext = CONTEXT) -> list[tuple[str, int | None]]:
    found = listed_connections(pieces, context)
    return [(piece.values["client_id"], piece.at_ms) for piece in found]


def test_within_the_log_a_connection_is_as_old_as_its_client_or_the_log() -> None:
    pieces = [listed(50, "1@1", "x:1"), listed(50, "2@2", "x:2"), started(51, "2@2", 30_000)]
    assert dated(*pieces) == [("1@1", 10_000), ("2@2", 30_000)]


def test_one_that_the_log_announces_is_not_listed_again() -> None:
    assert dated(connected(20, "1@1", "x:1"), listed(300, "1@1", "x:1")) == []


@pytest.mark.parametrize(("start_ms", "expected"), [(None, []), (200_000, [("1@1", 200_000)])])
def test_after_the_log_a_client_is_new_unless_it_says_when_it_started(
    start_ms: int | None, expected: list[tuple[str, int]]
) -> None:
    said_so = [] if start_ms is None else [started(301, "1@1", start_ms)]
    assert dated(listed(300, "1@1", "x:1"), *said_so) == expected


def test_after_a_log_that_begins_late_it_may_have_been_there_before() -> None:
    late = replace(CONTEXT, starts={})
    assert dated(listed(300, "1@1", "x:1"), context=late) == [("1@1", 10_000)]


def test_after_the_log_another_connection_of_a_known_client_is_left_to_the_table() -> None:
    pieces = [connected(20, "1@1", "x:1"), listed(300, "1@1", "x:2"), started(301, "1@1", 15_000)]
    assert dated(*pieces, context=replace(CONTEXT, starts={})) == []


def test_a_start_counts_for_one_process_of_an_id() -> None:
    pieces = [listed(300, "1@x", "x:1"), listed(300, "1@x", "x:2"), started(301, "1@x", 200_000)]
    assert dated(*pieces) == [("1@x", 200_000)]


def test_the_client_s_own_heartbeat_is_nearer_than_its_start() -> None:
    beat = said(203, "heartbeat", "c", client_id="1@1", topics=["T"])
    pieces = [listed(300, "1@1", "x:1"), beat]
    assert dated(*pieces) == [("1@1", 203_000)]
    assert dated(*pieces, started(301, "1@1", 200_000)) == [("1@1", 203_000)]
    late = replace(CONTEXT, starts={})
    assert dated(*pieces, context=late) == [("1@1", 10_000)], "its own log may begin late, too"


def test_topics_of_a_start_are_those_of_its_first_heartbeat() -> None:
    beat = said(201, "heartbeat", "c", client_id="1@1", topics=["A", "%RETRY%g"])
    asked = said(301, "client_subscription", "", client_file="1@1", topic="B")
    pieces = [listed(300, "1@1", "x:1"), started(301, "1@1", 200_000), asked]
    (later,) = listed_connections(pieces, CONTEXT)
    assert (later.values["topics"], later.values["later"]) == (["B"], True)
    (own,) = listed_connections([*pieces, beat], CONTEXT)
    assert (own.values["topics"], own.values["later"]) == (["%RETRY%g", "A"], False)


BOTH = replace(
    CONTEXT,
    logged={"a": 400_000, "b": 400_000},
    starts={"a": ((10_000, "a:1"),), "b": ((12_000, "b:1"),)},
    log_begins={"a": 10_000, "b": 12_000},
)


def test_whose_line_one_broker_dropped_came_when_the_other_logged_it() -> None:
    pieces = [connected(150, "1@1", "y:1", "b"), listed(300, "1@1", "x:1")]
    assert dated(*pieces, context=BOTH) == [("1@1", 150_000)]
    at_once = [connected(40, "1@1", "y:1", "b"), listed(300, "1@1", "x:1")]
    assert dated(*at_once, context=BOTH) == [("1@1", 40_000)]


@pytest.mark.parametrize(
    "other",
    [
        {"log_begins": {"a": 10_000, "b": 149_000}},  # it may have been there before
        {"starts": {"a": ((10_000, "a:1"),), "b": ((140_000, "b:1"),)}},  # and then come again
    ],
)
def test_a_broker_that_was_not_there_does_not_tell_when_it_came(other: dict[str, Any]) -> None:
    pieces = [connected(150, "1@1", "y:1", "b"), listed(300, "1@1", "x:1")]
    assert dated(*pieces, context=replace(BOTH, **other)) == [("1@1", 10_000)]
