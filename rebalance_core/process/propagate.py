"""Simulated time over a whole input, in this process or in a pool of processes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import ArrowTables, input_tables_of
from rebalance_core.checks.row_checks import Checked, Rejections, check_tables
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.clockwork.measured import Measured
from rebalance_core.clockwork.propagation_parts import propagation
from rebalance_core.clockwork.totals import propagation_totals
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import (
    HANDOVERS,
    PROPAGATION,
    PROPAGATION_TABLES,
    PROPAGATION_TOTALS,
)
from rebalance_core.engine.ledger_pass import HistoriesWithMates
from rebalance_core.engine.mates import Group
from rebalance_core.engine.options import (
    RowForecast,
    engine_options,
    like_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.propagation import (
    PropagationFacts,
    PropagationOptions,
    Survey,
    played,
    rejected_rows,
    survey_facts,
    surveyed,
)
from rebalance_core.engine.table_writer import TableWriters, Written
from rebalance_core.process.simulate import refuse_no_group_of
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location
from rebalance_core.strategies import custom
from rebalance_core.strategies.registry import install_plugins

# The groups of checked tables, each with its history.


@dataclass(frozen=True, eq=False)
class GroupHistories:
    """Histories by the number of the group; each is made when it is asked for.

    Attributes:
        histories: Of the groups wanted, and of those that share client instances with them.
        wanted: The groups wanted.
    """

    histories: HistoriesWithMates
    wanted: Sequence[Group]

    @classmethod
    def of(cls, checked: Checked, options: PropagationOptions) -> GroupHistories:
        """The groups wanted that have consumer events."""
        pattern = None if options.group is None else like_pattern(options.group)
        engine = engine_options(checked.tables)
        histories = HistoriesWithMates.of_tables(checked.tables, engine, pattern)
        wanted = [
            group
            for group in histories.numbers
            if pattern is None or pc.match_like(group[1], pattern).as_py()
        ]
        return cls(histories, wanted)

    def __len__(self) -> int:
        return len(self.wanted)

    def __iter__(self) -> Iterator[GroupHistory]:
        return map(self.history, range(len(self)))

    def history(self, number: int) -> GroupHistory:
        """The history of one group, with those of the groups that share its client instances."""
        return self.histories.of(self.wanted[number])


# Workers that end with the process that started them, however that ended.


def end_with_parent() -> None:
    """Make this worker end when its parent is gone.

    A parent that is killed (SIGKILL, out of memory) tells its pool nothing: workers would wait for
    pieces for ever, and hold on to its standard output, so that whoever reads that waits too.
    """
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _begin_worker(plugins: dict[tuple[str, str], custom.Plugin]) -> None:
    end_with_parent()
    install_plugins(plugins)


def _follow(parent: int) -> None:
    wait_for([parent])
    os._exit(1)


# Pieces of work one after the other, or in several processes; results in order either way.

WAITING_PER_PROCESS = 3
"""Pieces handed out ahead of each process: none is idle, and few histories are in memory."""
HELD_PER_PROCESS = 50
"""Pieces that a slow one may keep waiting to be handed on, played or not."""


@dataclass(frozen=True)
class GroupFutures:
    """Some futures of a group.

    Attributes:
        group: Its number.
        history: Of the group.
        seeds: Which futures.
        last: No further piece of this group comes.
    """

    group: int
    history: GroupHistory
    seeds: range
    last: bool


def play_futures(piece: GroupFutures, options: PropagationOptions) -> list[Measured]:
    """All slices of a piece; what a worker runs."""
    return list(played(piece.history, options, piece.seeds))


def played_futures(
    pieces: Iterable[GroupFutures], options: PropagationOptions, processes: int
) -> Iterator[tuple[GroupFutures, list[Measured]]]:
    """Each piece with what it came to, in order.

    Args:
        pieces: Made one by one, as they are handed out.
        options: Of the simulation.
        processes: 1 plays them here.
    """
    if processes == 1:
        for piece in pieces:
            yield piece, play_futures(piece, options)
        return
    others = set(active_children())
    # Not forked: pyarrow has threads by now.
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("spawn"),
        initializer=_begin_worker,
        initargs=(custom.plugins(),),
    ) as pool:
        try:
            yield from _in_order(pool, pieces, options, processes)
        except BaseException:
            # Nobody wants what they are at; the pool would wait for it.
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _in_order(
    pool: ProcessPoolExecutor,
    pieces: Iterable[GroupFutures],
    options: PropagationOptions,
    processes: int,
) -> Iterator[tuple[GroupFutures, list[Measured]]]:
    """Each piece once it and all before it are played; later ones are played meanwhile."""
    held: deque[tuple[GroupFutures, Future[list[Measured]]]] = deque()
    for piece in pieces:
        held.append((piece, pool.submit(play_futures, piece, options)))
        while True:
            while held and held[0][1].done():
                done, result = held.popleft()
                yield done, result.result()
            playing = [future for _, future in held if not future.done()]
            if (
                len(playing) < WAITING_PER_PROCESS * processes
                and len(held) < HELD_PER_PROCESS * processes
            ):
                break
            wait(playing, return_when=FIRST_COMPLETED)
    while held:
        done, result = held.popleft()
        yield done, result.result()


# Simulated time over a whole input, in this process or in several.

Progress = Callable[[int, int, str | None], object]
WRITTEN = (*PROPAGATION_TABLES, REJECTED.name)


def propagate(
    inputs: ArrowTables | Mapping[str, pa.Table],
    options: PropagationOptions | None = None,
    *,
    processes: int = 1,
) -> dict[str, pa.Table]:
    """The tables of `PROPAGATION_TABLES` and ``rejected`` of an input, in memory.

    Cost: linear in changes, members and seeds. The rows depend on the input and the options alone.

    Args:
        inputs: As of `process.simulate.simulate`.
        options: What is assumed, and how many futures.
        processes: More than 1 starts so many others; a script then needs a main guard.

    Raises:
        InputRefused: No event, or an input lacks columns.
    """
    options = options or PropagationOptions()
    if not isinstance(inputs, ArrowTables):
        inputs = input_tables_of(inputs)
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums)
    refuse_bad_rows(checked.counts, BadRowLimits(max_bad_share=1.0))
    refuse_no_group_of(checked, options.group)
    looked = _survey(checked, options)
    found: dict[str, list[pa.Table]] = {name: [] for name in PROPAGATION_TABLES}
    for name, rows in _rows(looked, options, processes, None):
        found[name].append(rows)
    tables = {
        name: pa.concat_tables([PROPAGATION_TABLES[name].arrow_schema().empty_table(), *parts])
        for name, parts in found.items()
    }
    return tables | {REJECTED.name: looked.rejected}


def propagate_and_write(
    inputs: ArrowTables,
    output: Location,
    options: PropagationOptions,
    limits: BadRowLimits,
    *,
    processes: int | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> Written:
    """The same, written. Memory: the input and some pieces of work.

    Args:
        inputs: The input tables.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        options: As of `propagate`.
        limits: How many rows may be bad; those that name an unknown process count.
        processes: As of `propagate`; None: one a core, if there is work for more than one.
        before_writing: Called before the first table is written; nothing is simulated before.
        warn: Gets a text for whatever was passed over.
        progress: Told how many pieces of work are done, of how many, and whose is waited for.

    Raises:
        InputRefused: The input has no event or too many bad rows.
        OutputExists: A table is in the folder already.
    """
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    refuse_bad_rows(checked.counts, limits, checked.complaints)
    refuse_no_group_of(checked, options.group)
    looked = _survey(checked, options)
    refuse_rejected(checked.counts, looked.rejections, limits)
    if before_writing is not None:
        before_writing()
    if processes is None:
        processes = min(usable_cores(), max(1, looked.pieces(options)))
    facts = PropagationFacts()
    with TableWriters(output, WRITTEN) as writers:
        writers.write_tables({REJECTED.name: looked.rejected})
        for name, rows in _rows(looked, options, processes, progress):
            if name == PROPAGATION.name:
                facts.add(rows)
            writers.write_tables({name: rows})
    return Written(
        tables=writers.written(),
        facts=survey_facts(looked.surveys) | facts.totals(),
        rejected=looked.rejections.codes,
        inputs=checked.counts,
    )


def propagation_forecast(
    inputs: ArrowTables,
    options: PropagationOptions,
    limits: BadRowLimits,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, dict[str, Any]]:
    """Return how `propagate_and_write` would end for the rows of its input, and how much there is
    to do.

    Plays and writes nothing; `survey_facts` are empty where the rows are refused.
    """
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    surveys: list[Survey] = []

    def rejected() -> Rejections:
        looked = _survey(checked, options)
        surveys.extend(looked.surveys)
        return looked.rejections

    forecast = row_forecast(
        checked.counts,
        checked.rejections,
        limits,
        lambda: refuse_no_group_of(checked, options.group),
        rejected,
    )
    return forecast, {} if forecast.refusal is not None else survey_facts(surveys)


def usable_cores() -> int:
    """Return how many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class _SurveyedGroups:
    """The groups of a checked input."""

    groups: GroupHistories
    surveys: Sequence[Survey]
    rejected: pa.Table

    @cached_property
    def rejections(self) -> Rejections:
        return Rejections.of(self.rejected)

    def pieces(self, options: PropagationOptions) -> int:
        return sum(survey.parts(options) for survey in self.surveys if survey.changes)


def _survey(checked: Checked, options: PropagationOptions) -> _SurveyedGroups:
    """Look every group over; nothing is simulated."""
    groups = GroupHistories.of(checked, options)
    surveys = [surveyed(history, options) for history in groups]
    return _SurveyedGroups(
        groups, surveys, pa.concat_tables([checked.rejected, rejected_rows(surveys)])
    )


def _rows(
    looked: _SurveyedGroups, options: PropagationOptions, processes: int, progress: Progress | None
) -> Iterator[tuple[str, pa.Table]]:
    """Rows of all tables, as groups are done."""
    total, partials, totals = looked.pieces(options), list[pa.Table](), list[pa.Table]()
    waited = deque[GroupFutures]()

    def tell(done: int) -> None:
        if progress is not None:
            histories = (piece.history for piece in waited)
            names = (f"{one.cluster}/{one.consumer_group}" for one in histories)
            progress(done, total, next(names, None))

    def handed_out() -> Iterator[GroupFutures]:
        for number, piece in enumerate(_all_futures(looked, options)):
            waited.append(piece)
            if len(waited) == 1:
                tell(number)
            yield piece

    results = played_futures(handed_out(), options, processes)
    for done, (piece, parts) in enumerate(results, start=1):
        waited.popleft()
        for part in parts:
            yield HANDOVERS.name, part.handovers
            partials.append(part.partial)
            totals.append(part.totals)
        if piece.last:
            yield PROPAGATION.name, propagation(partials)
            yield PROPAGATION_TOTALS.name, propagation_totals(totals)
            partials, totals = [], []
        tell(done)


def _all_futures(looked: _SurveyedGroups, options: PropagationOptions) -> Iterator[GroupFutures]:
    for group, survey in enumerate(looked.surveys):
        if not survey.changes:
            continue
        history, parts = looked.groups.history(group), survey.parts(options)
        for part in range(parts):
            yield GroupFutures(group, history, options.part(part, parts), last=part == parts - 1)
