"""Options of a simulation, and a forecast of whether it would accept its input rows."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from rebalance_core.checks import row_limits
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import MAX_BAD_SHARE, QUARANTINE, BadRowLimits
from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.contracts.ledger import UNKNOWN_MEMBER
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.texts import strategy_text

VECTORIZED, REFERENCE = "vectorized", "reference"
ENGINES = (VECTORIZED, REFERENCE)


@dataclass(frozen=True)
class SimulationOptions:
    """Options of a simulation.

    ``strategy`` replaces the strategies of all groups and members; it is a string, or a custom
    object of which only the text is kept (`rebalance_core.register_strategy`). ``group`` is a glob
    (``*``, ``?``) of the selected groups. Rows entirely outside [from_ms, to_ms) are left out of
    the output, but not of the history. ``tables`` are the ledger tables to compute, None for all;
    ``rejected`` is always included. ``partitions`` is the number of tasks on Spark; None for as
    many as the rows need. The last two, like the command's settings, are for `simulate` in Python;
    a job has its `LedgerConfig`.
    """

    engine: str = VECTORIZED
    strategy: str | None = None
    group: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    tables: Sequence[str] | None = None
    include_retry_topics: bool = True
    max_queue_nums: int = MAX_QUEUE_NUMS
    partitions: int | None = None
    on_bad_rows: str = QUARANTINE
    max_bad_share: float = MAX_BAD_SHARE

    def __post_init__(self) -> None:
        if self.strategy is not None:
            object.__setattr__(self, "strategy", strategy_text(self.strategy))
        if self.tables is not None:
            names = [self.tables] if isinstance(self.tables, str) else self.tables
            object.__setattr__(self, "tables", tuple(names))

    @property
    def bad_rows(self) -> BadRowLimits:
        """Return the limits on bad rows in the input."""
        return BadRowLimits(self.on_bad_rows, self.max_bad_share)


def check_options(options: SimulationOptions) -> None:
    """Raise `UsageError` for an unknown engine or a strategy text that does not parse."""
    if options.engine not in ENGINES:
        raise UsageError(f"unknown engine {options.engine!r}; valid: {', '.join(ENGINES)}")
    if options.strategy is not None:
        parse_strategy(options.strategy)
    chosen_tables(options)


def chosen_tables(options: SimulationOptions) -> tuple[str, ...]:
    """Return the ledger tables that a simulation writes, in the contract's order.

    Raises:
        UsageError: No table is named, or a table is unknown.
    """
    if options.tables is None:
        return tuple(LEDGER_TABLES)
    unknown = [name for name in options.tables if name not in LEDGER_TABLES]
    if unknown or not options.tables:
        named = f"unknown table {unknown[0]!r}" if unknown else "no table is named"
        raise UsageError(f"tables: {named}; valid: {', '.join(LEDGER_TABLES)}")
    return tuple(name for name in LEDGER_TABLES if name in {*options.tables, REJECTED.name})


def engine_options(
    tables: Container[str], options: SimulationOptions | None = None
) -> EngineOptions:
    """Return the options for the kernels.

    Args:
        tables: names of the existing input tables.
        options: the simulation's options; None for the defaults.
    """
    options = options or SimulationOptions()
    return EngineOptions(
        queue_offsets_given="queue_offsets" in tables,
        committed_offsets_given="committed_offsets" in tables,
        include_retry_topics=options.include_retry_topics,
        strategy_override=options.strategy,
    )


def group_pattern(options: SimulationOptions) -> str | None:
    """Return the SQL LIKE pattern for the selected groups, or None for all."""
    return None if options.group is None else like_pattern(options.group)


def like_pattern(glob: str) -> str:
    r"""Return a glob with ``*`` and ``?`` as an SQL LIKE pattern; all other characters stand for
    themselves.

    >>> print(like_pattern("GID_*"))
    GID\_%
    """
    translated = {"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}
    return "".join(translated.get(character, character) for character in glob)


def matches(glob: str, name: str) -> bool:
    """Return whether a name matches a glob with ``*`` and ``?``, as `like_pattern` interprets it.

    >>> matches("GID_*", "GID_pay"), matches("g[1]", "g1")
    (True, False)
    """
    stands_for = {"*": ".*", "?": "."}
    pattern = "".join(stands_for.get(character, re.escape(character)) for character in glob)
    return re.fullmatch(pattern, name, re.DOTALL) is not None


WORST_GROUPS = 5
"""The default number of groups that a summary lists."""


@dataclass(frozen=True)
class LedgerConfig:
    """Settings for writing a ledger.

    Attributes:
        bad_rows: The limits on bad rows.
        worst_groups: The number of groups that the facts list.
    """

    bad_rows: BadRowLimits = field(default_factory=BadRowLimits)
    worst_groups: int = WORST_GROUPS


@dataclass(frozen=True)
class RowForecast:
    """The predicted outcome of a run's row checks.

    Attributes:
        counts: The numbers of rows and bad rows in each input table; without a refusal, bad rows
            include those that the replay rejects.
        complaints: The faults of the rows.
        refusal: The error that the run would raise; None if it would continue.
    """

    counts: Mapping[str, RowCounts]
    complaints: Sequence[Complaint]
    refusal: InputRefused | None

    def without_rows(self) -> Self:
        """Return the forecast without the text of rows, which may name clients."""
        refusal = self.refusal and InputRefused(str(self.refusal).partition("\n")[0])
        return replace(self, complaints=(), refusal=refusal)


def refuse_rejected(
    counts: Mapping[str, RowCounts],
    rejected: Rejections,
    limits: BadRowLimits,
    complaints: Callable[[], Sequence[Complaint]] | None = None,
) -> Mapping[str, RowCounts]:
    """Raise `InputRefused` if too many rows are bad, including those that the replay rejects.

    Args:
        counts: from the checks.
        rejected: all rows of ``rejected``.
        limits: limits on bad rows.
        complaints: returns the reasons for a refusal; None uses the issues of the rejected rows.

    Returns:
        The counts, including events that name a nonexistent member.
    """
    counts = row_limits.with_unknown_members(counts, rejected.times(UNKNOWN_MEMBER))
    row_limits.refuse_bad_rows(counts, limits, complaints or rejected.complaints)
    return counts


def row_forecast(
    counts: Mapping[str, RowCounts],
    rejections: Rejections,
    limits: BadRowLimits,
    refuse: Callable[[], object],
    simulated: Callable[[], Rejections],
) -> RowForecast:
    """Return whether a run would accept its rows, after the same checks but without writing.

    Args:
        counts: from the checks.
        rejections: from the checks.
        limits: limits on bad rows.
        refuse: raises a run's other refusals before it simulates.
        simulated: returns all rejections including the replay's; called only if nothing is refused.
    """
    try:
        row_limits.refuse_bad_rows(counts, limits, rejections.complaints)
        refuse()
        rejections = simulated()
        counts = row_limits.with_unknown_members(counts, rejections.times(UNKNOWN_MEMBER))
        row_limits.refuse_bad_rows(counts, limits, rejections.complaints)
    except InputRefused as refusal:
        return RowForecast(counts, rejections.complaints(), refusal)
    return RowForecast(counts, rejections.complaints(), None)
