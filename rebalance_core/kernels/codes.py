"""Names as integers in RocketMQ's order: codes compare in the way Java compares the names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.segments import AnyInts, Ints
from rebalance_core.model.queue import java_string_key

BEYOND_BMP = "[\U00010000-\U0010ffff]"


def java_sorted(names: pa.StringArray) -> pa.StringArray:
    """Return the distinct names in the order of Java's ``String.compareTo``.

    UTF-8 sorts like UTF-16 until a character needs a surrogate pair.
    """
    if pc.any(pc.match_substring_regex(names, BEYOND_BMP)).as_py():
        return pa.array(sorted(names.to_pylist(), key=java_string_key), pa.string())
    return code_point_sorted(names)


def code_point_sorted(names: pa.StringArray) -> pa.StringArray:
    """Return the distinct names by code point, as UTF-8 and Python sort them."""
    return names.take(pc.array_sort_indices(names))


def encode(
    *columns: Any, order: Callable[[pa.StringArray], pa.StringArray] = java_sorted
) -> tuple[pa.StringArray, list[Ints]]:
    """Return the distinct names of all columns, sorted, and each column as codes (null: -1).

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


def encoded(names: pa.StringArray, codes: AnyInts) -> pa.DictionaryArray:
    """Return codes as a dictionary array, which copies no names; negative codes are null."""
    indices = codes.astype(np.int32)
    missing = indices < 0
    nulls = missing if missing.any() else None
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=nulls), names)


def names_of(names: pa.StringArray, codes: Ints) -> pa.StringArray:
    """Return the names for codes; negative codes are null."""
    if len(codes) and codes.min() < 0:
        return names.take(pa.array(codes, mask=codes < 0))
    return names.take(pa.array(codes))
