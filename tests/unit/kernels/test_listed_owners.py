"""Owners by place of the sorted list are those of the plain strategy, and those of the cells."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_core.kernels import cells
from rebalance_core.kernels.ownership import strategy_kernels
from rebalance_core.kernels.ownership.by_place import OwnersByPlace
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.model.queue import sort_queues
from rebalance_core.strategies import allocate_group, parse_strategy
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule
from tests.unit.kernels.divided_owners import OWNERS_GROUPS, OwnersDivided
from tests.unit.kernels.fleets import build, kernel_rows
from tests.unit.kernels.hypothesis_settings import RANDOM

AVERAGING = ("AVG", "AVG_BY_CIRCLE")
BY_NUMBERS = OWNERS_GROUPS.flatmap(
    lambda group: st.sampled_from(AVERAGING).map(lambda name: replace(group, strategy=name))
)
Listed = dict[tuple[str, int], list[str]]
"""By group and epoch: the owner at each place of its only topic."""


def built(groups: Sequence[OwnersDivided]) -> PreparedGroups:
    return build([group.history(f"g{n}") for n, group in enumerate(groups)], retry=False)


def rule_of(strategy: str) -> PlaceRule:
    form = parse_strategy(strategy).vectorised()
    assert isinstance(form, ByPlace)
    return form.rule


def listed(prepared: PreparedGroups, strategy: str) -> Listed:
    """What the answers of one strategy say."""
    is_it = [str(one) == strategy for one in prepared.encoded.strategies]
    answers = OwnersByPlace(
        rule_of(strategy),
        np.array([*is_it, False], np.bool_)[prepared.encoded.groups.allocation],
        prepared.epochs,
        prepared.grid,
        prepared.roster,
    )
    names, roster = prepared.encoded.names, prepared.roster
    sizes = np.diff(prepared.grid.topic_first)
    of = np.repeat(prepared.grid.topics.group, sizes)
    epoch = np.arange(len(of)) - np.repeat(prepared.grid.topic_first[:-1], sizes)
    found: Listed = {}
    for cell, answer in zip(answers.topic_cell.tolist(), answers.answer.tolist(), strict=True):
        index = answers.index[answers.first[answer] : answers.first[answer + 1]]
        entries = roster.first[prepared.epochs.of_group[of[cell]] + epoch[cell]] + index
        owners = names.clients.take(pa.array(roster.client(entries))).to_pylist()
        found[names.groups[of[cell]].as_py(), int(epoch[cell])] = owners
    return found


def expected(groups: Sequence[OwnersDivided], strategy: str) -> Listed:
    made: Listed = {}
    for number, group in enumerate(groups):
        if group.strategy != strategy:
            continue
        for epoch, members in enumerate(group.members):
            owners = allocate_group(parse_strategy(strategy), group.readable(), members)
            made[f"g{number}", epoch] = [owners[queue][0] for queue in sort_queues(owners)]
    return made


@settings(RANDOM, max_examples=60)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5))
def test_every_place_has_the_owner_that_the_plain_strategy_gives(
    groups: list[OwnersDivided],
) -> None:
    prepared = built(groups)
    for strategy in AVERAGING:
        assert listed(prepared, strategy) == expected(groups, strategy)


@settings(RANDOM, max_examples=30)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5))
def test_cells_are_the_same_looked_up_by_place_and_computed(groups: list[OwnersDivided]) -> None:
    looked_up = kernel_rows(built(groups), ("ownership",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy_kernels, "MOST_LISTED", -1)
        assert kernel_rows(built(groups), ("ownership",)) == looked_up


@settings(RANDOM, max_examples=30)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5), st.sampled_from((1, 9, 1_000)))
def test_cells_are_the_same_looked_up_one_by_one_and_by_stretch(
    groups: list[OwnersDivided], cells_per_block: int
) -> None:
    prepared = built(groups)
    found = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MANY_QUEUES", 0)
        again = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)
    assert again == found


def test_topics_of_any_group_with_equal_numbers_have_one_answer() -> None:
    clients = tuple(f"c{number}" for number in range(5))
    pairs = [((5, 3), 2), ((4, 4), 2), ((8,), 3), ((8,), 2)]
    groups = [OwnersDivided("AVG", queues, (frozenset(clients[:n]),)) for queues, n in pairs]
    prepared = built(groups)
    everyone = np.ones(len(groups), np.bool_)
    answers = OwnersByPlace(
        rule_of("AVG"), everyone, prepared.epochs, prepared.grid, prepared.roster
    )
    assert answers.answer.tolist() == [0, 0, 1, 0]
    assert answers.index.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 2, 2]


def test_nothing_to_divide_has_no_answer() -> None:
    without_members = built([OwnersDivided("AVG", (0,), (frozenset({"c0"}),))])
    assert listed(without_members, "AVG") == {}
