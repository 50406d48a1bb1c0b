"""Folds all nights into the tables of history, tracking the state of each finding from night to
night.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from rebalance_core.audit.accepted_findings import SNOOZED_UNTIL
from rebalance_core.audit.changes import (
    RULES,
    Absence,
    Earlier,
    absence_of,
    ended_findings,
    fingerprint,
)
from rebalance_core.audit.counted_findings import shown_first
from rebalance_core.contracts import history
from rebalance_core.contracts.history import (
    ACCEPTED,
    GONE,
    HEALED,
    NEW,
    NOT_LOOKED_AT,
    OPEN,
    OVER,
    REOPENED,
    SNOOZED,
    FindingState,
)
from rebalance_core.contracts.table import Table, batch_of_rows
from rebalance_core.history.flaps import NightChurn, flaps_of
from rebalance_core.history.night import Night, NightSpan, ReadColumns, night_of
from rebalance_core.history.owners import Owner, owner_of
from rebalance_core.history.runs import Run, RunList
from rebalance_core.model.errors import InputRefused, StoreFailed
from rebalance_core.model.verdicts import INFO
from rebalance_core.storage.store_answers import refusal

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, OpenFindingsRow

T = TypeVar("T")


@dataclass
class _Life:
    """A finding up to a given night; ``past`` is its state in the last night that had it, and
    ``opened_ms`` is as in ``open_findings``.
    """

    past: Earlier
    state: FindingState
    opened_ms: int | None
    first_ms: int
    last_ms: int
    seen: int = 1
    unseen: int = 0
    reopened: int = 0
    over_ms: int | None = None


class FindingLives:
    """Follows the findings of a cluster from night to night.

    A finding that is missing from a night is healed if the night records its end. It is gone only
    if the night would have found it again: the night examined the finding's group, had the kinds of
    files that showed it, and kept all findings of its rule.
    """

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        self._truncated: Sequence[str] = ()

    def add(self, night: Night) -> None:
        """Add the next night, in chronological order."""
        by_fingerprint = _by_fingerprint(night.findings)
        for name, finding in by_fingerprint.items():
            may_be_old = finding["rule_id"] in self._truncated
            self._lives[name] = _met(self._lives.get(name), finding, night, may_be_old=may_be_old)
        ended = ended_findings(night.findings)
        for name, life in self._lives.items():
            if name not in by_fingerprint and life.state not in OVER:
                _miss(life, night, ended)
        self._truncated = night.truncated

    def rows(self, owners: Sequence[Owner] = ()) -> list[OpenFindingsRow]:
        """Return rows of ``open_findings`` in order of fingerprint.

        ``owners`` are the recipients of notifications about groups.
        """
        return [_row(name, life, owners) for name, life in sorted(self._lives.items())]


def _by_fingerprint(findings: Iterable[FindingsRow]) -> dict[str, FindingsRow]:
    """Return the findings above INFO; if several share a fingerprint, the one that the page shows
    first.
    """
    rows = [row for row in findings if row["severity"] != INFO]
    return {fingerprint(row): row for row in reversed(shown_first(rows, len(rows)))}


def _met(life: _Life | None, finding: FindingsRow, night: Night, *, may_be_old: bool) -> _Life:
    """Return the updated history of a finding that occurs this night.

    Args:
        life: its life so far; None if no night had it.
        finding: the row of the finding.
        night: the night.
        may_be_old: whether the previous night may have had it, because it did not keep all findings
            of the rule.
    """
    state: FindingState = OPEN
    if life is not None:
        state = REOPENED if life.state in OVER else OPEN
    elif not may_be_old:
        state = NEW
    if finding["accepted"] is not None:
        state = SNOOZED if finding["accepted"].startswith(SNOOZED_UNTIL) else ACCEPTED
    rule, at_ms = RULES.get(finding["rule_id"]), night.row["end_ms"]
    kinds = rule.files if rule is not None else ()
    needs = tuple(kind for kind in kinds if night.files.has(kind, finding["consumer_group"]))
    opened_ms = None if may_be_old and life is None else at_ms
    met = _Life(Earlier(finding, needs), state, opened_ms, at_ms, at_ms)
    if life is not None:
        met.opened_ms = at_ms if life.state in OVER else life.opened_ms
        met.first_ms, met.seen = life.first_ms, life.seen + 1
        met.reopened = life.reopened + (life.state in OVER)
    return met


def _miss(life: _Life, night: Night, ended: Container[str]) -> None:
    """Record that a finding is missing from this night."""
    absence = absence_of(life.past, ended, night.looked)
    if absence == "gone" and life.past.finding["rule_id"] in night.truncated:
        absence = "not_looked_at"
    life.state = _STATES[absence]
    if life.state in OVER:
        life.over_ms = night.row["end_ms"]
    else:
        life.unseen += 1


_STATES: dict[Absence, FindingState] = {
    "healed": HEALED,
    "gone": GONE,
    "not_looked_at": NOT_LOOKED_AT,
}


def _row(name: str, life: _Life, owners: Sequence[Owner]) -> OpenFindingsRow:
    finding = life.past.finding
    return {
        "cluster": finding["cluster"],
        "fingerprint": name,
        "rule_id": finding["rule_id"],
        "consumer_group": finding["consumer_group"],
        "topic": finding["topic"],
        "broker_name": finding["broker_name"],
        "owner": owner_of(owners, finding["cluster"], finding["consumer_group"]),
        "state": life.state,
        "first_night_ms": life.first_ms,
        "opened_night_ms": life.opened_ms,
        "last_seen_ms": life.last_ms,
        "nights_seen": life.seen,
        "nights_unseen": life.unseen,
        "over_night_ms": life.over_ms,
        "reopened": life.reopened,
        "severity": finding["severity"],
        "summary": finding["summary"],
        "remedy": finding["remedy"],
        "caused_by": finding.get("caused_by"),
    }


ReaderOf = Callable[[Run], ReadColumns]
"""Maps a run to the reader of its tables."""

_GROUP = ["cluster", "consumer_group"]


def fold(
    runs: RunList,
    reader_of: ReaderOf,
    owners: Sequence[Owner] = (),
    progress: Callable[[int, int], object] | None = None,
    leave_out: Callable[[str], object] | None = None,
) -> dict[str, pa.Table]:
    """Return the tables of history, each ordered by its key.

    A run whose tables cannot be read is left out without affecting other nights.

    Memory: the rows of ``group_nights``, and the verdicts and findings of one night.

    Args:
        runs: `runs.choose_runs`.
        reader_of: see `ReaderOf`.
        owners: the recipients of notifications about groups.
        progress: called with the number of nights read so far and the total.
        leave_out: called with ``FOLDER: reason`` for each run left out; if None, its error is
            raised.

    Raises:
        StoreFailed: a store does not answer.
    """
    made: dict[str, list[pa.Table | pa.RecordBatch]] = {name: [] for name in history.HISTORY_TABLES}
    settled = _settled(runs.propagated, reader_of, leave_out)
    lives: dict[str, FindingLives] = defaultdict(FindingLives)
    churn: dict[str, list[NightChurn]] = defaultdict(list)
    kept = _TableCache(reader_of)
    ends: dict[str, int] = {}
    for done, (run, cluster) in enumerate(runs.nights, start=1):
        read = partial(night_of, run, cluster, kept.reader(run), ends.get(cluster))
        night = _if_readable(run, leave_out, read)
        if night is None:
            continue
        ends[cluster] = night.row["end_ms"]
        lives[cluster].add(night)
        churn[cluster].append((night.row, night.churn, night.names))
        made[history.NIGHTS.name].append(batch_of_rows(history.NIGHTS, [night.row]))
        made[history.GROUP_NIGHTS.name].append(_with_settled(night.groups, night.span, settled))
        if progress is not None:
            progress(done, len(runs.nights))
    for cluster in sorted(lives):
        open_findings = lives[cluster].rows(owners)
        made[history.OPEN_FINDINGS.name].append(batch_of_rows(history.OPEN_FINDINGS, open_findings))
        made[history.FLAPS.name].append(batch_of_rows(history.FLAPS, flaps_of(churn[cluster])))
    return {name: _whole(history.HISTORY_TABLES[name], parts) for name, parts in made.items()}


class _TableCache:
    """Reads each table of a run only once, although its clusters are separate nights."""

    def __init__(self, reader_of: ReaderOf) -> None:
        self._reader_of = reader_of
        self._folder = ""
        self._tables: dict[str, pa.Table] = {}

    def reader(self, run: Run) -> ReadColumns:
        """Return a reader of the run, which discards the previous run."""
        if run.folder != self._folder:
            self._folder, self._tables = run.folder, {}
        read_columns = self._reader_of(run)

        def read(table: str, columns: Sequence[str]) -> pa.Table:
            if table not in self._tables:
                self._tables[table] = read_columns(table, columns)
            return self._tables[table]

        return read


def _whole(table: Table, parts: Sequence[pa.Table | pa.RecordBatch]) -> pa.Table:
    tables = [
        pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
        for part in parts
    ]
    if not tables:
        return table.arrow_schema().empty_table()
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in table.key])


def _if_readable(
    run: Run, leave_out: Callable[[str], object] | None, read: Callable[[], T]
) -> T | None:
    """Return a function's result for a run, or None for a run that is left out."""
    try:
        return read()
    except (pa.ArrowException, OSError, InputRefused) as error:
        if isinstance(error, OSError):
            reason: Exception = refusal(error, "its tables cannot be read", InputRefused)
        else:
            reason = InputRefused(f"its tables cannot be read: {error}")
        if leave_out is None or isinstance(reason, StoreFailed):
            raise reason from error
        leave_out(f"{run.folder}: {reason}")
        return None


def _settled(
    propagated: Sequence[Run], reader_of: ReaderOf, leave_out: Callable[[str], object] | None
) -> pa.Table | None:
    """Return the 99 % duration of each change, from all runs of `propagate`, or None."""
    columns = [*_GROUP, "change_ms", "convergence_ms_p99"]
    parts = []
    for run in propagated:
        rows = _if_readable(run, leave_out, partial(reader_of(run), "propagation", columns))
        parts += [] if rows is None else [rows]
    return pa.concat_tables(parts) if parts else None


def _with_settled(groups: pa.Table, night: NightSpan, settled: pa.Table | None) -> pa.Table:
    """Return the rows with ``settle_p99_ms``, that of the slowest change within the night."""
    if settled is None:
        return groups
    slowest = (
        settled.filter(night.has(settled["change_ms"]))
        .group_by(_GROUP)
        .aggregate([("convergence_ms_p99", "max")])
    )
    slowest = slowest.rename_columns([*_GROUP, "settle_p99_ms"])
    rows = groups.drop_columns(["settle_p99_ms"]).join(slowest, keys=_GROUP, join_type="left outer")
    rows = rows.sort_by([(name, "ascending") for name in _GROUP])
    return rows.select(groups.column_names).cast(groups.schema)
