"""Names as integers in RocketMQ's order, and the columns of an input table as arrays of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.segments import AnyInts, Bools, Ints, pointers, ranges
from rebalance_core.model.queue import java_string_key

# Names as integers in RocketMQ's order: comparing two codes compares the names as Java does.

BEYOND_BMP = "[\U00010000-\U0010ffff]"


def java_sorted(names: pa.StringArray) -> pa.StringArray:
    """Distinct names in the order of Java's ``String.compareTo``.

    UTF-8 sorts like UTF-16 until a character needs a surrogate pair.
    """
    if pc.any(pc.match_substring_regex(names, BEYOND_BMP)).as_py():
        return pa.array(sorted(names.to_pylist(), key=java_string_key), pa.string())
    return code_point_sorted(names)


def code_point_sorted(names: pa.StringArray) -> pa.StringArray:
    """Distinct names by code points, as UTF-8 and Python sort them."""
    return names.take(pc.array_sort_indices(names))


def encode(
    *columns: Any, order: Callable[[pa.StringArray], pa.StringArray] = java_sorted
) -> tuple[pa.StringArray, list[Ints]]:
    """The distinct names of all columns together, sorted, and each column as codes (null: -1).

    Args:
        columns: string arrays, chunked or not.
        order: sorts distinct names.
    """
    arrays = [_flat(column) for column in columns]
    encoded = pa.concat_arrays(arrays).dictionary_encode()
    names = order(encoded.dictionary)
    rank = np.append(pc.index_in(encoded.dictionary, names).to_numpy(), -1).astype(np.int64)
    codes = rank[pc.fill_null(encoded.indices, len(names)).to_numpy()]
    return names, np.split(codes, np.cumsum([len(array) for array in arrays])[:-1])


def _flat(column: Any) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.cast(pa.string())


def coded(names: pa.StringArray, codes: AnyInts) -> pa.DictionaryArray:
    """The names of codes as a dictionary array, which copies no name; -1 and below is null."""
    indices = codes.astype(np.int32)
    missing = indices < 0
    nulls = missing if missing.any() else None
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=nulls), names)


def names_of(names: pa.StringArray, codes: Ints) -> pa.StringArray:
    """The names of codes; -1 and below is null."""
    if len(codes) and codes.min() < 0:
        return names.take(pa.array(codes, mask=codes < 0))
    return names.take(pa.array(codes))


# Columns of one input table inside the rows of all tables, as numpy arrays and codes.

EVENTS, GROUPS, OFFSETS, COMMITS = TABLES = (
    "cluster_events",
    "consumer_groups",
    "queue_offsets",
    "committed_offsets",
)


@dataclass(frozen=True)
class Columns:
    """The rows of one table; a column that is not there is null in every row."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def array(self, name: str, kind: pa.DataType) -> pa.Array:
        """One column."""
        if name not in self.rows.column_names:
            return pa.nulls(len(self), kind)
        return self.rows[name].combine_chunks().cast(kind)

    def strings(self, name: str) -> pa.StringArray:
        """One column of names."""
        return self.array(name, pa.string())

    def given(self, name: str) -> pa.StringArray:
        """One column of names; an empty one is null, too."""
        values = self.strings(name)
        return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)

    def ints(self, name: str, null: int = -1) -> Ints:
        """One column of numbers."""
        return self.array(name, pa.int64()).fill_null(null).to_numpy()

    def bools(self, name: str, *, null: bool) -> Bools:
        """One column of truth values."""
        return self.array(name, pa.bool_()).fill_null(null).to_numpy(zero_copy_only=False)

    def equal(self, name: str, text: str) -> Bools:
        """Return where a column of names has this one."""
        same = pc.equal(self.strings(name), text).fill_null(False)
        return same.to_numpy(zero_copy_only=False)

    def lists(self, name: str) -> pa.ListArray:
        """One column of lists of names."""
        return self.array(name, pa.list_(pa.string()))


Key = tuple[str, str]


def encode_all(columns: Mapping[Key, pa.StringArray]) -> tuple[pa.StringArray, dict[Key, Ints]]:
    """`encode` of named columns."""
    names, codes = encode(*columns.values())
    return names, dict(zip(columns, codes, strict=True))


def encode_channels(events: Columns) -> tuple[pa.StringArray, dict[Key, Ints]]:
    """`encode` of the channels; of a client's processes the first is that on the first channel."""
    names, codes = encode(events.strings("channel_id"), order=code_point_sorted)
    return names, {(EVENTS, "channel_id"): codes[0]}


def list_pointers(lists: pa.ListArray) -> Ints:
    """Return where each list begins in ``lists.flatten()``, a null one being empty; shape (n +
    1,).
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# Sets of topics, each known by a number: equal numbers are equal sets.


class TopicSets:
    """A growing list of distinct sets of topic codes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._sets: list[tuple[int, ...]] = []

    def number(self, topics: Iterable[int]) -> int:
        """The number of a set; its topics in any order, repeats allowed."""
        key = tuple(sorted(set(topics)))
        number = self._numbers.setdefault(key, len(self._sets))
        if number == len(self._sets):
            self._sets.append(key)
        return number

    def numbers(self, topics: Ints, starts: Ints, without: Ints) -> Ints:
        """The numbers of many sets.

        Args:
            topics: topic codes of all sets, one after the other.
            starts: where each set begins, and the end; shape (n + 1,).
            without: one topic a set that does not count.
        """
        sizes = np.diff(starts)
        result = np.full(len(without), self.number(()), np.int64)
        rows = np.flatnonzero(sizes > 0)
        codes, begins, ends = topics.tolist(), starts[rows].tolist(), starts[rows + 1].tolist()
        seen: dict[tuple[int, ...], int] = {}  # members of a group mostly state the same list

        def number_of(listed: tuple[int, ...], left_out: int) -> int:
            if left_out in listed:
                return self.number(topic for topic in listed if topic != left_out)
            if listed not in seen:
                seen[listed] = self.number(listed)
            return seen[listed]

        result[rows] = [
            number_of(tuple(codes[begin:end]), left_out)
            for begin, end, left_out in zip(begins, ends, without[rows].tolist(), strict=True)
        ]
        return result

    def topics(self, number: int) -> tuple[int, ...]:
        """The topic codes of a set, rising."""
        return self._sets[number]

    def members(self, numbers: Ints) -> tuple[Ints, Ints]:
        """(row, topic code) of every topic of the set of every row."""
        sizes = np.array([len(topics) for topics in self._sets], np.int64)
        every = np.array([t for topics in self._sets for t in topics], np.int64)
        counts = sizes[numbers]
        rows = np.repeat(np.arange(len(numbers)), counts)
        return rows, every[ranges(pointers(sizes)[:-1][numbers], counts)]
