"""Dumps of a broker whose slave acts as master list the connections of the slave."""

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.listings import with_answering_replica
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.masters import MasterTurn

MASTER, SLAVE, OTHER = "a", "brokers/a-s", "brokers/a-t"
FOLDERS = {
    "a": BrokerFolder("a", MASTER),
    "a-s": BrokerFolder("a", SLAVE, False, True),
    "b": BrokerFolder("b", "b"),
}
TURNS = MasterTurn("a", 1_000, True, "n:1"), MasterTurn("a", 5_000, False, "n:2")


def context(**more: BrokerFolder) -> ClusterContext:
    return ClusterContext("c", 0, 9_000, folders=FOLDERS | more, master_turns=TURNS)


def answerers_listed(at_ms: int, channel: str, broker: str = "a") -> Evidence:
    values = {"client_id": "x", "client_addr": channel}
    return Evidence(GROUP, "g", "member", at_ms, broker, 0, f"mqadmin/{at_ms}:2", values)


def logged(channel: str, place: str) -> Evidence:
    values = {"client_id": "x", "channel": channel}
    return Evidence(GROUP, "g", "consumer_connected", 500, place, 1, f"{place}:1", values)


LOGGED = [logged("h:1", MASTER), logged("h:2", SLAVE), logged("h:3", "b")]


@pytest.mark.parametrize(
    ("piece", "place"),
    [
        pytest.param(answerers_listed(900, "h:1"), MASTER, id="the master answers"),
        pytest.param(
            answerers_listed(2_000, "h:2"), SLAVE, id="its slave does, and logged the connection"
        ),
        pytest.param(answerers_listed(900, "h:2"), SLAVE, id="before the loss is known"),
        pytest.param(answerers_listed(2_000, "h:9"), SLAVE, id="no line of the slave has it"),
        pytest.param(answerers_listed(6_000, "h:9"), MASTER, id="the master is back"),
        pytest.param(answerers_listed(2_000, "h:3", "b"), "b", id="another broker"),
    ],
)
def test_whose_connections_a_dump_lists(piece: Evidence, place: str) -> None:
    found = [p for p in with_answering_replica([*LOGGED, piece], context()) if p.kind == "member"]
    assert [p.place for p in found] == [place]


def test_where_nothing_shows_which_slave_answered() -> None:
    two = context(**{"a-t": BrokerFolder("a", OTHER, False, True)})
    assert with_answering_replica([answerers_listed(2_000, "h:9")], two) == []
    assert [
        p.place for p in with_answering_replica([*LOGGED, answerers_listed(2_000, "h:2")], two)
    ][-1] == SLAVE
    none = ClusterContext("c", 0, 9_000, folders={"a": FOLDERS["a"]}, master_turns=TURNS)
    assert with_answering_replica([answerers_listed(2_000, "h:9")], none) == []


def test_lines_of_logs_stay_where_they_are() -> None:
    assert with_answering_replica(LOGGED, context()) == LOGGED
