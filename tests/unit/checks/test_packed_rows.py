"""Tables that travel with the result of a task are as small as their rows."""

import pickle
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.checks.packed_rows import PackedTables


@dataclass(frozen=True)
class Pair(PackedTables):
    left: pa.Table
    right: pa.Table


def test_packed_tables_are_pickled_without_the_buffers_they_are_slices_of() -> None:
    whole = pa.table({"name": pa.array([f"name-{i}" for i in range(100_000)])})
    pair = Pair(whole.slice(7, 3), whole.slice(99_999))
    pickled = pickle.dumps(pair)
    assert pickle.loads(pickled) == pair
    assert len(pickled) < 2_000 < len(pickle.dumps(pair.left))
