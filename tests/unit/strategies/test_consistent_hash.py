from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.strategies import make_strategy
from rebalance_core.strategies.consistent_hash import build_ring, java_bytes
from tests.unit.strategies.groups import EIGHT, MEMBERS

HASH = make_strategy("CONSISTENT_HASH")
IDS = st.lists(st.text("abc@#10", min_size=1, max_size=6), min_size=2, max_size=8, unique=True)


@given(IDS.map(sorted), st.data())
def test_a_leaver_moves_only_its_own_queues(ids: list[str], data: st.DataObject) -> None:
    leaver = data.draw(st.sampled_from(ids))
    stay = [c for c in ids if c != leaver]
    before, after = HASH.allocate_all(EIGHT, ids), HASH.allocate_all(EIGHT, stay)
    for client_id in stay:
        assert set(before[client_id]) <= set(after[client_id])


@pytest.mark.parametrize("nodes", [0, 1, 7])
def test_a_ring_has_its_nodes_per_listed_id(nodes: int) -> None:
    points, owners = build_ring(("a", "b", "b"), nodes, "UTF-8")
    assert len(points) == len(owners) == 3 * nodes
    assert owners.count("b") == 2 * nodes


def test_only_4_9_hashes_in_the_platform_charset() -> None:
    params = {"platform_charset": "US-ASCII"}
    assert make_strategy("CONSISTENT_HASH", params, "5.3.3") == HASH
    assert make_strategy("CONSISTENT_HASH", params, "4.9.7") != HASH
    assert make_strategy("CONSISTENT_HASH", version="4.9.7") == HASH
    # In US-ASCII these two ids are the same bytes, so the later one wins every point.
    ascii_only = make_strategy("CONSISTENT_HASH", params, "4.9.7")
    assert ascii_only.allocate("é", EIGHT, ["é", "ü"]) == []


@pytest.mark.parametrize(
    ("text", "charset", "expected"),
    [
        ("é😀", "US-ASCII", b"??"),
        ("é", "ISO-8859-1", b"\xe9"),
        ("订€\u2295\u2641", "GBK", b"\xb6\xa9\xa2\xe3?\xa8\x92"),
        ("\ud83d", "UTF-8", b"?"),
    ],
)
def test_bytes_are_those_of_java(text: str, charset: str, expected: bytes) -> None:
    assert java_bytes(text, charset) == expected


def test_members_own_everything_together() -> None:
    shares = HASH.allocate_all(EIGHT, MEMBERS)
    assert sorted(chain.from_iterable(shares.values())) == sorted(EIGHT)
