"""The kernels hold to the replay: the same rows for random fleets, whatever way they are cut."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalance_core.kernels import cells, group_kinds
from rebalance_core.kernels.ownership.holdings import CELLS_PER_BLOCK
from rebalance_core.kernels.queue_parts import Part
from rebalance_core.kernels.starts.starts import RULES
from rebalance_core.replay.history import GroupHistory
from tests.unit.kernels.fleets import (
    assert_equal,
    build,
    fleet_table,
    kernel_rows,
    name_of,
    reasons_of,
    rejected_events,
    replay_rows,
    unknown_events,
)
from tests.unit.kernels.random_groups import GROUPS, TRAITS, fleets
from tests.unit.replay.test_random_histories import histories

EXAMPLES, EXAMPLES_OF_ALL_SHAPES = 120, 40
EXAMPLES_OF_A_TRAIT, EXAMPLES_OF_ALL_TRAITS = 8, 20
MANY_EXAMPLES = 10_000
CUT_BY_QUEUE = ("ownership", "diffs", "pull_starts", "pop_starts")
SHARED_TABLES = ("pop_reach", "pop_metrics", "pop_starts")
SHARING = ("pop", "own modes")
"""Traits of groups that share topics."""
HELD_BY_MANY = tuple(t for t in TRAITS if t not in (*SHARING, "many topics", "masters", "timers"))
"""Traits of groups in which several processes may hold a queue."""
LEAST_REGULAR = {"pop": 0.6, "own modes": 0.6}
DRAWN = (
    "Averagely",
    "AveragelyByCircle",
    "ConsistentHash",
    "MachineRoom",
    "MachineRoomNearby",
    "BROADCASTING",
)
"""By the random groups; own strategies have `test_asked`."""


@dataclass(frozen=True)
class Way:
    """How the kernels are asked; says nothing about the answer."""

    order: int
    """Of the rows; 0: as they come."""
    cells_per_block: int
    parts: int
    """Shares of every group's queues, one after the other."""
    sparse: bool
    """Defaults are not written down."""


WAYS = st.builds(
    Way,
    st.integers(0, 1_000),
    st.sampled_from((CELLS_PER_BLOCK, 50, 50, 1)),
    st.sampled_from((1, 1, 2, 3)),
    st.booleans(),
)


OVERRIDES = st.sampled_from((None,) * 7 + ("AVG_BY_CIRCLE",))


@dataclass
class Tally:
    """What the examples of a run were about."""

    groups: Counter[str] = field(default_factory=Counter)
    """By reason."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Regular groups by kind."""
    rows: Counter[str] = field(default_factory=Counter)
    """Compared, by table."""
    rules: Counter[str] = field(default_factory=Counter)
    """Of the starts compared."""
    masterless: int = 0
    """Rows of regular groups with queues of brokers that have no master."""
    shared: int = 0
    """Regular groups in which several processes may hold a queue."""


def compare(
    fleet: Sequence[GroupHistory], retry: bool, override: str | None, way: Way, tally: Tally
) -> None:
    """Every table of every group the kernels take is the replay's; the others have no rows."""
    table = fleet_table(fleet, way.order, sparse=way.sparse)
    prepared = build(fleet, retry=retry, override=override, rows=table)
    reasons = reasons_of(prepared)
    regular = [group for group in fleet if reasons[name_of(group)] == "REGULAR"]
    kernels = kernel_rows(prepared, cells_per_block=way.cells_per_block)
    replay = replay_rows(regular, retry=retry, override=override)
    assert_equal(kernels, replay)
    with mock.patch.object(cells, "MANY_QUEUES", 0):
        by_runs = kernel_rows(prepared, ("ownership",), cells_per_block=way.cells_per_block)
    assert by_runs["ownership"] == kernels["ownership"]
    if way.parts > 1:
        shares = [
            kernel_rows(
                prepared,
                CUT_BY_QUEUE,
                part=Part(i, way.parts, block=1 + way.order % 5),
                cells_per_block=way.cells_per_block,
            )
            for i in range(way.parts)
        ]
        assert_equal({t: [row for s in shares for row in s[t]] for t in CUT_BY_QUEUE}, replay)
    names = {name_of(group) for group in regular}
    unknown = unknown_events(prepared, table)
    assert [event for event in unknown if event[0] in names] == rejected_events(replay)
    tally.groups.update(reasons.values())
    groups, taken = prepared.encoded.groups, prepared.reason == group_kinds.REGULAR
    tally.kinds["BROADCASTING"] += int((groups.kind[taken] == group_kinds.BROADCAST).sum())
    for allocation in groups.allocation[taken & group_kinds.divides(groups.kind)].tolist():
        tally.kinds[type(prepared.encoded.strategies[allocation]).__name__] += 1
    tally.masterless += sum(row["masterless_queues"] > 0 for row in kernels["epochs"])
    tally.shared += int(prepared.shared.sum())
    tally.rows.update({table: len(rows) for table, rows in kernels.items()})
    tally.rules.update(str(row["rule"]) for row in kernels["pull_starts"])


def run(examples: int, seed: int, arguments: Sequence[Any], check: Callable[..., None]) -> None:
    """Call ``check`` with random arguments; the seed alone decides which."""
    quiet = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    quiet(hypothesis.seed(seed)(given(*arguments)(check)))()


def equal_in(examples: int, seed: int, traits: Sequence[str] = ()) -> Tally:
    tally = Tally()

    def check(fleet: tuple[GroupHistory, ...], retry: bool, override: str | None, way: Way) -> None:
        compare(fleet, retry, override, way, tally)

    run(examples, seed, (fleets(traits), st.booleans(), OVERRIDES, WAYS), check)
    return tally


def test_random_fleets_give_the_rows_of_the_replay(seed: int) -> None:
    tally = equal_in(EXAMPLES, seed)
    # the generator makes what the kernels take, of every kind, and rows of every table
    assert tally.groups["REGULAR"] > 0.8 * tally.groups.total()
    assert min(tally.kinds[kind] for kind in DRAWN) > 2
    assert (
        min(count for table, count in tally.rows.items() if table not in SHARED_TABLES) > EXAMPLES
    )
    assert len(tally.rules) > 6


@pytest.mark.parametrize("trait", TRAITS)
def test_a_trait_alone_gives_the_rows_of_the_replay(seed: int, trait: str) -> None:
    tally = equal_in(EXAMPLES_OF_A_TRAIT, seed, (trait,))
    # topics without a queue are common here, and members that keep what they shared are replayed
    assert tally.groups["REGULAR"] > LEAST_REGULAR.get(trait, 0.8) * tally.groups.total()
    some = tally.groups.total() // 8
    assert trait not in HELD_BY_MANY or tally.shared
    assert trait != "masters" or tally.masterless >= some
    assert trait not in SHARING or min(tally.rows[table] for table in SHARED_TABLES) >= some


def test_all_traits_together_give_the_rows_of_the_replay(seed: int) -> None:
    tally = equal_in(EXAMPLES_OF_ALL_TRAITS, seed, TRAITS)
    assert tally.groups["REGULAR"] > 0.6 * tally.groups.total()
    assert tally.shared > 0.4 * tally.groups["REGULAR"]
    assert len(tally.rules) > 6


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_ten_thousand_fleets_of_all_traits_give_the_rows_of_the_replay(seed: int) -> None:
    tally = equal_in(MANY_EXAMPLES, seed, TRAITS)
    print(f"seed {seed}: 0 differences in {MANY_EXAMPLES} examples\n{tally}")
    assert tally.shared > 0.4 * tally.groups["REGULAR"]


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_ten_thousand_random_fleets_give_the_rows_of_the_replay(seed: int) -> None:
    tally = equal_in(MANY_EXAMPLES, seed)
    print(f"seed {seed}: 0 differences in {MANY_EXAMPLES} examples\n{tally}")
    assert tally.groups["REGULAR"] > 0.9 * tally.groups.total()
    assert min(tally.kinds[kind] for kind in DRAWN) > MANY_EXAMPLES / 20
    assert set(tally.rules) == {*RULES, "None"}


def test_groups_of_any_shape_are_equal_or_refused_with_a_reason(seed: int) -> None:
    tally = Tally()

    def check(drawn: list[GroupHistory], retry: bool, override: str | None, way: Way) -> None:
        given_commits = drawn[0].committed_offsets is not None
        fleet = [
            replace(
                group,
                cluster=cluster,
                consumer_group=name,
                queue_offsets=group.queue_offsets or (),
                committed_offsets=(group.committed_offsets or ()) if given_commits else None,
            )
            for group, (cluster, name) in zip(drawn, GROUPS, strict=False)
        ]
        compare(fleet, retry, override, way, tally)

    any_fleet = st.lists(histories(), min_size=1, max_size=4)
    run(EXAMPLES_OF_ALL_SHAPES, seed, (any_fleet, st.booleans(), OVERRIDES, WAYS), check)
    refused = tally.groups.total() - tally.groups["REGULAR"]
    assert min(refused, tally.groups["REGULAR"]) > 10
