"""How the queues of many groups are cut into shares and blocks, and who reaches which queue."""

from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.kernels.cell_holders import Block, Broadcast
from rebalance_core.kernels.ownership.client_reach import without
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods
from rebalance_core.model.events import Event
from tests.unit.kernels.fleets import assert_equal, build, kernel_tables, replay_rows
from tests.unit.replay.histories import event, history, join, leave, reaches, topic

# How the queues of many groups are cut into shares and blocks.


def prepared() -> PreparedGroups:
    """Two groups of 7 queues and 2 epochs, one of them BROADCASTING."""
    one = history(topic(0, 4), topic(0, 3, broker="b"), join(0, "x"), join(9, "y"))
    everyone = replace(one.settings, message_model="BROADCASTING")
    return build([one, replace(one, consumer_group="h", settings=everyone)], retry=False)


def places(given_prepared: PreparedGroups, part: tuple[int, int]) -> list[tuple[int, int, int]]:
    queues = Holdings(given_prepared, part).queues
    columns = (queues.group, queues.topic_broker, queues.queue_id)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_shares_are_consecutive_ranges_of_each_group(parts: int) -> None:
    given_prepared = prepared()
    whole = places(given_prepared, (0, 1))
    assert len(whole) == 14
    for group in (0, 1):
        shares = [
            [place for place in places(given_prepared, (i, parts)) if place[0] == group]
            for i in range(parts)
        ]
        assert [place for share in shares for place in share] == [
            place for place in whole if place[0] == group
        ]
        assert max(map(len, shares)) <= -(-7 // parts)


@pytest.mark.parametrize("part", [(0, 1), (0, 2), (1, 3)])
@pytest.mark.parametrize("cells_per_block", [1, 5, 1_000])
def test_every_queue_is_in_one_piece(part: tuple[int, int], cells_per_block: int) -> None:
    holdings = Holdings(prepared(), part, cells_per_block)
    queues, cells = holdings.queues, [piece.cells for piece in holdings.pieces()]
    assert sorted(n for some in cells for n in some.queue.tolist()) == list(
        range(len(queues.queue_id))
    )
    for some in cells:
        assert some.first.tolist() == list(range(0, len(some) + 1, 2))  # 2 epochs a queue
        assert some.segment.tolist() == sorted([*range(len(some.queue))] * 2)
    brokers = np.repeat(np.arange(4), np.diff(queues.first_of_broker))
    assert brokers.tolist() == queues.topic_broker.tolist()


def test_pieces_have_about_as_many_cells_as_asked() -> None:
    pieces = list(Holdings(prepared(), cells_per_block=6).pieces())
    divided = [len(piece.cells) for piece in pieces if isinstance(piece, Block)]
    assert divided == [6, 6, 2]  # 2 epochs a queue
    assert max(len(piece.cells) for piece in pieces) <= 6


def test_a_small_topic_broker_is_not_cut() -> None:
    brokers = [topic(0, 2, broker=f"b{number:02}") for number in range(12)]
    group = build([history(*brokers, join(0, "x"))], retry=False)
    assert [len(piece.cells) for piece in Holdings(group, cells_per_block=17).pieces()] == [16, 8]
    assert [len(piece.cells) for piece in Holdings(group, cells_per_block=15).pieces()] == [15, 9]


def test_a_piece_has_queues_of_one_kind() -> None:
    pieces = list(Holdings(prepared()).pieces())
    assert [type(piece) for piece in pieces] == [Block, Broadcast]
    first, second = (piece.cells.queue for piece in pieces)
    assert first.max() < second.min()


def test_a_lane_is_never_cut() -> None:
    pieces = list(Holdings(prepared(), cells_per_block=1).pieces())
    assert len(pieces) == 14
    assert all(piece.cells.first[-1] == len(piece.cells) for piece in pieces)


def test_a_span_lasts_while_a_member_stays() -> None:
    (piece,) = (p for p in Holdings(prepared()).pieces() if isinstance(p, Broadcast))
    spans = zip(piece.segment, piece.client, piece.end - piece.begin, strict=True)
    both = [(lane, client, 2 - client) for lane in range(7) for client in (0, 1)]
    assert [tuple(map(int, span)) for span in spans] == both  # x from the first epoch, y later
    assert piece.holders.tolist() == [1, 2] * 7
    assert not piece.unheld.any()


# What is left of periods; and who reaches which queue, in cases that random fleets seldom make.


def periods(*rows: tuple[int, int, int, int]) -> Periods:
    return Periods(*np.array(rows, np.int64).reshape(-1, 4).T)


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ((), [(0, 2, 9), (1, 0, 5)]),
        (((7, 1, 0, 20),), [(1, 0, 5)]),
        (((7, 1, 3, 4), (7, 1, 6, 7)), [(0, 2, 3), (0, 4, 6), (0, 7, 9), (1, 0, 5)]),
        (((7, 1, 0, 3), (7, 1, 8, 12)), [(0, 3, 8), (1, 0, 5)]),
        (((7, 2, 0, 9), (8, 1, 4, 9)), [(0, 2, 9), (1, 0, 4)]),
    ],
)
def test_what_is_left(
    others: tuple[tuple[int, int, int, int], ...], left: list[tuple[int, int, int]]
) -> None:
    """Row 0 is about major 7, row 1 about major 8, both about minor 1."""
    given = periods((0, 1, 2, 9), (1, 1, 0, 5))
    found = without(given, np.array([7, 8]), periods(*others))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == left


def pop(at_ms: int, share: int) -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})")


TWELVE = [join(0, f"c{number:02}", channel_id="1") for number in range(12)]


@pytest.mark.parametrize("share", range(-1, 13))
@pytest.mark.parametrize("queues", [1, 5, 12, 30])
def test_every_share_of_twelve_with_and_without_a_twin(share: int, queues: int) -> None:
    given = history(
        topic(0, queues), topic(0, 2, broker="b"), pop(0, share), *TWELVE,
        join(9_000, "c04", channel_id="2"), leave(20_000, "c11", channel_id="1"),
        event(30_000, "BROKER_DOWN", broker_name="b"), rebalance_mode="BROKER",
    )  # fmt: skip
    kernels, reasons = kernel_tables([given])
    assert set(reasons.values()) == {"REGULAR"}
    assert_equal(kernels, replay_rows([given]))
    everything = share <= 0 or share >= 11
    assert (reaches(kernels, 0)["c00"] == "a* b*") == everything
