"""A whole simulation: check the input, replay it, write the ledger, sum it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import (
    BadRowLimits,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.simulate import SimulationOptions, simulate_checked
from rebalance_core.spark.engine.summary import (
    WORST_GROUPS,
    ledger_facts,
    rejected_per_code,
    replay_reasons,
)
from rebalance_core.spark.engine.work_units import task_count
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.row_counts import check_rows, complaints
from rebalance_core.spark.tables.write import write_table


@dataclass(frozen=True)
class LedgerConfig:
    """How a ledger is written.

    Attributes:
        bad_rows: How bad the input may be.
        private: A refusal shows no row: rows may name clients.
        worst_groups: How many groups the facts list.
    """

    bad_rows: BadRowLimits = field(default_factory=BadRowLimits)
    private: bool = False
    worst_groups: int = WORST_GROUPS


@dataclass(frozen=True, eq=False)
class LedgerWritten:
    """What a simulation wrote. A context manager: it keeps the checked input until closed.

    Attributes:
        tables: Rows and digest of every table written.
        facts: What a summary says of them (`ledger_facts`).
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table.
        replay_reasons: How many groups the replay took instead of the kernels, by reason.
        checked: The input; its ``tables`` are the rows that were used.
    """

    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replay_reasons: Mapping[str, int]
    checked: Quarantined

    def close(self) -> None:
        """Release the checked input."""
        self.checked.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def simulate_and_write(
    session: SparkSession,
    inputs: InputTables,
    output: str,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    more_rejected: DataFrame | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> LedgerWritten:
    """Simulate, and write the ledger.

    Args:
        session: Any session; its default parallelism is asked for.
        inputs: The input tables.
        output: Path or URI of a folder, which gets the tables of the ledger; none of them may be
            there.
        options: What to simulate; ``partitions`` None: as many as the rows need.
        config: See `LedgerConfig`.
        more_rejected: Rows of ``rejected`` that came up before.
        before_writing: Called once few enough rows are bad, before the first table is written.
        warn: Gets a text for whatever was passed over.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once ``rejected`` is written.
        OutputExists: A table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    checked, counts = check_rows(inputs, options.max_queue_nums, warn)

    def shown(rejected: DataFrame) -> Callable[[], list[Complaint]]:
        return lambda: [] if config.private else complaints(rejected)

    folder = output.rstrip("/")
    with ExitStack() as kept:
        kept.callback(checked.close)
        refuse_bad_rows(counts, config.bad_rows, shown(checked.rejected))
        ledger = kept.enter_context(simulate_checked(checked, sized(options, counts, session)))
        frames = ledger.frames()
        if more_rejected is not None:
            frames["rejected"] = frames["rejected"].unionByName(more_rejected)
        if before_writing is not None:
            before_writing()
        written = {name: write_table(frame, folder, name) for name, frame in frames.items()}
        reasons = replay_reasons(ledger.replayed)
        ledger.close()
        back = {name: session.read.parquet(f"{folder}/{name}") for name in written}
        rejected = rejected_per_code(back["rejected"])
        with_unknown = with_unknown_members(counts, rejected.get(UNKNOWN_MEMBER, 0))
        refuse_bad_rows(with_unknown, config.bad_rows, shown(back["rejected"]))
        facts = ledger_facts(back, config.worst_groups)
        kept.pop_all()
    return LedgerWritten(
        tables=written,
        facts=facts,
        rejected=rejected,
        input_rows={name: count.rows for name, count in counts.items()},
        replay_reasons=reasons,
        checked=checked,
    )


def sized(
    options: SimulationOptions, counts: Mapping[str, RowCounts], session: SparkSession
) -> SimulationOptions:
    """The options with as many tasks as an input of that many rows needs, if none are chosen."""
    if options.partitions is not None:
        return options
    rows = sum(count.rows for count in counts.values())
    return replace(options, partitions=task_count(rows, session.sparkContext.defaultParallelism))
