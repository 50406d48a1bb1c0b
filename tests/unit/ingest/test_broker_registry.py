"""Name servers that stop and come back: they log no stop, and forget every broker."""

from dataclasses import replace
from typing import Any

from rebalance_core.ingest.broker_folders import silences
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.broker_timeline import BrokerRegistry
from rebalance_core.ingest.evidence import Evidence

CONTEXT = ClusterContext("C", 0, 200_000, brokers=("a",), addresses={"1:1": "a", "2:2": "b"})


def said(second: int, kind: str, place: str = "n1", **values: Any) -> Any:
    return Evidence("cluster", "", kind, second * 1_000, place, second, f"{place}:{second}", values)


def registered(second: int, place: str = "n1", address: str = "1:1") -> Any:
    return said(second, "broker_registered", place, address=address)


def starts(second: int, place: str = "n1") -> Any:
    return said(second, "name_server_starting", place)


def removed(second: int, place: str = "n1") -> Any:
    return said(second, "broker_removed", place, broker="a")


def events(*pieces: Any, end_ms: int = 200_000) -> list[tuple[str, int, str | None]]:
    rows = BrokerRegistry(replace(CONTEXT, end_ms=end_ms)).read(pieces)
    return [(row["event_type"], row["event_ms"], row.get("detail")) for row in rows]


UP = ("BROKER_UP", 5_500, None)


def test_its_last_piece_before_it_starts_again_is_where_a_name_server_falls_silent() -> None:
    pieces = [starts(1), registered(5), starts(3, "n2"), registered(6, "n2"), starts(20)]
    assert silences(pieces) == {1: "n1"}


def test_a_broker_that_registers_again_was_never_away() -> None:
    assert events(starts(1), registered(5), starts(20), registered(49)) == [UP]
    both = [registered(5), registered(5, "n2"), starts(20), starts(22, "n2")]
    assert events(*both, registered(40), registered(41, "n2")) == [UP]


def test_one_that_does_not_register_is_gone_since_the_name_server_started() -> None:
    assert events(starts(1), registered(5), starts(20)) == [UP, ("BROKER_DOWN", 20_500, "CLOSED")]
    assert events(starts(1), registered(5), starts(20), end_ms=70_000) == [UP]  # it still may
    assert events(starts(1), registered(5), starts(20), registered(90)) == [
        UP,
        ("BROKER_DOWN", 20_500, "CLOSED"),
        ("BROKER_UP", 90_500, None),
    ]


def test_a_broker_that_went_while_another_name_server_was_down_is_gone_since_then() -> None:
    """So when a machine dies that both run on."""
    before = [registered(5), registered(5, "n2"), removed(30)]
    down = ("BROKER_DOWN", 30_500, "STOPPED")
    assert events(*before) == [UP]  # the other one may have it yet
    assert events(*before, starts(60, "n2")) == [UP, down]
    back = [UP, down, ("BROKER_UP", 70_500, None)]
    assert events(*before, starts(60, "n2"), registered(70), registered(70, "n2")) == back
    assert events(*before, registered(70), starts(72, "n2"), registered(80, "n2")) == back


def test_a_name_server_that_is_there_still_has_it_while_another_restarts() -> None:
    pieces = [registered(5), registered(5, "n2"), starts(20, "n2"), removed(30)]
    assert events(*pieces) == [UP, ("BROKER_DOWN", 30_500, "STOPPED")]
    assert events(*pieces[:3], registered(25, "n2"), removed(30)) == [UP]


def test_brokers_that_a_name_server_loses_by_shutting_down_are_up() -> None:
    """4.9.4: a graceful stop logs every broker as removed."""
    stop = said(20, "name_server_stopping")
    lost = [said(20, "broker_channel_closed"), removed(20)]
    assert events(registered(5), stop, *lost, starts(22), registered(53)) == [UP]
    assert events(registered(5), stop, *lost) == [UP]
    away = [starts(22), registered(53), removed(60)]
    assert events(registered(5), stop, *lost, *away)[1:] == [("BROKER_DOWN", 60_500, "STOPPED")]
    two = [registered(5), registered(5, "n2"), stop, *lost, removed(60, "n2")]
    assert events(*two)[1:] == [("BROKER_DOWN", 60_500, "STOPPED")]
