from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.evidence import Evidence

CONTEXT = ClusterContext(
    "C", 0, 100_000, brokers=("a",), addresses={"1:1": "a", "1:2": "a"}, versions={"a": "5.3.3"}
)


def said(second: int, kind: str, place: str = "n", **values: Any) -> Evidence:
    return Evidence("cluster", "", kind, second * 1_000, place, second, f"{place}:{second}", values)


def events(
    *pieces: Evidence, context: ClusterContext = CONTEXT
) -> list[tuple[str, int, str | None]]:
    rows = broker_tables(pieces, context)["cluster_events"]
    return [(row["event_type"], row["event_ms"], row.get("detail")) for row in rows]


def test_a_broker_is_up_and_down_with_the_middle_of_the_second() -> None:
    assert events(
        said(5, "broker_registered", address="1:1"), said(9, "broker_removed", broker="a")
    ) == [("BROKER_UP", 5_500, None), ("BROKER_DOWN", 9_500, "STOPPED")]


def test_it_is_up_while_any_name_server_has_it() -> None:
    assert events(
        said(5, "broker_registered", "n1", address="1:1"),
        said(5, "broker_registered", "n2", address="1:1"),
        said(9, "broker_removed", "n1", broker="a"),
        said(12, "broker_removed", "n2", broker="a"),
    ) == [("BROKER_UP", 5_500, None), ("BROKER_DOWN", 12_500, "STOPPED")]


@pytest.mark.parametrize(
    ("causes", "detail"),
    [
        (["broker_channel_closed"], "CLOSED"),
        (["broker_expired"], "EXPIRED"),
        (
            ["broker_expired", "broker_channel_closed"],
            "EXPIRED",
        ),  # 4.9: the scan closes the channel
    ],
)
def test_how_it_was_lost(causes: list[str], detail: str) -> None:
    found = events(
        said(5, "broker_registered", address="1:1"),
        *(said(9, cause, address="1:1") for cause in causes),
        said(9, "broker_removed", broker="a"),
    )
    assert found[-1] == ("BROKER_DOWN", 9_500, detail)


def test_a_broker_first_seen_going_down_was_there_before() -> None:
    assert events(said(9, "broker_removed", broker="a")) == [
        ("BROKER_DOWN", 9_500, "STOPPED"),
        ("BROKER_UP", 0, "OBSERVED"),
    ]


def test_without_a_name_server_s_log_the_broker_s_own_counts_and_a_finding_states_it() -> None:
    tables = broker_tables(
        [
            said(5, "broker_booted", "a", broker="a", address="1:1"),
            said(9, "broker_stopping", "a"),
        ],
        CONTEXT,
    )
    assert [(r["event_type"], r["event_ms"]) for r in tables["cluster_events"]] == [
        ("BROKER_UP", 5_500),
        ("BROKER_DOWN", 9_500),
    ]
    assert [r["rule_id"] for r in tables["findings"]] == ["INGEST_NO_NAMESRV_LOG"]


REPLICATED = replace(
    CONTEXT,
    folders={
        "a": BrokerFolder("a", "a", addresses=frozenset({"1:1"})),
        "s": BrokerFolder("a", "brokers/s", False, True, frozenset({"1:2"})),
    },
    slaves=frozenset({"1:2"}),
    logged={"a": 0, "brokers/s": 0},
)


def test_a_replica_that_goes_or_comes_changes_nothing_while_another_is_there() -> None:
    assert events(
        said(5, "broker_registered", address="1:1"),
        said(6, "broker_registered", address="1:2"),
        said(9, "broker_channel_closed"),
        said(9, "replica_removed", address="1:1"),
        said(20, "broker_registered", address="1:1"),
        said(30, "replica_removed", address="1:2"),
        said(31, "replica_removed", address="1:1"),
        said(31, "broker_removed", broker="a"),
        context=REPLICATED,
    ) == [("BROKER_UP", 5_500, None), ("BROKER_DOWN", 31_500, "STOPPED")]


@pytest.mark.parametrize(("version", "up_ms"), [("5.5.0", 20_500), ("4.9.7", 25_500)])
def test_a_slave_alone_has_a_route_from_5_0_on_only(version: str, up_ms: int) -> None:
    context = replace(REPLICATED, versions={"a": version})
    assert events(
        said(5, "broker_registered", address="1:1"),
        said(6, "broker_registered", address="1:2"),
        said(9, "broker_removed", broker="a"),
        said(20, "broker_registered", address="1:2"),
        said(25, "broker_registered", address="1:1"),
        context=context,
    )[-1] == ("BROKER_UP", up_ms, None)


def test_own_logs_tell_of_an_end_once_no_process_of_the_name_is_left() -> None:
    starts = [
        said(1, "broker_booted", "a", broker="a", address="1:1"),
        said(2, "broker_booted", "s", broker="a", address="1:2"),
    ]
    stops = [said(9, "broker_stopping", "a"), said(12, "broker_stopping", "s")]
    assert events(*starts, *stops, context=REPLICATED) == [
        ("BROKER_UP", 1_500, None),
        ("BROKER_DOWN", 12_500, "STOPPED"),
    ]
    running = [starts[0], stops[0]]  # the slave's log does not begin with its start
    assert events(*running, context=REPLICATED) == [("BROKER_UP", 0, "OBSERVED")]
    alone = replace(REPLICATED, folders={"s": REPLICATED.folders["s"]}, start_ms=500)
    assert events(starts[1], stops[1], context=alone) == [("BROKER_UP", 500, "OBSERVED")]


@pytest.mark.parametrize(("version", "up_ms"), [("5.2.0", 20_500), ("4.9.7", 25_500)])
def test_own_logs_tell_of_the_first_process_that_is_back(version: str, up_ms: int) -> None:
    """Recorded on 5.2.0: master and slave were stopped, and the slave came back first."""
    pieces = [
        said(1, "broker_booted", "a", broker="a", address="1:1"),
        said(2, "broker_booted", "s", broker="a", address="1:2"),
        said(9, "broker_stopping", "a"),
        said(12, "broker_stopping", "s"),
        said(20, "broker_booted", "s", broker="a", address="1:2"),
        said(25, "broker_booted", "a", broker="a", address="1:1"),
    ]
    assert events(*pieces, context=replace(REPLICATED, versions={"a": version})) == [
        ("BROKER_UP", 1_500, None),
        ("BROKER_DOWN", 12_500, "STOPPED"),
        ("BROKER_UP", up_ms, None),
    ]


BACK = [
    said(5, "broker_registered", address="1:1"),
    said(9, "broker_removed", broker="a"),
    said(20, "broker_booted", "a", broker="a", address="1:1"),
]
DOWN = [("BROKER_UP", 5_500, None), ("BROKER_DOWN", 9_500, "STOPPED")]
LATER = said(300, "broker_registered", address="9:9")


def test_a_start_counts_where_the_name_servers_logs_had_ended() -> None:
    assert events(*BACK) == [*DOWN, ("BROKER_UP", 20_500, None)]
    assert events(*BACK, LATER) == DOWN


@pytest.mark.parametrize("kind", ["broker", "route_broker"])
def test_a_start_counts_where_a_dump_lists_the_broker_later(kind: str) -> None:
    values: dict[str, Any] = {"broker_name": "a", "broker_id": "0", "addr": "1:1", "version": "",
                              "addresses": {}}  # fmt: skip
    assert events(*BACK, LATER, said(40, kind, "", **values))[2:] == [("BROKER_UP", 20_500, None)]
    assert events(*BACK, LATER, said(15, kind, "", **values)) == DOWN


def test_a_start_that_its_log_cuts_off_counts_where_a_dump_lists_the_broker_later() -> None:
    starts = [*BACK[:2], said(20, "broker_starting", "a")]
    listed = said(40, "route_broker", "", broker_name="a", addresses={})
    assert events(*starts) == DOWN  # it may have failed
    assert events(*starts, listed)[2:] == [("BROKER_UP", 20_500, None)]
    assert events(*starts, said(21, "broker_stopping", "a"), listed) == DOWN
    again = [*starts, *BACK[2:], listed]
    assert events(*again)[2:] == [("BROKER_UP", 20_500, None)]  # once


def test_a_start_whose_registration_is_logged_is_no_second_one() -> None:
    registered = said(21, "broker_registered", address="1:1")
    assert events(*BACK, registered) == [*DOWN, ("BROKER_UP", 21_500, None)]
