"""Client ids in parts, and that both kinds of plans make ids of these parts."""

from ipaddress import IPv4Address

import pytest

from rebalance_core.planning.client_ids import (
    address_of,
    addresses_from,
    addresses_of_network,
    host_of,
    new_client_ids,
    read_made_id,
)
from rebalance_core.planning.scenario.group_life import newcomer, restarted
from rebalance_core.synthetic.draws import Draws


def test_made_up_ids_follow_the_addresses_that_are_there() -> None:
    made = new_client_ids(3, ["10.0.0.253@1#1", "host@2#2"])
    assert [client_id.partition("@")[0] for client_id in made] == [
        "10.0.0.254",
        "10.0.1.1",
        "10.0.1.2",
    ]
    assert made == new_client_ids(3, ["host@2#2", "10.0.0.253@1#1"])


IDS = ("10.0.0.9@711#81", "10.0.0.9@1#81@unit", "pod-a@711#81", "a@b@711#81")


@pytest.mark.parametrize("client_id", IDS)
def test_parts_make_the_id_again(client_id: str) -> None:
    assert str(read_made_id(client_id)) == client_id


@pytest.mark.parametrize("client_id", ["10.0.0.9@app", "10.0.0.9", "", "x@711#", "x@711#81@"])
def test_an_id_of_another_form_has_no_parts(client_id: str) -> None:
    assert read_made_id(client_id) is None


@pytest.mark.parametrize("client_id", IDS)
def test_whatever_a_plan_makes_has_the_parts(client_id: str) -> None:
    key = (client_id, "10.0.0.9:40000")
    old = read_made_id(client_id)
    assert old is not None
    [added] = new_client_ids(1, [client_id])
    joined, _ = newcomer(key, 5, {key}, 1, Draws(1, "test"))
    again, _ = restarted(key, 1, 5, {key}, Draws(1, "test"))
    for made in (added, joined, again):
        assert read_made_id(made) is not None
        assert made != client_id
        if made != added:
            assert made.endswith(old.ending)
    assert again.startswith(f"{old.host}@")


def test_hosts() -> None:
    assert [host_of(client_id) for client_id in IDS] == ["10.0.0.9", "10.0.0.9", "pod-a", "a"]
    assert address_of("10.0.0.9") == IPv4Address("10.0.0.9")
    assert [address_of(host) for host in ("pod-a", "10.0.0", "10.0.0.256", "")] == [None] * 4


def test_no_host_ends_in_0_or_255() -> None:
    hosts = addresses_from(IPv4Address("10.0.0.253"))
    assert [next(hosts) for _ in range(3)] == ["10.0.0.253", "10.0.0.254", "10.0.1.1"]
    near = addresses_of_network(IPv4Address("255.255.255.9"))
    assert (len(near), near[0], near[-1]) == (254, "255.255.255.1", "255.255.255.254")
    beside = addresses_of_network(IPv4Address("10.0.7.9"), 3)
    assert (len(beside), beside[0], beside[-1]) == (254, "10.0.3.1", "10.0.3.254")
