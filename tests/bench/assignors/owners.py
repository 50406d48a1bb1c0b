"""The kernels on a point: owners, moves, balance, and what it takes to compute them."""

import ctypes
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import rebalance_core
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.cli.run.session import QUICK_SETTINGS
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.group_history import strategy_for
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.kernels.cell_holders import ABSENT, Block
from rebalance_core.kernels.encoded_groups import read_encoded_groups
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.group_kinds import REGULAR
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups, prepare_groups
from rebalance_core.kernels.segments import Ints
from tests.bench.assignors.points import Point

MALLOC = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_TOP_PAD_": -2, "MALLOC_MMAP_THRESHOLD_": -3}
"""Variables of the environment that glibc reads, and their numbers for its `mallopt`."""
NO_RETRY = SimulationOptions(include_retry_topics=False)
"""A group's retry topic is no topic of the grid."""


@dataclass(frozen=True)
class Answer:
    """What an assignor gave, and how long it took.

    Attributes:
        seconds: Of processor time, of the fastest run; None: not within the cap.
        moves: Queues that were held before, are still there, and have another owner.
        most: Queues of the member with most of them.
        fewest: Queues of the member with fewest.
        crc: CRC-32 of the owners.
    """

    seconds: float | None
    moves: int | None = None
    most: int | None = None
    fewest: int | None = None
    crc: int | None = None


@dataclass(frozen=True)
class Kernels:
    """The kernels on a point.

    Attributes:
        answer: The owners of every queue in both states, from prepared groups, as integers.
        pass_seconds: Events to the rows of all tables of the ledger, names and checks included.
        rows: Of the ledger.
    """

    answer: Answer
    pass_seconds: float
    rows: int


def keep_freed_memory() -> None:
    """As the session has Spark's workers keep it: a run takes the memory of the last one."""
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        for name, option in MALLOC.items():
            allocator.mallopt(option, int(QUICK_SETTINGS[f"spark.executorEnv.{name}"]))


def kernels_on(point: Point, enough: float) -> Kernels:
    """Time both, and sum up what came out; ``enough`` as of `fastest`."""
    events = point.events()
    tables = {"cluster_events": events}
    prepared = prepared_groups(events)
    assert (prepared.reason == REGULAR).all(), "the replay would take this group"
    seconds, _ = fastest(lambda: _entries(prepared), enough)
    pass_seconds, ledger = fastest(lambda: rebalance_core.simulate(tables, NO_RETRY), enough)
    assert ledger.rejected.num_rows == 0
    rows = sum(table.num_rows for table in ledger.values())
    before, after = _states(prepared)
    answer = _summed_up(point, before, after, seconds)
    changed = ledger.diffs.filter(pc.equal(ledger.diffs["action"], "ADD"))
    if point.before is not None:
        changed = changed.filter(pc.equal(changed["epoch"], 1))
        new = int(((before < 0) & (after >= 0)).sum())
        assert changed.num_rows == (answer.moves or 0) + new, "diffs tell of other moves"
    return Kernels(answer, pass_seconds, rows)


def prepared_groups(events: pa.Table) -> PreparedGroups:
    """Everything about the groups of some events but who owns what."""
    options = EngineOptions(include_retry_topics=False)
    grouped = fan_out(check_tables(input_tables_of({"cluster_events": events})).tables)
    encoded = read_encoded_groups(grouped.tables_of(0, len(grouped)), options, strategy_for)
    return prepare_groups(encoded)


def fastest(run: Callable[[], Any], enough: float) -> tuple[float, Any]:
    """Processor seconds of the fastest run, and what the last one gave.

    Args:
        run: What is timed, once at least.
        enough: Processor seconds after which there are no more runs.
    """
    best, total, given = float("inf"), 0.0, None
    while best == float("inf") or total < enough:
        begin = time.process_time()
        given = run()
        taken = time.process_time() - begin
        best, total = min(best, taken), total + taken
    return best, given


def _entries(prepared: PreparedGroups) -> list[Ints]:
    return [piece.entry for piece in Holdings(prepared).pieces() if isinstance(piece, Block)]


def _states(prepared: PreparedGroups) -> tuple[Ints, Ints]:
    """Number of the member that owns each queue, in the first epoch and the last; -2: no queue."""
    holdings = Holdings(prepared)
    last = int(np.diff(prepared.epochs.of_group).max()) - 1
    numbers = [int(name.rpartition("-")[2]) for name in prepared.encoded.names.clients.to_pylist()]
    of_client = np.array([*numbers, ABSENT])
    states = np.full((2, len(holdings.queues.group)), ABSENT)
    first = int(prepared.epochs.of_group[0])
    for piece in holdings.pieces():
        assert isinstance(piece, Block)
        client = prepared.roster.client(piece.entry)
        queue = piece.cells.queue[piece.cells.segment]
        for number, epoch in enumerate((first, first + last)):
            at = piece.cells.epoch == epoch
            states[number, queue[at]] = of_client[np.where(client[at] < 0, -1, client[at])]
    return states[0], states[1]


def _summed_up(point: Point, before: Ints, after: Ints, seconds: float) -> Answer:
    there = after[after >= 0]
    shares = np.bincount(there, minlength=point.members)[list(point.after.members)]
    kept = (before >= 0) & (after >= 0)
    moves = 0 if point.before is None else int((before != after)[kept].sum())
    crc = zlib.crc32(there.astype(">i4").tobytes())
    return Answer(seconds, moves, int(shares.max()), int(shares.min()), crc)
