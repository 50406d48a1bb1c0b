"""The columns of an input table, as numpy arrays and codes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.codes import code_point_sorted, encode
from rebalance_core.kernels.segments import Bools, Ints

EVENTS, GROUPS, OFFSETS, COMMITS = TABLES = (
    "cluster_events",
    "consumer_groups",
    "queue_offsets",
    "committed_offsets",
)


@dataclass(frozen=True)
class Columns:
    """The rows of a table; a missing column is null in every row."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def array(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column."""
        if name not in self.rows.column_names:
            return pa.nulls(len(self), kind)
        return self.rows[name].combine_chunks().cast(kind)

    def strings(self, name: str) -> pa.StringArray:
        """Return a column of names."""
        return self.array(name, pa.string())

    def given(self, name: str) -> pa.StringArray:
        """Return a column of names; an empty name also counts as null."""
        values = self.strings(name)
        return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)

    def ints(self, name: str, null: int = -1) -> Ints:
        """Return a column of numbers."""
        return self.array(name, pa.int64()).fill_null(null).to_numpy()

    def bools(self, name: str, *, null: bool) -> Bools:
        """Return a column of booleans."""
        return self.array(name, pa.bool_()).fill_null(null).to_numpy(zero_copy_only=False)

    def equal(self, name: str, text: str) -> Bools:
        """Return whether each value in a column of names equals the text."""
        same = pc.equal(self.strings(name), text).fill_null(False)
        return same.to_numpy(zero_copy_only=False)

    def lists(self, name: str) -> pa.ListArray:
        """Return a column of lists of names."""
        return self.array(name, pa.list_(pa.string()))


Key = tuple[str, str]


def encode_all(columns: Mapping[Key, pa.StringArray]) -> tuple[pa.StringArray, dict[Key, Ints]]:
    """Return `encode` for named columns."""
    names, codes = encode(*columns.values())
    return names, dict(zip(columns, codes, strict=True))


def encode_channels(events: Columns) -> tuple[pa.StringArray, dict[Key, Ints]]:
    """Return `encode` for the channels; a client's first process is the one on its first
    channel.
    """
    names, codes = encode(events.strings("channel_id"), order=code_point_sorted)
    return names, {(EVENTS, "channel_id"): codes[0]}


def list_pointers(lists: pa.ListArray) -> Ints:
    """Return where each list begins in ``lists.flatten()`` (null lists are empty), with shape (n +
    1,).
    """
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
