"""Every kernel divides a group's queues as its plain strategy does, epoch after epoch."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import parse_strategy, registry
from rebalance_core.strategies.averagely import average_index, average_slice
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.machine_room import tail_index
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby
from tests.unit.kernels.divided_owners import OWNERS_GROUPS, STRATEGIES, Owners, OwnersDivided
from tests.unit.kernels.fleets import build, kernel_rows, reasons_of
from tests.unit.kernels.hypothesis_settings import RANDOM


def owners(groups: Sequence[OwnersDivided], cells_per_block: int) -> dict[str, list[Owners]]:
    """By group and epoch: the owners that the kernels say."""
    prepared = build(
        [group.history(f"g{number}") for number, group in enumerate(groups)], retry=False
    )
    assert set(reasons_of(prepared).values()) <= {"REGULAR"}
    found: dict[str, list[Owners]] = {
        f"g{number}": [{} for _ in group.members] for number, group in enumerate(groups)
    }
    rows = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)["ownership"]
    for row in rows:
        epochs = found[row["consumer_group"]]
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        for owned in epochs[row["from_epoch"] : row["to_epoch"]]:
            assert queue not in owned
            owned[queue] = () if row["client_id"] is None else (row["client_id"],)
    return found


def test_every_strategy_with_a_form_is_drawn() -> None:
    """CONFIG divides nothing: `test_equality` has its lists."""
    drawn = {type(parse_strategy(text)) for text in STRATEGIES}
    formed = {one for one in (*registry.STRATEGIES, MachineRoomNearby) if "vectorised" in vars(one)}
    assert drawn == formed - {Config}


@settings(RANDOM, max_examples=40)
@given(st.lists(OWNERS_GROUPS, min_size=1, max_size=4), st.sampled_from((30, 1 << 17)))
def test_owners_are_those_of_the_plain_strategy(
    groups: list[OwnersDivided], cells_per_block: int
) -> None:
    found = owners(groups, cells_per_block)
    for number, group in enumerate(groups):
        assert found[f"g{number}"] == group.expected()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_owners_of_a_group_that_grows_shrinks_and_changes_altogether(strategy: str) -> None:
    sets = ("c0 c1 c2", "c0 c1 c2 c3 c11 😀", "c1 c11", "c4 c5 c6 c7 c8 c9 c10 \uff5e", "c4 c0")
    group = OwnersDivided(
        strategy, (5, 3, 0, 4, 1, 2, 7, 1), tuple(frozenset(s.split()) for s in sets)
    )
    assert owners([group], 40)["g0"] == group.expected()


def test_average_index_inverts_the_slices_of_avg() -> None:
    for queues, members in itertools.product(range(1, 15), range(1, 17)):
        shares = [range(queues)[average_slice(i, queues, members)] for i in range(members)]
        slices = [index for index, share in enumerate(shares) for _ in share]
        every = np.full(queues, queues), np.full(queues, members)
        assert average_index(np.arange(queues), *every).tolist() == slices
        assert [average_index(place, queues, members) for place in range(queues)] == slices


def test_tail_index_inverts_the_slices_of_machine_room() -> None:
    for queues, members in itertools.product(range(1, 15), range(1, 17)):
        rooms = [MessageQueue("t", "r@a", number) for number in range(queues)]
        ids = [f"c{number:02}" for number in range(members)]
        shares = parse_strategy("MACHINE_ROOM(consumer_idcs=r)").allocate_all(rooms, ids)
        owners = [next(i for i, c in enumerate(ids) if queue in shares[c]) for queue in rooms]
        every = np.full(queues, queues), np.full(queues, members)
        assert tail_index(np.arange(queues), *every).tolist() == owners
        assert [tail_index(place, queues, members) for place in range(queues)] == owners
