"""What dumps list: connections, tables, leaves of the command's own clients."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.listings import (
    after_logs,
    dated_by_dumps,
    listed_connections,
    listed_tables,
)
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.rows import Event, event
from tests.unit.ingest.events.listing_evidence import CONTEXT, connected, listed, said, started


def dated(*pieces: Evidence, context: ClusterContext = CONTEXT) -> list[tuple[str, int | None]]:
    found = listed_connections(pieces, context)
    return [(piece.values["client_id"], piece.at_ms) for piece in found]


def test_within_the_log_a_connection_is_as_old_as_its_client_or_the_log() -> None:
    pieces = [listed(50, "1@1", "x:1"), listed(50, "2@2", "x:2"), started(51, "2@2", 30_000)]
    assert dated(*pieces) == [("1@1", 10_000), ("2@2", 30_000)]


def test_and_no_older_than_the_last_list_of_its_broker_that_lacks_it() -> None:
    other, new = listed(30, "2@2", "x:2"), listed(50, "1@1", "x:1")
    assert dated(other, new) == [("2@2", 10_000), ("1@1", 30_000)]
    assert dated(replace(other, place="b"), new) == [("1@1", 10_000)]
    assert dated(other, new, started(51, "1@1", 40_000))[1] == ("1@1", 40_000)


@pytest.mark.parametrize(
    ("starts", "detail", "reported"),
    [({"a": ((10_000, "a:1"),)}, None, True), ({}, "OBSERVED", False)],
)
def test_at_a_broker_that_started_with_the_logs_it_came_later(
    starts: dict[str, Any], detail: str | None, reported: bool
) -> None:
    """The line was dropped: who joined with the brokers starts elsewhere than who came later."""
    piece = listed(50, "1@1", "1:1")
    pieces = [replace(piece, values={**piece.values, "version": None, "language": "JAVA"})]
    tables = group_tables("g", pieces, replace(CONTEXT, starts=starts))
    assert [row.get("detail") for row in tables["cluster_events"]] == [detail]
    rules = {row["rule_id"] for row in tables["findings"]}
    assert ("INGEST_JOIN_NOT_LOGGED" in rules) is reported


def test_one_that_the_log_announces_is_not_listed_again() -> None:
    assert dated(connected(20, "1@1", "x:1"), listed(300, "1@1", "x:1")) == []


@pytest.mark.parametrize(("start_ms", "expected"), [(None, []), (200_000, [("1@1", 200_000)])])
def test_after_the_log_a_client_is_new_unless_it_states_when_it_started(
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


def test_without_any_log_who_stands_in_a_broker_s_first_list_was_there_before() -> None:
    bare = replace(CONTEXT, logged={}, starts={}, brokers=("a", "b"))
    twice = listed(300, "1@1", "x:1"), listed(300, "1@1", "x:2")
    elsewhere = listed(301, "1@1", "y:1", "b")
    assert dated(*twice, elsewhere, context=bare) == [("1@1", 10_000)] * 3
    later = listed(400, "2@2", "x:3")  # the list before lacks it
    assert dated(*twice, later, context=bare) == [("1@1", 10_000)] * 2
    said_so = started(401, "2@2", 350_000)
    assert dated(*twice, later, said_so, context=bare)[-1] == ("2@2", 350_000)


def test_without_any_log_each_list_is_the_broker_s_whole_table() -> None:
    """Whom the second list has and not the first came between them, and who is missing went."""
    bare = replace(CONTEXT, logged={}, starts={}, brokers=("a",))
    rows = [listed(300, "1@1", "x:1"), listed(400, "2@2", "x:2")]
    rows = [
        replace(one, values={**one.values, "version": None, "language": "JAVA"}) for one in rows
    ]
    tables = group_tables("g", rows, bare)
    came = [
        (row["event_type"], row["client_id"], row["event_ms"], row.get("detail"))
        for row in sorted(
            tables["cluster_events"], key=lambda row: (row["event_ms"], row["client_id"])
        )
    ]
    assert came == [
        ("CONSUMER_JOIN", "1@1", 10_000, "OBSERVED"),
        ("CONSUMER_LOST", "1@1", 400_000, None),
        ("CONSUMER_JOIN", "2@2", 400_000, None),
    ]
    (finding,) = (row for row in tables["findings"] if row["rule_id"] == "INGEST_LOG_ENDED")
    assert "(no broker.log was collected). 2 events are dated by" in finding["summary"]
    (alone,) = after_logs("g", tables["cluster_events"][:1], bare)
    assert "(no broker.log was collected). 1 event is dated by" in alone["summary"]


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


def test_a_line_within_a_heartbeat_of_the_first_log_does_not_date_a_member_without_one() -> None:
    """Where the broker that lists it has no start in its log, it was there before that log."""
    begun = replace(BOTH, starts={}, log_begins={"a": 10_000, "b": 10_000})
    dumped = listed(300, "1@1", "x:1")
    assert dated(connected(39, "1@1", "y:1", "b"), dumped, context=begun) == [("1@1", 10_000)]
    assert dated(connected(40, "1@1", "y:1", "b"), dumped, context=begun) == [("1@1", 40_000)]
    assert dated(connected(39, "1@1", "y:1", "b"), dumped, context=BOTH) == [("1@1", 39_000)]


def of_kind(kind: str, *pieces: Evidence) -> list[Any]:
    return [one for one in listed_tables("g", list(pieces), CONTEXT) if one.kind == kind]


def test_each_log_has_its_end() -> None:
    (end,) = of_kind("log_ended")
    assert (end.place, end.at_ms) == ("a", 100_999)


def test_a_dump_after_the_log_is_the_broker_s_whole_table() -> None:
    within = listed(90, "1@1", "x:1")
    after = [listed(300, "1@1", "x:1"), listed(300, "1@1", "x:2"), listed(300, "2@2", "x:3")]
    unlogged = listed(300, "3@3", "x:9", "b")
    (table,) = of_kind("members_listed", within, *after, unlogged)
    channels = {c: [v["channel"] for v in rows] for c, rows in table.values["members"].items()}
    assert (table.place, table.at_ms) == ("a", 300_000)
    assert channels == {"1@1": ["x:1", "x:2"], "2@2": ["x:3"]}


def test_what_a_client_subscribes_counts_when_every_log_has_ended() -> None:
    asked = [
        said(second, "client_subscription", "", client_file="1@1", topic=topic)
        for second in (90, 300)
        for topic in ("T", "%RETRY%g")
    ]
    (own,) = of_kind("topics_listed", *asked)
    assert (own.at_ms, own.values) == (300_000, {"client_id": "1@1", "topics": {"T"}})
    one_goes_on = replace(CONTEXT, logged={"a": 100_000, "b": 800_000})
    kinds = {one.kind for one in listed_tables("g", asked, one_goes_on)}
    assert kinds == {"log_ended"}


BEAT = said(20, "heartbeat", "c", client_id="1@1", topics=["T"])
LEFT = said(150, "left_broker", "c", group="g")


def left_to_dumps(*joins_ms: int, left: bool = True) -> tuple[list[Event], Event]:
    """What is left to the dumps, and the row on the member's end."""
    joins = [event("CONSUMER_JOIN", ms, "a:1", client_id="1@1") for ms in joins_ms]
    lost = event("CONSUMER_LOST", 300_000, "mqadmin/d:1", client_id="1@1")
    pieces = [BEAT, LEFT] if left else [BEAT]
    names = ProcessNames(pieces, CONTEXT)
    return dated_by_dumps([lost], [*joins, lost], pieces, names, CONTEXT), lost


def test_a_loss_that_the_client_s_own_log_shows_is_a_leave() -> None:
    rest, row = left_to_dumps(20_000)
    assert (rest, row["event_type"], row["event_ms"]) == ([], "CONSUMER_LEAVE", 150_000)
    assert row["source"] == LEFT.source


def test_one_that_it_does_not_tell_is_left_to_the_dump() -> None:
    for rest, row in (
        left_to_dumps(20_000, left=False),
        left_to_dumps(160_000),
        left_to_dumps(20_000, 30_000),
    ):
        assert (rest, row["event_ms"]) == ([row], 300_000)


def test_the_finding_names_the_events_and_since_when_they_may_have_happened() -> None:
    rows = [
        event("CONSUMER_JOIN", 300_000, "mqadmin/d:1", client_id="1@1"),
        event("SUBSCRIBE", 400_000, "mqadmin/e:1", client_id="1@1", topic="T"),
    ]
    (found,) = after_logs("g", rows, CONTEXT)
    assert (found["first_ms"], found["last_ms"]) == (100_000, 400_000)
    assert found["evidence"] == {
        "CONSUMER_JOIN 1@1": "mqadmin/d:1",
        "SUBSCRIBE T 1@1": "mqadmin/e:1",
    }
    assert "a at 1970-01-01 00:01:40Z" in found["summary"]


def test_without_such_events_there_is_none() -> None:
    assert after_logs("g", [], CONTEXT) == []
