"""How the queues of many groups are cut into shares and blocks, and who reaches which queue."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rebalance_core.kernels.cell_holders import Block, Broadcast
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queue_parts import WHOLE, Part, part_of, turns_of
from tests.unit.kernels.fleets import build
from tests.unit.replay.histories import history, join, topic


def prepared() -> PreparedGroups:
    """Two groups of 7 queues and 2 epochs, one of them BROADCASTING."""
    one = history(topic(0, 4), topic(0, 3, broker="b"), join(0, "x"), join(9, "y"))
    everyone = replace(one.settings, message_model="BROADCASTING")
    return build([one, replace(one, consumer_group="h", settings=everyone)], retry=False)


def places(given_prepared: PreparedGroups, part: Part) -> list[tuple[int, int, int]]:
    queues = Holdings(given_prepared, part).queues
    columns = (queues.group, queues.topic_broker, queues.queue_id)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_a_part_has_the_queues_that_its_number_names(parts: int, block: int) -> None:
    """Also where a part has several blocks of a broker's four queues, as of two parts of one."""
    given_prepared = prepared()
    whole = places(given_prepared, WHOLE)
    assert len(whole) == 14
    brokers = given_prepared.grid.brokers
    names = given_prepared.encoded.names
    turns = turns_of(
        names.topics.take(pa.array(brokers.topic)), names.brokers.take(pa.array(brokers.broker))
    )
    place = np.array(whole)
    expected = part_of(turns[place[:, 1]], place[:, 2], parts, block)
    for number in range(parts):
        found = places(given_prepared, Part(number, parts, block))
        assert found == [whole[n] for n in np.flatnonzero(expected == number)]


@pytest.mark.parametrize("part", [WHOLE, Part(0, 2, 2), Part(1, 3, 1)])
@pytest.mark.parametrize("cells_per_block", [1, 5, 1_000])
def test_every_queue_is_in_one_piece(part: Part, cells_per_block: int) -> None:
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
