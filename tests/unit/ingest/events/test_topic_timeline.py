"""When topics had which queues."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.broker_history import StoreRead
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.topic_timeline import topic_tables
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.group_tables import sequenced
from rebalance_core.ingest.masters import MasterTurn

CONTEXT = ClusterContext(
    "C", 1_000, 900_000, brokers=("a",), permissions={"ro": ((0, 4),)}, versions={"ro": "4.9.7"}
)
FOUR: dict[str, Any] = {"topic": "T", "read": 4, "write": 4, "perm": 6}


def said(second: int, kind: str, place: str = "a", **values: Any) -> Evidence:
    return Evidence("topic", "T", kind, second * 1_000, place, second, f"{place}:{second}", values)


def stored(second: int, read: int, place: str = "a", **more: Any) -> Evidence:
    values = {"topic": "T", "read_queue_nums": read, "write_queue_nums": 4, "perm": 6}
    values |= {"order": False, "attributes": {}} | more
    return said(second, "topic_config", place, **values)


def configs(*pieces: Evidence) -> list[tuple[int, int, str | None]]:
    rows = topic_tables("T", pieces, CONTEXT)["cluster_events"]
    return [(r["event_ms"], r.get("read_queue_nums", -1), r.get("detail")) for r in rows]


def test_a_topic_is_created_empty_and_grows_by_empty_queues() -> None:
    pieces = [
        said(5, "topic_created", **FOUR),
        said(9, "topic_updated", **(FOUR | {"read": 6, "write": 6, "old": FOUR})),
    ]
    assert configs(*pieces) == [(5_500, 4, None), (9_500, 6, None)]
    offsets = topic_tables("T", pieces, CONTEXT)["queue_offsets"]
    assert [(r["queue_id"], r["observed_ms"], r["max_offset"]) for r in offsets] == [
        *((n, 5_500, 0) for n in range(4)),
        (4, 9_500, 0),
        (5, 9_500, 0),
    ]


def test_queues_that_come_back_are_not_new() -> None:
    pieces = [
        said(5, "topic_created", **FOUR),
        said(9, "topic_updated", **(FOUR | {"read": 2, "write": 2, "old": FOUR})),
        said(20, "topic_updated", **(FOUR | {"old": FOUR | {"read": 2, "write": 2}})),
    ]
    assert len(topic_tables("T", pieces, CONTEXT)["queue_offsets"]) == 4


def test_queues_that_a_lost_line_made_are_not_new_with_the_next_line() -> None:
    six = FOUR | {"read": 6, "write": 6}
    pieces = [
        said(5, "topic_created", **FOUR),
        said(20, "topic_updated", **(FOUR | {"read": 8, "write": 8, "old": six})),
    ]
    offsets = topic_tables("T", pieces, CONTEXT)["queue_offsets"]
    assert [r["queue_id"] for r in offsets if r["observed_ms"] > 20_000] == [6, 7]


def test_a_topic_from_before_the_log_is_observed_and_its_queues_are_not_taken_for_new() -> None:
    pieces = [said(9, "topic_updated", **(FOUR | {"old": FOUR | {"read": 2, "write": 2}}))]
    assert configs(*pieces) == [(1_000, 2, "OBSERVED"), (9_500, 4, None)]
    assert topic_tables("T", pieces, CONTEXT)["queue_offsets"] == []


@pytest.mark.parametrize("name", ["message.type", "+message.type"])
def test_a_lite_topic_is_reported_once(name: str) -> None:
    pieces = [stored(second, 4, attributes={name: "LITE"}) for second in (7, 8)]
    (finding,) = topic_tables("T", pieces, CONTEXT)["findings"]
    assert (finding["rule_id"], finding["severity"]) == ("INGEST_LITE_TOPIC", "INFO")
    assert "lite topics" in finding["summary"]


@pytest.mark.parametrize("attributes", [{}, {"message.type": "FIFO"}])
def test_other_types_of_topic_are_no_finding(attributes: dict[str, str]) -> None:
    assert topic_tables("T", [stored(7, 4, attributes=attributes)], CONTEXT)["findings"] == []


def settings_that_differ(*pieces: Evidence, topic: str = "T") -> list[str]:
    findings = topic_tables(topic, pieces, CONTEXT)["findings"]
    differ = [one for one in findings if one["rule_id"] == "INGEST_TOPIC_SETTINGS_DIFFER"]
    return [one["summary"] for one in differ]


def test_brokers_with_different_settings_of_a_topic() -> None:
    (summary,) = settings_that_differ(stored(7, 4, "a"), stored(7, 4, "b", order=True))
    assert "order is false at a, true at b" in summary
    fifo = stored(7, 4, "b", attributes={"+message.type": "FIFO"})
    (summary,) = settings_that_differ(stored(7, 4, "a"), fifo)
    assert "message.type is unset at a, FIFO at b" in summary
    (summary,) = settings_that_differ(stored(7, 4, "a"), stored(7, 4, "b", perm=2))
    assert "readable is true at a, false at b" in summary
    # numbers of queues, and who may write, are other rules' subjects
    assert settings_that_differ(stored(7, 4, "a"), stored(7, 8, "b", perm=4)) == []


def test_a_setting_that_was_changed_since_is_not_compared() -> None:
    ordered = stored(7, 4, "b", order=True)
    assert settings_that_differ(stored(7, 4, "a"), ordered, stored(9, 4, "b")) == []
    assert settings_that_differ(stored(7, 4, "a"), ordered, said(9, "topic_deleted", "b")) == []
    updated = said(9, "topic_updated", "b", **FOUR, old=FOUR)
    assert settings_that_differ(stored(7, 4, "a"), ordered, updated) == []
    pair = stored(7, 4, "a"), ordered
    assert settings_that_differ(*pair, topic="%RETRY%g") == []


def test_a_store_that_differs_dates_the_change_and_is_reported() -> None:
    pieces = [said(5, "topic_created", **FOUR), stored(7, 4), stored(100, 8)]
    assert configs(*pieces) == [(5_500, 4, None), (100_000, 8, None)]
    (finding,) = topic_tables("T", pieces, CONTEXT)["findings"]
    assert finding["rule_id"] == "INGEST_TOPIC_CHANGE_NOT_LOGGED"
    assert (finding["first_ms"], finding["last_ms"]) == (5_500, 100_000)
    assert "T on a has read=8, write=4 and perm=6 in a:100, but" in finding["summary"]


def test_it_changed_since_the_last_file_that_had_it_as_before() -> None:
    """A store may show what was so 10 s ago."""
    pieces = [said(5, "topic_created", **FOUR), stored(50, 4), stored(100, 8)]
    (finding,) = topic_tables("T", pieces, CONTEXT)["findings"]
    assert (finding["first_ms"], finding["last_ms"]) == (40_000, 100_000)


def test_a_store_copied_right_after_a_change_may_be_older_than_it() -> None:
    assert configs(said(5, "topic_created", **FOUR), stored(6, 2)) == [(5_500, 4, None)]


def test_a_read_only_broker_of_4_9_replaces_the_perm() -> None:
    (row,) = topic_tables("T", [said(5, "topic_created", "ro", **FOUR)], CONTEXT)["cluster_events"]
    assert row["perm"] == 4


def test_what_a_name_server_received_stands_in_for_a_missing_log() -> None:
    route = FOUR | {"broker_name": "a", "read": 8, "old": FOUR | {"broker_name": "a"}}
    assert configs(said(9, "topic_route", "n", **route)) == [
        (1_000, 4, "OBSERVED"),
        (9_501, 8, None),
    ]


def test_deleted_and_made_again_its_queues_are_new() -> None:
    pieces = [
        said(5, "topic_created", **FOUR),
        said(9, "topic_deleted", topic="T"),
        said(20, "topic_created", **FOUR),
    ]
    assert len(topic_tables("T", pieces, CONTEXT)["queue_offsets"]) == 8
    assert configs(*pieces) == [(5_500, 4, None), (9_500, -1, None), (20_500, 4, None)]


def test_consumer_progress_counts_where_the_minimum_cannot_have_moved() -> None:
    def status(second: int, low: int, high: int) -> Evidence:
        return said(
            second,
            "queue_offsets",
            "",
            broker_name="a",
            broker_name_truncated=False,
            queue_id=0,
            min_offset=low,
            max_offset=high,
        )

    def progress(second: int, high: int) -> Evidence:
        of_queue = {"broker_name": "a", "broker_name_truncated": False, "queue_id": 0}
        return said(second, "queue_progress", "", **of_queue, broker_offset=high)

    pieces = [status(10, 5, 50), progress(20, 60), status(30, 5, 70), progress(40, 80),
              status(50, 9, 90), progress(60, 99)]  # fmt: skip
    found = topic_tables("T", pieces, CONTEXT)["queue_offsets"]
    assert sorted((r["observed_ms"], r["min_offset"], r["max_offset"]) for r in found) == [
        (10_000, 5, 50),
        (20_000, 5, 60),
        (30_000, 5, 70),
        (50_000, 9, 90),
    ]


ACTING = replace(
    CONTEXT,
    master_turns=(MasterTurn("a", 100_500, True, "n:1"), MasterTurn("a", 200_500, False, "n:2")),
)
ROUTE: dict[str, Any] = {"broker_name": "a"} | FOUR


def perms(*pieces: Evidence) -> list[tuple[str, int, int]]:
    found = topic_tables("T", pieces, ACTING)
    assert found["findings"] == []
    return [(r["event_type"], r["event_ms"], r["perm"]) for r in found["cluster_events"]]


def routed(second: int, perm: int) -> Evidence:
    values = {"read_queue_nums": 4, "write_queue_nums": 4, "perm": perm}
    return said(second, "route_queues", "", broker_name="a", **values)


def test_what_a_route_lacks_without_a_master_is_no_change_of_the_topic() -> None:
    back = said(200, "topic_route", "n", **ROUTE, old=ROUTE | {"perm": 4})
    created = [("TOPIC_CONFIG", 5_500, 6)]
    assert perms(said(5, "topic_created", **FOUR), routed(150, 4), back, routed(300, 6)) == created
    # nothing else tells of the topic: it was so before
    observed = [("TOPIC_CONFIG", 1_000, 6)]
    assert perms(routed(150, 4), back) == perms(back) == perms(routed(150, 4), routed(300, 6))
    assert perms(back) == observed
    assert perms(routed(150, 4)) == [("TOPIC_CONFIG", 1_000, 4)]


def test_a_change_of_w_with_the_master_there_is_one() -> None:
    readonly = said(50, "topic_updated", **(FOUR | {"perm": 4, "old": FOUR}))
    assert perms(said(5, "topic_created", **FOUR), readonly, routed(150, 4), routed(300, 4)) == [
        ("TOPIC_CONFIG", 5_500, 6),
        ("TOPIC_CONFIG", 50_500, 4),
    ]


@pytest.mark.parametrize(
    ("starts", "logged_ms", "topic", "created", "unsure"),
    [
        (True, 400_000, "T", (500_000, None), [(400_000, 500_000)]),
        (True, 400_000, "RMQ_SYS_TRANS_HALF_TOPIC", (1_000, "OBSERVED"), []),
        (True, 400_000, "C_REPLY_TOPIC", (1_000, "OBSERVED"), []),
        (True, 600_000, "T", (1_000, "OBSERVED"), [(1_000, 500_000)]),
        (False, 400_000, "T", (1_000, "OBSERVED"), []),
    ],
)
def test_a_topic_first_seen_after_a_log_with_the_broker_s_start_was_created_since(
    starts: bool,
    logged_ms: int,
    topic: str,
    created: tuple[int, str | None],
    unsure: list[tuple[int, int]],
) -> None:
    times = {"a": ((1_000, "a:1"),)} if starts else {}
    context = replace(CONTEXT, starts=times, logged={"a": logged_ms})
    tables = topic_tables(topic, [stored(500, 4)], context)
    (row,) = tables["cluster_events"]
    assert (row["event_ms"], row.get("detail")) == created
    windows = [(one["first_ms"], one["last_ms"]) for one in tables["findings"]]
    assert windows == unsure


def test_a_dump_that_lists_its_queues_shows_that_the_topic_existed() -> None:
    def status(second: int) -> Evidence:
        of_queue = {"broker_name": "a", "broker_name_truncated": False, "queue_id": 0}
        return said(second, "queue_offsets", "", **of_queue, min_offset=0, max_offset=0)

    context = replace(CONTEXT, starts={"a": ((1_000, "a:1"),)}, logged={"a": 400_000})

    def first(*pieces: Evidence) -> tuple[int, int | None, int | None]:
        tables = topic_tables("T", pieces, context)
        (event,), (finding,) = tables["cluster_events"], tables["findings"]
        return event["event_ms"], finding["first_ms"], finding["last_ms"]

    assert first(stored(500, 4)) == (500_000, 400_000, 500_000)
    assert first(status(450), stored(500, 4)) == (450_000, 400_000, 450_000)
    assert first(status(300), stored(500, 4)) == (1_000, 1_000, 500_000), "the log lacks lines"


def test_lines_of_one_second_keep_the_order_of_their_file() -> None:
    """Deleted and created again within a second: the topic is there."""
    pieces = [said(5, "topic_created", **FOUR)] + [
        Evidence("topic", "T", kind, 9_000, "a", position, f"a:{position}", values)
        for position, kind, values in (
            (100, "topic_deleted", {"topic": "T"}),
            (101, "topic_created", FOUR | {"read": 6}),
        )
    ]
    rows = sequenced(topic_tables("T", pieces, CONTEXT)["cluster_events"])
    assert [(r["event_type"], r["event_ms"], r.get("read_queue_nums")) for r in rows] == [
        ("TOPIC_CONFIG", 5_500, 4),
        ("TOPIC_DELETED", 9_500, None),
        ("TOPIC_CONFIG", 9_500, 6),
    ]


def route_of(second: int, *brokers: str) -> list[Evidence]:
    queues = {"read_queue_nums": 4, "write_queue_nums": 4, "perm": 6}
    return [
        replace(
            said(second, "route_queues", "", broker_name=broker, **queues),
            source=f"route-{second}.txt",
        )
        for broker in brokers
    ]


def test_a_topic_that_the_new_master_lacks_went_with_the_old_one() -> None:
    folders = {
        "x": BrokerFolder("a", "brokers/x", False, True, turns=((0, True, ""), (60_000, False, "")),
                          by_turns=True),
        "y": BrokerFolder("a", "a", turns=((0, False, ""), (60_000, True, "")), by_turns=True),
    }  # fmt: skip
    switched = replace(
        CONTEXT,
        brokers=("a", "b"),
        folders=folders,
        master_turns=(MasterTurn("a", 59_500, True, "n:1"), MasterTurn("a", 60_500, False, "n:2")),
    )
    known = [said(5, "topic_created", **FOUR), said(5, "topic_created", "b", **FOUR)]

    def deleted(context: ClusterContext, *more: Evidence) -> list[tuple[str, int]]:
        rows = topic_tables("T", [*known, *more], context)["cluster_events"]
        gone = (row for row in rows if row["event_type"] == "TOPIC_DELETED")
        return [(row["broker_name"], row["event_ms"]) for row in gone]

    assert deleted(switched, *route_of(300, "b")) == [("a", 60_500)]
    assert deleted(switched, *route_of(300, "a", "b")) == []
    assert deleted(switched, *route_of(65, "b")) == [], "it may not have registered yet"
    assert deleted(CONTEXT, *route_of(300, "b")) == [], "nothing tells when"


RUNNING = {"a": 900_000, "b": 900_000}
RESTARTED = {"starts": {"a": ((196_000, "log"),)}}
STOPPED = {"ends": {"a": ((150_000, "log"),)}}
BACK = STOPPED | {"starts": {"a": ((160_000, "log"),)}}


@pytest.mark.parametrize(
    ("more", "gone"),
    [
        ({"logged": RUNNING}, True),
        ({"logged": RUNNING} | BACK, True),
        ({"logged": RUNNING} | STOPPED, False),  # the broker is down: its topics come back with it
        ({"logged": RUNNING} | RESTARTED, False),  # it registers up to 10 s after its start
        ({"logged": RUNNING | {"a": 190_000}}, False),  # nothing tells whether it still runs
        ({}, False),
    ],
)
def test_a_running_broker_that_a_route_lists_no_more_lost_the_topic(
    more: dict[str, Any], gone: bool
) -> None:
    context = replace(CONTEXT, brokers=("a", "b"), **more)
    tables = topic_tables("T", [*route_of(100, "a", "b"), *route_of(200, "b")], context)
    deleted = [r for r in tables["cluster_events"] if r["event_type"] == "TOPIC_DELETED"]
    assert [(r["broker_name"], r["event_ms"]) for r in deleted] == [("a", 200_000)] * gone
    spans = [(f["first_ms"], f["last_ms"]) for f in tables["findings"]]
    assert spans == [(100_000, 200_000)] * gone


def test_a_later_route_that_has_the_topic_brings_it_back() -> None:
    context = replace(CONTEXT, brokers=("a", "b"), logged=RUNNING)
    pieces = [*route_of(100, "a", "b"), *route_of(200, "b"), *route_of(300, "a", "b")]
    events = topic_tables("T", pieces, context)["cluster_events"]
    assert [r["event_type"] for r in events if r["broker_name"] == "a"] == [
        "TOPIC_CONFIG",
        "TOPIC_DELETED",
        "TOPIC_CONFIG",
    ]


def without(*stores: tuple[str, int, str]) -> ClusterContext:
    return replace(CONTEXT, topic_stores=tuple(StoreRead(*store) for store in stores))


def test_a_store_that_lacks_the_topic_dates_its_end() -> None:
    pieces = [said(5, "topic_created", **FOUR), stored(100, 4)]
    context = without(("a", 200_000, "a/topics.json"))
    tables = topic_tables("T", pieces, context)
    assert [(r["event_type"], r["event_ms"]) for r in tables["cluster_events"]] == [
        ("TOPIC_CONFIG", 5_500),
        ("TOPIC_DELETED", 200_000),
    ]
    (found,) = tables["findings"]
    assert found["rule_id"] == "INGEST_TOPIC_CHANGE_NOT_LOGGED"
    assert (found["first_ms"], found["last_ms"]) == (100_000, 200_000)


@pytest.mark.parametrize(
    "store", [("a", 104_000, "x"), ("b", 200_000, "x"), ("a", 100_000, "a:100"), ("a", 4_000, "x")]
)
def test_a_store_that_may_be_older_or_is_another_brokers_ends_nothing(
    store: tuple[str, int, str],
) -> None:
    pieces = [said(5, "topic_created", **FOUR), stored(100, 4)]
    events = topic_tables("T", pieces, without(store))["cluster_events"]
    assert [row["event_type"] for row in events] == ["TOPIC_CONFIG"]


def test_a_topic_that_a_later_store_has_again_was_made_anew() -> None:
    pieces = [stored(100, 4), stored(300, 8)]
    events = topic_tables("T", pieces, without(("a", 200_000, "x")))["cluster_events"]
    assert [row["event_type"] for row in events] == [
        "TOPIC_CONFIG",
        "TOPIC_DELETED",
        "TOPIC_CONFIG",
    ]
