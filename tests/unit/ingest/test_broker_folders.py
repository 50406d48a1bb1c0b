"""Whose files lie in a folder of brokers/: the clues one by one, and what contradicts itself."""

from typing import Any

import pytest

from rebalance_core.ingest.broker_folders import BrokerFolder, broker_folders
from rebalance_core.ingest.evidence import Evidence

MASTER, SLAVE = "1.1.1.1:1", "1.1.1.2:1"
LISTED = ("broker_name", "broker_id", "addr", "version")


def said(kind: str, place: str = "", at_ms: int | None = 1_000, **values: Any) -> Any:
    return Evidence("cluster", "", kind, at_ms, place, 0, f"{place}:1", values)


def listed(name: str, broker_id: int, address: str, at_ms: int = 1_000) -> Any:
    return said("broker", "", at_ms, **dict(zip(LISTED, (name, broker_id, address, None))))  # noqa: B905


def booted(folder: str, name: str, address: str, at_ms: int = 1_000) -> Any:
    return said("broker_booted", folder, at_ms, broker=name, address=address)


def folders(names: str, *pieces: Any, expected: str = "") -> dict[str, BrokerFolder]:
    found, _ = broker_folders(names.split(), pieces, expected.split(), 9_000)
    return dict(found)


def test_a_suffix_shows_nothing() -> None:
    found = folders("b b-s", expected="b b-s")
    assert {name: (f.broker_name, f.slave) for name, f in found.items()} == {
        "b": ("b", False),
        "b-s": ("b-s", False),
    }


@pytest.mark.parametrize(
    "clues",
    [
        [booted("x", "b", SLAVE), listed("b", 1, SLAVE)],
        [said("broker_local", "x", address=SLAVE), listed("b", 1, SLAVE)],
        [
            said("broker_local", "x", address=SLAVE),
            said("route_broker", broker_name="b", addresses={"0": MASTER, "1": SLAVE}),
        ],
        [
            said("broker_property", "x", name="brokerName", value="b"),
            said("broker_property", "x", name="brokerId", value="3"),
        ],
        [booted("x", "b", SLAVE), said("broker_property", "x", name="brokerRole", value="SLAVE")],
        [said("broker_follows", "x", address=MASTER), listed("b", 0, MASTER)],
        [
            said("broker_follows", "x", address=MASTER),
            said("broker_address", "namesrv", broker="b", address=MASTER),
        ],
        [
            said("broker_topic", "x", topic="rmq_sys_SYNC_BROKER_MEMBER_b"),
            said("broker_follows", "x", address=MASTER),
        ],
        [
            said("broker_topic", "x", topic="b"),
            said("broker_topic", "x", topic="made-by-hand"),
            said("broker_removed", "namesrv", broker="b"),
            said("broker_follows", "x", address=MASTER),
        ],
    ],
)
def test_each_clue_shows_a_slave(clues: list[Any]) -> None:
    found = folders("m x", booted("m", "b", MASTER), listed("b", 0, MASTER), *clues)
    assert found["m"] == BrokerFolder("b", "b", addresses=frozenset({MASTER}))
    slave = found["x"]
    assert (slave.broker_name, slave.place, slave.authoritative, slave.slave) == (
        "b",
        "brokers/x",
        False,
        True,
    )
    assert (slave.identified, slave.role_known) == (True, True)


def test_the_master_may_lie_in_a_folder_of_any_name_even_a_slave_s_in_one_of_the_broker_s() -> None:
    pieces = [booted("b", "b", SLAVE), booted("host7", "b", MASTER)]
    found = folders("b host7", *pieces, listed("b", 0, MASTER), listed("b", 1, SLAVE))
    assert (found["host7"].place, found["host7"].authoritative) == ("b", True)
    assert (found["b"].place, found["b"].authoritative, found["b"].slave) == (
        "brokers/b",
        False,
        True,
    )


def test_a_slave_alone_speaks_for_its_broker_with_a_consumer_table_of_its_own() -> None:
    found = folders("x", booted("x", "b", SLAVE), listed("b", 1, SLAVE))
    assert (found["x"].broker_name, found["x"].place, found["x"].authoritative) == (
        "b",
        "brokers/x",
        True,
    )


def test_the_newest_word_on_a_role_counts() -> None:
    pieces = [
        booted("x", "b", SLAVE),
        said("broker_follows", "x", 2_000, address=MASTER),
        booted("m", "b", MASTER),
        listed("b", 0, MASTER, 3_000),
        listed("b", 0, SLAVE, 5_000),
        listed("b", 1, MASTER, 5_000),
    ]
    found = folders("m x", *pieces)
    assert (found["x"].slave, found["x"].place) == (False, "b")
    assert (found["m"].slave, found["m"].place) == (True, "brokers/m")


def test_two_folders_of_one_process_are_one_place() -> None:
    found = folders("b old", booted("b", "b", MASTER), booted("old", "b", MASTER))
    assert [(f.place, f.authoritative, f.role_known) for f in found.values()] == [
        ("b", True, True)
    ] * 2


def test_a_local_address_that_several_brokers_have_is_of_none() -> None:
    """Connections through a proxy on each host."""
    pieces = [said("broker_local", folder, address="127.0.0.1:10911") for folder in ("m", "x")]
    found = folders("m x", booted("m", "b", MASTER), *pieces)
    assert (found["m"].broker_name, found["m"].addresses) == ("b", frozenset({MASTER}))
    assert (found["x"].broker_name, found["x"].identified) == ("x", False)


def test_what_is_not_given_stays_and_is_marked() -> None:
    alone = folders("x")["x"]
    assert (alone.broker_name, alone.place, alone.authoritative, alone.identified) == (
        "x",
        "x",
        True,
        False,
    )
    two = folders("b x", booted("b", "b", MASTER), booted("x", "b", SLAVE))
    assert (two["b"].authoritative, two["b"].role_known) == (True, True)
    assert (two["x"].place, two["x"].authoritative, two["x"].role_known) == (
        "brokers/x",
        False,
        False,
    )


def test_clues_of_one_kind_that_differ_give_way_to_the_next_kind() -> None:
    pieces = [
        said("broker_topic", "b", topic="rmq_sys_SYNC_BROKER_MEMBER_b"),
        said("broker_topic", "b", topic="rmq_sys_SYNC_BROKER_MEMBER_old"),
    ]
    assert folders("b", *pieces)["b"].identified is False
    assert folders("b", *pieces, expected="b")["b"] == BrokerFolder("b", "b")


def acts(name: str) -> Any:
    return said("route_broker", broker_name=name, addresses={"0": SLAVE}, acting=True)


def test_a_slave_that_acts_stays_a_slave_when_a_list_has_it_under_the_master_s_id() -> None:
    lists = [listed("b", 1, SLAVE), listed("b", 0, SLAVE, at_ms=5_000)]
    _, directory = broker_folders([], [*lists, acts("b")], [], 9_000)
    assert directory.slaves == {SLAVE}
    _, directory = broker_folders([], lists, [], 9_000)  # where none acts, it took the role over
    assert directory.masters == {SLAVE}
    role = said("broker_property", "x", name="brokerRole", value="SLAVE")
    own = said("broker_property", "x", name="enableSlaveActingMaster", value="true")
    boot = booted("x", "b", SLAVE)
    assert folders("x", boot, role, own, listed("b", 0, SLAVE, at_ms=5_000))["x"].slave
    assert not folders("x", boot, role, listed("b", 0, SLAVE, at_ms=5_000))["x"].slave
    line = said("min_broker", "x", broker_id=1, address=SLAVE)
    assert folders("x", boot, line, listed("b", 0, SLAVE, at_ms=5_000))["x"].slave


def test_of_two_masters_the_one_that_started_last_speaks_for_the_broker() -> None:
    """It was moved to another machine, and both machines' files were collected."""
    roles = [listed("b", 0, MASTER, 1_000), listed("b", 0, SLAVE, 5_000)]
    found = folders("b new", booted("b", "b", MASTER), booted("new", "b", SLAVE, 4_000), *roles)
    assert (found["new"].place, found["new"].authoritative) == ("b", True)
    old = found["b"]
    assert (old.place, old.slave, old.role_known, old.authoritative) == (
        "brokers/b",
        False,
        True,
        False,
    )
    assert [old.is_authoritative(at_ms) for at_ms in (3_999, 4_000, None)] == [True, False, False]
    assert found["new"].is_authoritative(None)


def made(folder: str, address: str, at_ms: int, *, slave: bool) -> Any:
    """The line of ReplicasManager."""
    return said("broker_role", folder, at_ms, address=address, slave=slave)


def test_dledger_elects_the_master_of_a_broker_whose_log_names_it() -> None:
    """``Begin to change to slave brokerName=b brokerId=1``; a controller's line has an address."""
    elected = said("broker_role", "x", 2_000, broker="b", slave=True)
    found = folders("x y z", booted("y", "b", MASTER), elected, booted("z", "c", "10.0.0.9:1"))
    assert [found[name].elected for name in "xyz"] == [True, True, False]
    found = folders("x", booted("x", "b", MASTER), made("x", MASTER, 2_000, slave=True))
    assert not found["x"].elected


def test_under_a_controller_each_folder_speaks_while_its_process_is_the_master() -> None:
    """It was killed, came back as slave and took over again; its settings say master throughout."""
    pieces = [
        said("broker_property", "x", 1_000, name="brokerRole", value="ASYNC_MASTER"),
        booted("x", "b", MASTER), booted("y", "b", SLAVE),
        made("x", MASTER, 2_000, slave=False), made("y", SLAVE, 3_000, slave=True),
        made("y", SLAVE, 5_000, slave=False),
        said("broker_property", "x", 6_000, name="brokerRole", value="ASYNC_MASTER"),
        made("x", MASTER, 7_000, slave=True), made("x", MASTER, 8_000, slave=False),
    ]  # fmt: skip
    found = folders("x y", *pieces)
    times = (500, 2_500, 5_500, 6_500, 7_500, 8_500)
    assert [found["x"].is_authoritative(at) for at in times] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert [found["y"].is_authoritative(at) for at in times] == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]
    assert (found["x"].place, found["x"].slave, found["x"].authoritative) == ("b", False, True)
    assert (found["y"].place, found["y"].slave, found["y"].authoritative) == (
        "brokers/y",
        True,
        False,
    )
    assert all(folder.by_turns for folder in found.values())
    alone = folders("y", *(piece for piece in pieces if piece.place == "y"))["y"]
    assert [alone.is_authoritative(at) for at in (500, 4_000, 6_000)] == [False, False, True]


@pytest.mark.parametrize(
    "switch",
    [
        said("broker_address", "namesrv", 5_000, broker="b", address=SLAVE),
        listed("b", 0, SLAVE, 5_000),
    ],
)
def test_a_slave_that_took_over_speaks_though_no_line_of_its_own_states_it(
    switch: Evidence,
) -> None:
    pieces = [
        booted("x", "b", MASTER), said("broker_property", "x", name="brokerId", value="0"),
        booted("y", "b", SLAVE), said("broker_property", "y", name="brokerId", value="2"),
    ]  # fmt: skip
    found = folders("x y", *pieces, switch)
    assert (found["y"].place, found["y"].authoritative) == ("b", True)
    assert [found["y"].is_authoritative(at) for at in (4_000, 6_000)] == [False, True]
    assert [found["x"].is_authoritative(at) for at in (4_000, 6_000)] == [True, False]
