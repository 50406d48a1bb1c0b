"""Row checks: every input row is used, or rejected with the reasons; rows of one key are
compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import (
    Issue,
    as_text,
    conform,
    issues_array,
    joined_issues,
    unknown_columns,
    with_text,
)
from rebalance_core.checks.digest import column_hashes, hash_sum
from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.row_issues import MAX_QUEUE_NUMS, row_issues
from rebalance_core.checks.row_limits import Complaint, Content, RowCounts
from rebalance_core.contracts import ALL_TABLES, REJECTED, Table
from rebalance_core.contracts.table import ISSUES_TYPE, RAW, READ_ISSUES, SOURCE, arrow_type

# Rows with the same key: equal ones are used once, differing ones not at all.

_MOST_CODES = 2**62


def duplicate_keys(table: Table, rows: pa.Table) -> tuple[np.ndarray, Issue]:
    """Compare the conformed rows that have the same key.

    Rows are equal if all columns but ``source`` are: the same event may stand in two logs. Of
    equal rows the one with the least source is kept. Rows with a field that did not read, or
    without a value that the key needs, have no key.

    Returns:
        Numbers of the rows that repeat one that is kept, and the issue of rows whose key others
        with different content have too.
    """
    none = np.zeros(0, np.int64)
    if not table.key or not len(rows):
        return none, Issue(none, "DUPLICATE_KEY", [])
    keyed = np.flatnonzero(has_key(table, rows))
    keys = rows.select(table.key)
    codes = _codes(keys.columns if len(keyed) == len(rows) else keys.take(keyed).columns)
    shared = keyed[np.bincount(codes)[codes] > 1] if len(keyed) else none
    several = rows.take(shared)
    groups = _codes([several.column(name) for name in table.key])
    names = [name for name in table.column_names if name != "source"]
    contents = _codes([several.column(name) for name in names])
    differ = _differ(groups, contents)
    order = _by_source(several, groups)
    first = np.unique(groups[order], return_index=True)[1] if len(order) else none
    repeat = np.ones(len(shared), bool)
    repeat[order[first]] = False
    differing = several.filter(pa.array(differ))
    times = np.bincount(groups)[groups[differ]] if len(groups) else none
    messages = _messages(table, differing, times)
    return shared[repeat], Issue(shared[differ], "DUPLICATE_KEY", messages)


def has_key(table: Table, rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """True for conformed rows with a key: all fields did read, and those it needs are there."""
    keyed = pc.equal(pc.list_value_length(rows.column(READ_ISSUES)), 0)
    for column in table.columns:
        if column.name in table.key and not column.nullable:
            keyed = pc.and_(keyed, rows.column(column.name).is_valid())
    return np.asarray(keyed)


def _codes(columns: Iterable[pa.ChunkedArray]) -> np.ndarray:
    """A number for each row, the same for rows that are equal; nulls are equal to each other."""
    codes: np.ndarray | None = None
    count = 1
    for column in columns:
        of_column, distinct = _column_codes(column)
        if codes is None:
            codes, count = of_column, distinct
            continue
        if count * distinct >= _MOST_CODES:
            known, codes = np.unique(codes, return_inverse=True)
            count = len(known)
        codes = codes * distinct + of_column
        count *= distinct
    return np.zeros(0, np.int64) if codes is None else np.unique(codes, return_inverse=True)[1]


def _column_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([as_text(chunk) for chunk in column.chunks], pa.string())
    elif pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # the zeros are equal
    encoded = column.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.zeros(0, np.int64), 1
    indices = [np.asarray(pc.fill_null(chunk.indices, -1)) for chunk in encoded.chunks]
    return np.concatenate(indices).astype(np.int64) + 1, len(encoded.chunk(0).dictionary) + 1


def _differ(groups: np.ndarray, contents: np.ndarray) -> np.ndarray:
    """True for rows of a group with more than one content; both are numbers from 0 on."""
    count = int(contents.max(initial=0)) + 1
    differ: np.ndarray = np.bincount(np.unique(groups * count + contents) // count)[groups] > 1
    return differ


def _by_source(rows: pa.Table, groups: np.ndarray) -> np.ndarray:
    """The order of the rows by group, and in it by their places, those without one first."""
    columns: dict[str, pa.ChunkedArray | np.ndarray] = {"group": groups}
    for name in ("source", SOURCE, RAW):
        if name in rows.column_names:
            columns[f"{name} there"] = rows.column(name).is_valid()
            columns[name] = rows.column(name)
    table = pa.table(columns)
    return np.asarray(pc.sort_indices(table, sort_keys=[(n, "ascending") for n in columns]))


def _messages(table: Table, rows: pa.Table, times: np.ndarray) -> list[str]:
    keys = [rows.column(name).to_pylist() for name in table.key]
    return [
        f"{count} rows with different content have the key "
        + ", ".join(
            f"{name} {'null' if value is None else value}"
            for name, value in zip(table.key, key, strict=True)
        )
        + "; keep one"
        for count, key in zip(times, zip(*keys, strict=True), strict=True)
    ]


# Rows in buckets by their keys, so that rows with one key meet wherever they were read.


def key_buckets(table: Table, rows: pa.Table, buckets: int) -> np.ndarray:
    """The bucket of each conformed row, from 0 on; rows without a key are dealt out in turn."""
    turn = np.arange(len(rows)) % buckets
    if not table.key or not len(rows):
        return turn
    key = [column for column in table.columns if column.name in table.key]
    hashes = [column_hashes(key, batch) for batch in rows.to_batches()]
    by_key = np.concatenate(hashes) % np.uint64(buckets)
    return np.where(has_key(table, rows), by_key.astype(np.int64), turn)


# Row checks: every input row is used, or rejected with the reasons.

ISSUES = "issues"
"""The column of what is wrong with each row."""

_LINE = re.compile(r"[:@]([0-9]+)$")
_LARGEST_LINE = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Checked:
    """The input after the checks.

    Attributes:
        tables: the used rows by table: contract columns, ``_source``, ``_raw`` (null: see
            `conform.with_text`); equal repeats once.
        rejected: the ledger table.
        counts: rows and bad rows by table.
    """

    tables: Mapping[str, pa.Table]
    rejected: pa.Table
    counts: Mapping[str, RowCounts]

    @cached_property
    def rejections(self) -> Rejections:
        """Issues of the rejected rows."""
        return Rejections.of(self.rejected)

    def complaints(self) -> list[Complaint]:
        """Lines of a refusal: one a table and code."""
        return self.rejections.complaints()


def check_tables(
    inputs: ArrowTables,
    *,
    max_queue_nums: int = MAX_QUEUE_NUMS,
    warn: Callable[[str], object] | None = None,
) -> Checked:
    """Check every table there is; see `check_table`.

    Args:
        inputs: as read or made by hand.
        max_queue_nums: the most queues that a topic may have on a broker.
        warn: gets a text for each table with unknown columns, which are not read.
    """
    if warn is not None:
        for name, columns in inputs.unknown_columns.items():
            warn(unknown_columns(name, columns))
    tables: dict[str, pa.Table] = {}
    counts: dict[str, RowCounts] = {}
    rejected = [REJECTED.arrow_schema().empty_table()]
    for name, rows in inputs.tables.items():
        part = check_table(name, rows, max_queue_nums=max_queue_nums)
        tables |= part.tables
        counts |= part.counts
        rejected.append(part.rejected)
    return Checked(tables, pa.concat_tables(rejected), counts)


def check_table(
    table_name: str, rows: pa.Table, *, max_queue_nums: int = MAX_QUEUE_NUMS
) -> Checked:
    """The rows of one table, used or rejected.

    Observed tables have no keys, and their texts are what was seen, not settings: any is good.

    Raises:
        InputRefused: columns that may not be null are missing.
    """
    table = ALL_TABLES[table_name]
    return by_keys(table, with_issues(table, conform(table, rows), max_queue_nums))


def with_issues(table: Table, rows: pa.Table, max_queue_nums: int) -> pa.Table:
    """Conformed rows with all that is wrong with each alone, in the column `ISSUES`."""
    issues = []
    for batch in rows.to_batches():
        found = issues_array(len(batch), row_issues(table, batch, max_queue_nums))
        issues.append(joined_issues(batch.column(READ_ISSUES), found))
    return rows.append_column(ISSUES, pa.chunked_array(issues, arrow_type(ISSUES_TYPE)))


def by_keys(table: Table, rows: pa.Table) -> Checked:
    """Rows of `with_issues`, used or rejected; all rows of one key must be among them."""
    repeats, differing = duplicate_keys(table, rows)
    of_keys = issues_array(len(rows), [differing])
    issues = joined_issues(_one_array(rows.column(ISSUES)), of_keys)
    bad = np.asarray(pc.list_value_length(issues)) > 0
    used = ~bad
    used[repeats] = False
    good = rows.select([*table.column_names, SOURCE, RAW])
    good = good if used.all() else good.filter(pa.array(used))
    return Checked(
        {table.name: good},
        _rejected(table, rows, issues, bad),
        {table.name: RowCounts(len(rows), int(bad.sum()), _content(table, rows, good))},
    )


def _content(table: Table, rows: pa.Table, good: pa.Table) -> Content:
    """Content of all rows, the bad ones too, wherever they are from; times are of the good ones."""
    hashes = hash_sum([c for c in table.columns if c.name != "source"], rows)
    clusters = pc.unique(rows.column("cluster")).drop_null().to_pylist()
    first = last = None
    if "event_ms" in table.column_names:
        first, last = pc.min_max(good.column("event_ms")).as_py().values()
    return Content(hashes, frozenset(clusters), first, last)


def _one_array(issues: pa.ChunkedArray) -> pa.Array:
    empty = pa.array([], arrow_type(ISSUES_TYPE))
    return pa.concat_arrays([empty, *issues.chunks])


def _rejected(table: Table, rows: pa.Table, issues: pa.Array, bad: np.ndarray) -> pa.Table:
    chosen = pa.array(bad)
    wrong = with_text(table, rows.filter(chosen))
    columns = [pa.repeat(table.name, len(wrong)), wrong[SOURCE], wrong[RAW], issues.filter(chosen)]
    return pa.table(columns, schema=REJECTED.arrow_schema())


# What is wrong with rejected rows.


@dataclass(slots=True)
class Rejections:
    """How often each issue code occurs in rows of ``rejected``, and the first row that has it.

    The first is that by file, line and message, whatever the order of the rows; what is counted of
    parts of them can be merged.
    """

    _found: dict[tuple[str, str], tuple[int, _Place]] = field(default_factory=dict)

    @classmethod
    def of(cls, *rejected: pa.Table | pa.RecordBatch) -> Self:
        """Count some rows."""
        made = cls()
        for rows in rejected:
            made.add(rows)
        return made

    def add(self, rejected: pa.Table | pa.RecordBatch) -> None:
        """Count some rows."""
        for row in rejected.select(["table_name", "source", "issues"]).to_pylist():
            name, place = row["table_name"], _place(row["source"])
            for issue in row["issues"]:
                self._add((name, issue["code"]), 1, (*place, issue["message"]))

    def merge(self, other: Self) -> None:
        """Add what was counted of other rows."""
        for code, (times, first) in other._found.items():
            self._add(code, times, first)

    def of_tables(self, names: Collection[str]) -> Self:
        """Keep the counts of some tables."""
        return type(self)({group: one for group, one in self._found.items() if group[0] in names})

    def times(self, code: str) -> int:
        """Count a code in the rows of all tables."""
        return self.codes.get(code, 0)

    @property
    def codes(self) -> dict[str, int]:
        """The count of each code, by its name; a row may have several."""
        counts: dict[str, int] = {}
        for (_, code), (times, _) in sorted(self._found.items(), key=lambda found: found[0][1]):
            counts[code] = counts.get(code, 0) + times
        return counts

    def complaints(self) -> list[Complaint]:
        """The codes by table, the most frequent first."""
        found = ((*group, times, *first[-2:]) for group, (times, first) in self._found.items())
        return [Complaint(*one) for one in sorted(found, key=lambda one: (one[0], -one[2], one[1]))]

    def _add(self, code: tuple[str, str], times: int, first: _Place) -> None:
        before = self._found.get(code, (0, first))
        self._found[code] = before[0] + times, min(before[1], first)


_Place = tuple[bool, str, int, str, str]
"""Whether there is a source, its file and line (-1: none), the source and the message."""


def _place(source: str | None) -> tuple[bool, str, int, str]:
    found = _LINE.search(source or "")
    line = int(found[1]) if found is not None else -1
    file = _LINE.sub("", source or "")
    return source is not None, file, line if line <= _LARGEST_LINE else -1, source or ""
