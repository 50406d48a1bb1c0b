"""RocketMQ's strategies on single lists."""

from bisect import bisect_left
from itertools import chain
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import make_strategy, parse_strategy
from rebalance_core.strategies.averagely import Averagely, average_slice
from rebalance_core.strategies.consistent_hash import (
    UTF_8,
    Hashing,
    _owners,
    build_ring,
    java_bytes,
    ring_point,
)
from rebalance_core.strategies.machine_room import java_split
from rebalance_core.strategies.machine_room_nearby import RoomResolver
from rebalance_core.strategies.pop import allocate_for_pop
from rebalance_core.strategies.spi import is_java_blank
from tests.unit.strategies.groups import EIGHT, MEMBERS, queues, short

CHECKED = ["AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG"]


@pytest.mark.parametrize("name", CHECKED)
def test_the_first_empty_argument_is_named(name: str) -> None:
    strategy = make_strategy(name)
    for client_id, readable, message in [
        ("", [], "currentCID is empty"),
        ("c", [], "mqAll is null or mqAll empty"),
        ("c", EIGHT, "cidAll is null or cidAll empty"),
    ]:
        with pytest.raises(AllocationError) as raised:
            strategy.allocate(client_id, readable, [])
        assert raised.value.java_class == "IllegalArgumentException"
        assert raised.value.java_message == message


@pytest.mark.parametrize("name", CHECKED)
def test_an_unlisted_client_gets_nothing(name: str) -> None:
    assert make_strategy(name).allocate("absent", EIGHT, MEMBERS) == []


def test_config_checks_nothing_and_distinguishes_null_from_empty() -> None:
    unset = make_strategy("CONFIG")
    empty = make_strategy("CONFIG", {"config": []})
    assert (unset.allocate("", [], []), unset.returns_null) == ([], True)
    assert (empty.allocate("", [], []), empty.returns_null) == ([], False)


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \t\u3000", True), ("\xa0", False)])
def test_blank_as_java(text: str, blank: bool) -> None:
    assert is_java_blank(text) is blank


@pytest.mark.parametrize(
    ("queues", "sizes"),
    [
        (1, [1]),
        (1, [1, 0, 0]),
        (3, [1, 1, 1]),
        (5, [2, 2, 1]),
        (7, [3, 2, 2]),
        (16, [4, 3, 3, 3, 3]),
        (4, [1, 1, 1, 1, 0, 0, 0]),
    ],
)
def test_sizes(queues: int, sizes: list[int]) -> None:
    slices = [average_slice(i, queues, len(sizes)) for i in range(len(sizes))]
    assert [len(range(queues)[s]) for s in slices] == sizes


@given(st.integers(1, 300), st.integers(1, 60))
def test_slices_tile_the_queues_and_differ_by_at_most_one(queues: int, members: int) -> None:
    shares = [list(range(queues))[average_slice(i, queues, members)] for i in range(members)]
    sizes = [len(share) for share in shares]
    assert list(chain.from_iterable(shares)) == list(range(queues))
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_no_slice_reaches_past_the_queues() -> None:
    assert average_slice(4, 3, 5) == slice(7, 7)


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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("room1@", ["room1"]),
        ("@b", ["", "b"]),
        ("a@b@", ["a", "b"]),
        ("@", []),
        ("@@", []),
        ("a@b@c", ["a", "b", "c"]),
        ("plain", ["plain"]),
        ("", [""]),
    ],
)
def test_split_as_java(text: str, parts: list[str]) -> None:
    assert java_split(text, "@") == parts


def test_unset_rooms_fail_only_if_a_broker_has_a_room() -> None:
    unset = make_strategy("MACHINE_ROOM")
    assert unset.allocate(MEMBERS[0], EIGHT, MEMBERS) == []
    with pytest.raises(AllocationError) as raised:
        unset.allocate(MEMBERS[0], [*EIGHT, MessageQueue("T", "r@b", 0)], MEMBERS)
    assert (raised.value.java_class, raised.value.java_message) == ("NullPointerException", None)


def test_a_blank_client_id_is_empty_up_to_4_9_3() -> None:
    old, new = (make_strategy("MACHINE_ROOM", version=v) for v in ("4.9.3", "4.9.4"))
    assert new.allocate(" ", EIGHT, [" "]) == []
    with pytest.raises(AllocationError, match="currentCID is empty"):
        old.allocate(" ", EIGHT, [" "])


def test_the_empty_room_can_be_configured() -> None:
    queue = MessageQueue("T", "@b", 0)
    assert make_strategy("MACHINE_ROOM", {"consumer_idcs": [""]}).allocate("c", [queue], ["c"]) == [
        queue
    ]
    assert make_strategy("MACHINE_ROOM", {"consumer_idcs": []}).allocate("c", [queue], ["c"]) == []


def queue(broker: str, queue_id: int = 0) -> MessageQueue:
    return MessageQueue("T", broker, queue_id)


@pytest.mark.parametrize(
    ("brokers", "members", "message"),
    [
        (["r-a", "b"], ["c"], "Machine room is null for mq " + str(queue("b"))),
        (["-b"], ["r-c"], "Machine room is null for mq " + str(queue("-b"))),
        (["r-a"], ["c", "r-c"], "Machine room is null for consumer id c"),
    ],
)
def test_one_without_a_room_fails_the_group(
    brokers: list[str], members: list[str], message: str
) -> None:
    strategy = make_strategy("MACHINE_ROOM_NEARBY-AVG")
    for client_id in members:
        with pytest.raises(AllocationError) as raised:
            strategy.allocate(client_id, [queue(b) for b in brokers], members)
        assert raised.value.java_message == message


def test_longest_prefix_then_separator_then_no_room() -> None:
    rooms = RoomResolver(client_rooms=(("10.", "a"), ("10.1.", "b")), broker_rooms=(("x-", "c"),))
    assert [rooms.client_room(c) for c in ("10.2.3", "10.1.3", "r-1", "none", "-1")] == [
        *("a", "b", "r", None, "")
    ]
    assert rooms.broker_room(queue("x-1")) == "c"
    assert rooms.broker_room(queue("10.1")) is None


def test_rooms_without_members_come_in_java_order() -> None:
    # U+1F600 sorts before U+FF5E in UTF-16 only.
    brokers = ["own-1", "\uff5e-1", "😀-1"]
    strategy = make_strategy("MACHINE_ROOM_NEARBY-AVG")
    share = strategy.allocate("own-c", [queue(b) for b in brokers], ["own-c"])
    assert [q.broker_name for q in share] == ["own-1", "😀-1", "\uff5e-1"]


def test_an_inner_config_adds_its_list_for_each_room() -> None:
    strategy = parse_strategy("MACHINE_ROOM_NEARBY-CONFIG(queues=T/r-a/1)")
    rooms = [queue("r-a"), queue("s-a")]
    assert strategy.allocate("r-c", rooms, ["r-c"]) == [queue("r-a", 1)] * 2


def test_an_inner_config_without_list_fails_as_addall_of_null() -> None:
    with pytest.raises(AllocationError) as raised:
        make_strategy("MACHINE_ROOM_NEARBY-CONFIG").allocate("r-c", [queue("r-a")], ["r-c"])
    assert raised.value.java_class == "NullPointerException"


def test_nesting_changes_nothing() -> None:
    brokers, members = [queue(b, i) for b in ("r-a", "s-a") for i in range(4)], ["r-1", "r-2"]
    once, twice = (
        make_strategy(f"{prefix}-AVG", {"room_separator": "-"})
        for prefix in ("MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY")
    )
    assert once.allocate_all(brokers, members) == twice.allocate_all(brokers, members)


@pytest.mark.parametrize("share", [-1, 0, 2, 9])
def test_everybody_gets_every_broker_unchecked(share: int) -> None:
    answer = allocate_for_pop(Averagely(), "absent", EIGHT, MEMBERS, share)
    assert short(answer) == "a-1 a-1 a-1 a-1 b-1 b-1 b-1 b-1"
    assert allocate_for_pop(Averagely(), "", [], MEMBERS, share) == []


def test_own_share_and_that_of_the_next() -> None:
    answers = [allocate_for_pop(Averagely(), c, EIGHT, MEMBERS, 1) for c in MEMBERS]
    assert [short(a) for a in answers] == [
        "a0 a1 a2 a3 b0 b1",
        "a3 b0 b1 b2 b3",
        "b2 b3 a0 a1 a2",
    ]
    assert allocate_for_pop(Averagely(), "absent", EIGHT, MEMBERS, 1) == []


def test_more_members_than_queues_take_one_each() -> None:
    few = queues("a0 a1")
    pop = make_strategy("POP", {"inner": "AVG", "pop_share_queue_num": 1})
    assert [short(pop.allocate(c, few, MEMBERS)) for c in MEMBERS] == ["a0", "a1", "a0"]
    with pytest.raises(AllocationError, match="currentCID is empty"):
        pop.allocate(" ", few, [" ", *MEMBERS])


def few_points(key: str) -> int:
    """Return one of 40 points, some negative, so that nodes of different members coincide."""
    return crc32(key.encode()) % 40 * 10**17 - 2 * 10**18


@given(
    st.permutations([f"10.0.0.{n}@{n}" for n in range(1, 9)]),
    st.integers(1, 8),
    st.integers(1, 60),
    st.integers(1, 12),
    st.sampled_from([UTF_8, "US-ASCII", few_points]),
)
def test_the_nearest_nodes_of_members_give_the_owners_of_the_ring(
    names: list[str], count: int, queue_count: int, nodes: int, hashing: Hashing
) -> None:
    client_ids = tuple(names[:count])
    readable = tuple(MessageQueue("T", "broker-a", number) for number in range(queue_count))
    points, owners = build_ring(client_ids, nodes, hashing)
    on_ring = [
        owners[bisect_left(points, ring_point(str(queue), hashing)) % len(points)]
        for queue in readable
    ]
    assert list(_owners(readable, client_ids, nodes, hashing)) == on_ring
