"""When masters went and came back, and what their slaves did, by the files."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.masters import master_turns, modes_at_end
from rebalance_core.ingest.replicas import Replicas

MASTER, SLAVE = "1:1", "1:2"
START_MS = 500
REPLICAS = Replicas(
    {MASTER: "a", SLAVE: "a"},
    frozenset({SLAVE}),
    frozenset({MASTER}),
    {
        "m": BrokerFolder("a", "a", addresses=frozenset({MASTER})),
        "s": BrokerFolder("a", "brokers/s", False, True, frozenset({SLAVE})),
    },
    frozenset({"a"}),
)


def said(second: int | None, kind: str, place: str = "n", **values: Any) -> Any:
    at_ms = None if second is None else second * 1_000
    return Evidence(CLUSTER, "", kind, at_ms, place, second or 0, f"{place}:{second}", values)


def turns(*pieces: Any, replicas: Replicas = REPLICAS) -> list[str]:
    return [
        f"{'down' if turn.is_down else 'up'} {turn.at_ms / 1_000:g} {turn.mode}"
        for turn in master_turns(pieces, replicas, START_MS)
    ]


def registered(second: int, address: str, place: str = "n") -> Any:
    return said(second, "broker_registered", place, address=address)


def removed(second: int, address: str, place: str = "n") -> Any:
    return said(second, "replica_removed", place, address=address)


def gone(second: int, place: str = "n") -> Any:
    return said(second, "broker_removed", place, broker="a")


BOTH = (registered(1, MASTER), registered(2, SLAVE))


def test_name_servers_tell_by_address() -> None:
    assert turns(*BOTH, removed(9, MASTER), registered(20, MASTER)) == [
        "down 9.5 None",
        "up 20.5 None",
    ]
    assert turns(*BOTH, removed(9, SLAVE), registered(20, SLAVE)) == []
    assert turns(removed(9, MASTER), registered(20, MASTER)) == ["down 9.5 None", "up 20.5 None"]


def test_it_is_there_while_any_name_server_has_it() -> None:
    two = (registered(1, MASTER, "n1"), registered(1, MASTER, "n2"), registered(2, SLAVE))
    assert turns(*two, removed(9, MASTER, "n1"), registered(12, MASTER, "n1")) == []
    assert turns(*two, removed(9, MASTER, "n1"), removed(10, MASTER, "n2")) == ["down 10.5 None"]


def test_a_name_server_that_was_down_when_the_master_went_did_not_keep_it() -> None:
    two = (registered(1, MASTER, "n1"), registered(1, MASTER, "n2"), registered(2, SLAVE))
    lost = (*two, removed(9, MASTER, "n1"))
    assert turns(*lost) == []
    assert turns(*lost, said(30, "name_server_starting", "n2")) == ["down 9.5 None"]
    again = (said(30, "name_server_starting", "n1"), registered(40, MASTER, "n1"))
    assert turns(*two, *again) == []


def test_the_last_replica_is_the_broker_s_end_not_its_master_s() -> None:
    ended = (*BOTH, removed(8, SLAVE), removed(9, MASTER), gone(9))
    assert turns(*ended, registered(20, MASTER), registered(21, SLAVE)) == []
    assert turns(*ended, registered(20, SLAVE), registered(25, MASTER)) == [
        "down 20.5 None",
        "up 25.5 None",
    ]
    old = replace(REPLICAS, lone_slaves=frozenset())  # 4.9: a slave alone has no route
    assert turns(*ended, registered(20, SLAVE), registered(25, MASTER), replicas=old) == []


def test_a_slave_that_registers_first_shows_no_loss() -> None:
    assert turns(registered(1, SLAVE), registered(2, MASTER)) == []


def test_a_broker_without_slaves_has_no_turns() -> None:
    alone = Replicas({MASTER: "a"}, frozenset(), frozenset({MASTER}), {})
    assert (
        turns(registered(1, MASTER), removed(9, MASTER), registered(12, MASTER), replicas=alone)
        == []
    )


def test_an_address_that_no_file_knows_is_the_master_s_if_all_others_are_slaves() -> None:
    unstated = replace(REPLICAS, masters=frozenset())
    assert unstated.is_master(MASTER)
    third = replace(unstated, names={MASTER: "a", SLAVE: "a", "1:3": "a"})
    assert not third.is_master(MASTER)
    assert not third.is_master("9:9")
    assert turns(*BOTH, removed(9, MASTER), replicas=third) == []


def life(second: int, kind: str, place: str) -> Any:
    return said(second, f"broker_{kind}", place)


def test_without_name_servers_the_brokers_own_logs_tell() -> None:
    lives = (life(1, "booted", "m"), life(2, "booted", "s"), life(9, "stopping", "m"))
    assert turns(*lives, life(20, "booted", "m")) == ["down 9.5 None", "up 20.5 None"]
    both = (*lives[:2], life(8, "stopping", "s"), lives[2])
    assert turns(*both, life(20, "booted", "m")) == []


def test_a_master_that_died_is_dated_by_what_its_slave_copied_in_vain() -> None:
    vain = [life(second, "copy_failed", "s") for second in (3, 9, 15)]
    copied = life(5, "follows", "s")
    starts = (life(1, "booted", "m"), life(2, "booted", "s"), life(20, "booted", "m"))
    assert turns(*starts, *vain, copied) == ["down 9.5 None", "up 20.5 None"]
    assert turns(*starts, copied) == []  # nobody knows when


def listed(second: int, *ids: int, address: str | None = None) -> list[Any]:
    """Rows of one list."""
    return [
        replace(
            said(
                second,
                "broker",
                "",
                broker_name="a",
                broker_id=n,
                addr=address or (SLAVE if n else MASTER),
            ),
            source=f"list-{second}:{n}",
        )
        for n in ids
    ]


def test_without_any_log_lists_of_the_cluster_tell() -> None:
    assert turns(*listed(5, 0, 1), *listed(9, 1), *listed(12, 1), *listed(20, 0, 1)) == [
        "down 9 None",
        "up 20 None",
    ]
    # a log that tells goes before
    assert turns(*BOTH, *listed(9, 1), removed(12, MASTER)) == ["down 12.5 None"]


def prop(second: int, name: str, value: str, place: str = "s") -> Any:
    return said(second, "broker_property", place, name=name, value=value)


def support(value: str) -> Any:
    return said(1, "name_server_property", name="supportActingMaster", value=value)


def asked(second: int, address: str, **settings: str) -> Any:
    return said(second, "server_settings", "", address=address, settings=settings)


def refused(second: int, address: str) -> Any:
    return said(second, "pull_refused", "c1", address=address)


def route(second: int, acting: bool, **addresses: str) -> Any:
    ids = {one.removeprefix("id"): address for one, address in addresses.items()}
    return said(second, "route_broker", "", broker_name="a", addresses=ids, acting=acting)


def lowest(second: int, broker_id: int) -> Any:
    address = SLAVE if broker_id else MASTER
    return said(second, "min_broker", "s", broker_id=broker_id, address=address)


@pytest.mark.parametrize(
    ("pieces", "mode"),
    [
        ([prop(1, "slaveReadEnable", "true")], "SLAVE_READ"),
        ([prop(1, "slaveReadEnable", "false")], "REFUSED"),
        ([prop(1, "slaveReadEnable", "true", "m")], None),
        ([prop(1, "slaveReadEnable", "false"), prop(5, "slaveReadEnable", "true")], "SLAVE_READ"),
        ([prop(15, "slaveReadEnable", "true")], "SLAVE_READ"),
        ([prop(1, "enableSlaveActingMaster", "true")], None),  # the name server must support it
        ([prop(1, "enableSlaveActingMaster", "true"), refused(12, SLAVE)], "REFUSED"),
        ([prop(1, "enableSlaveActingMaster", "true"), support("true")], "ACTING"),
        ([prop(1, "enableSlaveActingMaster", "true"), support("false")], None),
        ([prop(1, "enableSlaveActingMaster", "false"), refused(12, SLAVE)], "REFUSED"),
        ([route(12, True)], None),
        ([route(12, False)], None),
        ([route(12, True, id0=SLAVE)], "ACTING"),
        ([route(12, True, id1=SLAVE)], None),  # its name server does not support it
        ([route(12, True, id1=SLAVE), refused(13, SLAVE)], "REFUSED"),
        ([route(5, True, id0=MASTER, id1=SLAVE)], None),
        ([lowest(10, 1)], "ACTING"),
        ([asked(15, SLAVE, brokerName="a", slaveReadEnable="true")], "SLAVE_READ"),
        ([asked(15, SLAVE, slaveReadEnable="false")], "REFUSED"),
        ([asked(15, MASTER, brokerName="a", slaveReadEnable="true")], None),
        ([asked(15, MASTER, brokerName="a", enableSlaveActingMaster="true")], None),
        ([lowest(10, 1), asked(5, "9:9", supportActingMaster="false")], None),
        ([lowest(10, 1), support("false")], None),
        ([refused(12, SLAVE)], "REFUSED"),
        ([refused(12, MASTER)], None),
        ([refused(25, SLAVE)], None),
        ([], None),
    ],
)
def test_what_the_slaves_do(pieces: list[Any], mode: str | None) -> None:
    found = turns(*BOTH, *pieces, removed(9, MASTER), registered(20, MASTER))
    assert found == [f"down 9.5 {mode}", "up 20.5 None"]


def test_acting_that_no_name_server_supports_leaves_the_slaves_their_other_setting() -> None:
    pieces = (prop(1, "enableSlaveActingMaster", "true"), prop(1, "slaveReadEnable", "true"))
    assert turns(*BOTH, *pieces, support("false"), removed(9, MASTER)) == ["down 9.5 SLAVE_READ"]


def test_a_list_in_which_a_slave_stands_under_its_master_s_id_has_no_master() -> None:
    assert turns(*listed(5, 0, 1), *listed(9, 0, address=SLAVE), *listed(20, 0, 1)) == [
        "down 9 None",
        "up 20 None",
    ]


def test_the_line_of_a_slave_that_acts_suffices_without_name_servers() -> None:
    lives = (life(1, "booted", "m"), life(2, "booted", "s"))
    assert turns(*lives, lowest(3, 0), lowest(9, 1), lowest(20, 0)) == [
        "down 9.5 ACTING",
        "up 20.5 None",
    ]
    stopped = life(4, "stopping", "m")
    assert turns(*lives, stopped, lowest(9, 1)) == ["down 4.5 ACTING"]


GONE = f"down {START_MS / 1_000:g} None"


@pytest.mark.parametrize(
    "alone", [listed(9, 1), listed(9, 0, address=SLAVE), [route(9, False, id1=SLAVE)]]
)
def test_a_master_that_was_gone_before_all_files_is_gone_from_the_begin(
    alone: list[Any],
) -> None:
    assert turns(*alone) == [GONE]
    assert turns(*alone, *listed(20, 0, 1)) == [GONE, "up 20 None"]
    assert turns(*alone, registered(20, MASTER)) == [GONE, "up 20.5 None"]
    assert turns(*alone, life(20, "booted", "m")) == [GONE, "up 20.5 None"]
    # a setting that a file tells later holds
    assert turns(*alone, prop(12, "slaveReadEnable", "true")) == [
        GONE.replace("None", "SLAVE_READ")
    ]


def test_what_shows_the_master_before_rules_that_out() -> None:
    assert turns(registered(1, MASTER), *listed(9, 1)) == []
    assert turns(*listed(5, 0, 1), *listed(9, 1)) == ["down 9 None"]
    assert turns(said(3, "broker_local", "m", address=MASTER), *listed(9, 1)) == ["down 9 None"]
    assert turns(*listed(9, 1), removed(15, MASTER)) == ["down 15.5 None"]


def test_a_name_server_that_started_and_hears_of_the_slave_alone() -> None:
    heard = (support("false"), registered(2, SLAVE))
    assert turns(*heard, said(200, "broker_expired", address="9:9")) == [GONE]
    assert turns(*heard, registered(120, MASTER)) == [GONE, "up 120.5 None"]
    assert turns(*heard, registered(40, MASTER)) == []  # masters are slow to start, too
    assert turns(registered(2, SLAVE), said(200, "broker_expired", address="9:9")) == []
    old = replace(REPLICAS, lone_slaves=frozenset())  # 4.9: a slave alone has no route
    assert turns(*heard, registered(120, MASTER), replicas=old) == []


@pytest.mark.parametrize(
    ("pieces", "mode"),
    [
        ([prop(1, "slaveReadEnable", "false"), prop(5, "slaveReadEnable", "true")], "SLAVE_READ"),
        ([prop(1, "slaveReadEnable", "false")], "REFUSED"),
        ([refused(12, SLAVE)], "REFUSED"),
        ([prop(1, "enableSlaveActingMaster", "true")], None),
        ([prop(1, "enableSlaveActingMaster", "true"), support("true")], "ACTING"),
        ([], None),
    ],
)
def test_what_slaves_would_do_at_the_end(pieces: list[Any], mode: str | None) -> None:
    assert modes_at_end([*BOTH, *pieces], REPLICAS, 900_000) == {"a": mode}
    assert modes_at_end(pieces, Replicas({MASTER: "a"}, frozenset(), frozenset(), {}), 1) == {}


def by_turns(*folders: tuple[str, str, tuple[tuple[int, bool], ...]]) -> Replicas:
    found = {
        name: BrokerFolder(
            "a",
            f"brokers/{name}",
            addresses=frozenset({address}),
            by_turns=True,
            turns=tuple((at_ms, master, f"{name}:{at_ms}") for at_ms, master in turned),
        )
        for name, address, turned in folders
    }
    return replace(REPLICAS, folders=found)


FIRST = ("x", MASTER, ((0, True), (20_000, False)))
SECOND = ("y", SLAVE, ((0, False), (20_000, True)))


def test_another_replica_takes_over() -> None:
    two = by_turns(FIRST, SECOND)
    lost = (*BOTH, removed(18, MASTER))
    # the old one registers again, as slave
    assert turns(*lost, registered(30, MASTER), replicas=two) == ["down 18.5 None", "up 20.5 None"]
    assert turns(said(18, "broker_stopping", "x"), replicas=two) == [
        "down 18.5 None",
        "up 20.5 None",
    ]
    assert turns(replicas=two) == ["down 20.499 None", "up 20.5 None"], "nothing tells of its end"


def test_a_leader_that_steps_down_is_gone_from_then_on() -> None:
    """DLedger's election may take seconds; within one second of the logs the loss is first."""
    two = by_turns(FIRST, SECOND)
    slow = said(18, "broker_role", "x", broker="a", slave=True)
    assert turns(slow, replicas=two) == ["down 18.5 None", "up 20.5 None"]
    at_once = said(20, "broker_role", "x", broker="a", slave=True)
    assert turns(at_once, replicas=two) == ["down 20.499 None", "up 20.5 None"]
    other = said(18, "broker_role", "y", broker="a", slave=True)
    assert turns(other, replicas=two) == ["down 20.499 None", "up 20.5 None"]


def test_a_replica_without_files_took_over() -> None:
    one = by_turns(("x", MASTER, ((0, True),)))
    ended = (removed(18, MASTER),)
    lists = said(40, "broker", broker_name="a", broker_id=0, addr=SLAVE)
    assert turns(*ended, replicas=one) == ["down 18.5 None"]
    assert turns(*ended, lists, replicas=one) == ["down 18.5 None", "up 40 None"]
