"""The kernels and the replay make the same ledger of every recording."""

from dataclasses import replace
from functools import cache

import pytest

from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.kernels.queue_parts import Part
from rebalance_core.replay.history import GroupHistory
from tests.recordings.tables import RECORDINGS, derived_tables, histories, ingested_recording
from tests.unit.kernels.fleets import (
    GroupName,
    Tables,
    assert_equal,
    build,
    difference,
    fleet_table,
    kernel_rows,
    kernel_tables,
    name_of,
    replay_rows,
)

SHARING = ("grpc", "pop")
"""Recordings of groups that share topics, known from the operators' files."""
IRREGULAR: dict[GroupName, str] = {}
"""Groups of the recordings that the kernels leave to the replay, and why."""


@cache
def fleet() -> tuple[GroupHistory, ...]:
    """The groups of all recordings; names repeat, so each recording is a cluster of its own."""
    tables = {name: derived_tables(name) for name in RECORDINGS}
    tables |= {name: ingested_recording(name).tables for name in SHARING}
    return tuple(
        replace(group, cluster=name) for name, found in tables.items() for group in histories(found)
    )


@cache
def kernels() -> tuple[Tables, dict[GroupName, str]]:
    """All recordings in one prepared."""
    return kernel_tables(fleet())


@cache
def replay() -> Tables:
    return replay_rows(group for group in fleet() if name_of(group) not in IRREGULAR)


def test_the_kernels_take_all_but_these_groups() -> None:
    _, reasons = kernels()
    assert {name: why for name, why in reasons.items() if why != "REGULAR"} == IRREGULAR


@pytest.mark.parametrize("table", SIMULATED_TABLES)
def test_every_row_of_every_recording_is_equal(table: str) -> None:
    rows, _ = kernels()
    assert difference(table, rows[table], replay()[table]) == ""
    of_shared = table in ("pop_reach", "pop_metrics", "pop_starts")
    expected = {*SHARING} if of_shared else {*RECORDINGS, *SHARING}
    found = {row["cluster"] for row in rows[table]}
    assert {*SHARING} < found if table == "queue_states" else found == expected


@pytest.mark.parametrize("block", [1, 3, 64])
def test_any_share_of_the_queues_in_blocks_of_any_size_is_the_same(block: int) -> None:
    prepared = build(fleet(), rows=fleet_table(fleet(), order=1))
    cut = ("ownership", "diffs", "pull_starts", "pop_starts")
    parts = [Part(number, 3, block) for number in range(3)]
    shares = [kernel_rows(prepared, cut, part=part, cells_per_block=64) for part in parts]
    assert_equal({table: [row for s in shares for row in s[table]] for table in cut}, replay())
