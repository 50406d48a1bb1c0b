"""The columns that the SQL functions take: their types, and rows that cannot be answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.function_reasons import Reasons, nulls_of
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.table_columns import list_pointers
from rebalance_core.model.errors import UsageError
from rebalance_core.strategies.parameters import JAVA_INT_MAX

_QUEUE = [("topic", pa.string()), ("broker_name", pa.string()), ("queue_id", pa.int32())]
TEXT = pa.string()
TEXTS = pa.list_(TEXT)
NUMBER = pa.int64()
QUEUES = pa.list_(pa.struct([*_QUEUE[:2], ("queue_id", NUMBER)]))
"""Queue ids are read as int64; an id that is not a Java int becomes the reason for its row."""
ALLOCATION = pa.list_(pa.struct([*_QUEUE, ("client_ids", TEXTS)]))
DIFFERENCE = pa.list_(pa.struct([*_QUEUE, ("action", TEXT), ("client_id", TEXT)]))
START = pa.struct([("rule", TEXT), ("offset", NUMBER), ("error", TEXT)])
SQL_TYPES = {
    TEXT: "STRING",
    TEXTS: "ARRAY<STRING>",
    NUMBER: "BIGINT",
    QUEUES: "ARRAY<STRUCT<topic STRING, broker_name STRING, queue_id INT>>",
    ALLOCATION: "ARRAY<STRUCT<topic STRING, broker_name STRING, queue_id INT,"
    " client_ids ARRAY<STRING>>>",
}


def texts_of(name: str, column: pa.Array) -> pa.StringArray:
    """Return a column of strings.

    Raises:
        UsageError: The column has another type.
    """
    return _typed(name, column, TEXT, _is_text)


def _typed(
    name: str, column: pa.Array, kind: pa.DataType, fits: Callable[[pa.DataType], bool]
) -> pa.Array:
    if not (fits(column.type) or pa.types.is_null(column.type)):
        raise _wrong_type(name, kind, column.type)
    return column.cast(kind)


def _wrong_type(name: str, kind: pa.DataType, actual: pa.DataType) -> UsageError:
    return UsageError(f"{name} must be {SQL_TYPES[kind]}, but its Arrow type is {actual}")


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def numbers_of(name: str, column: pa.Array) -> pa.Int64Array:
    """Return a column of integers, or of strings that contain integers.

    Raises:
        UsageError: The column has another type.
    """
    if _is_text(column.type):
        try:
            return column.cast(NUMBER)
        except pa.ArrowInvalid as error:
            raise UsageError(f"{name}: {error}") from error
    return _typed(name, column, NUMBER, pa.types.is_integer)


def elements_of(name: str, column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array, Ints]:
    """Return the lists, their concatenated elements, and the row of each element."""
    if pa.types.is_null(column.type):
        column = column.cast(kind)
    if not _is_list(column.type):
        raise _wrong_type(name, kind, column.type)
    return (
        column,
        column.flatten(),
        np.repeat(np.arange(len(column)), np.diff(list_pointers(column))),
    )


@dataclass(frozen=True, slots=True)
class ClientLists:
    """Lists of client ids, concatenated.

    Attributes:
        row: the row of each id.
        name: the ids.
    """

    row: Ints
    name: pa.StringArray

    @classmethod
    def read(cls, name: str, column: pa.Array, reasons: Reasons) -> ClientLists:
        """Read a column of lists of ids; a row with a null list or id gets a reason."""
        lists, names, row = elements_of(name, column, TEXTS)
        names = texts_of(name, names)
        reasons.put(
            nulls_of(lists), f"{name} is null, which means unknown; pass an empty list for none"
        )
        reasons.put(row[nulls_of(names)].tolist(), f"{name} contains a null")
        return cls(row, names)


@dataclass(frozen=True, slots=True)
class QueueLists:
    """Lists of queues, concatenated.

    Attributes:
        row: the row of each queue.
        topic: the topic of each queue.
        broker_name: the broker of each queue.
        queue_id: the number of each queue; -1 where it is null.
        structs: each queue with all its fields.
    """

    row: Ints
    topic: pa.StringArray
    broker_name: pa.StringArray
    queue_id: Ints
    structs: pa.StructArray

    @classmethod
    def read(
        cls, name: str, column: pa.Array, reasons: Reasons, kind: pa.DataType = QUEUES
    ) -> QueueLists:
        """Read a column of lists of structs; a row with a null in its list gets a reason."""
        lists, structs, row = elements_of(name, column, kind)
        if pa.types.is_null(structs.type):
            structs = structs.cast(kind.value_type)
        if not pa.types.is_struct(structs.type):
            raise _wrong_type(name, kind, column.type)
        reasons.put(
            nulls_of(lists), f"{name} is null, which means unknown; pass an empty list for none"
        )
        reasons.put(row[nulls_of(structs)].tolist(), f"{name} contains a null queue")
        fields = dict(zip([f.name for f in structs.type], structs.flatten(), strict=True))
        if not {field.name for field in kind.value_type} <= fields.keys():
            raise _wrong_type(name, kind, column.type)
        for key in ("topic", "broker_name", "queue_id"):
            reasons.put(row[nulls_of(fields[key])].tolist(), f"{name} contains a null {key}")
        topic, broker_name = (
            _typed(f"{key} of {name}", fields[key], TEXT, _is_text)
            for key in ("topic", "broker_name")
        )
        ids = _typed(f"queue_id of {name}", fields["queue_id"], NUMBER, pa.types.is_integer)
        queue_id = ids.fill_null(-1).to_numpy()
        for element in np.flatnonzero((queue_id < 0) | (queue_id > JAVA_INT_MAX)).tolist():
            reasons.put(
                [int(row[element])],
                f"{name} has queue_id {queue_id[element]}; valid are 0 to {JAVA_INT_MAX}",
            )
        return cls(row, topic, broker_name, queue_id, structs)

    def take(self, positions: Ints) -> QueueLists:
        """Return the queues at these positions."""
        if len(positions) == len(self.row) and bool((positions[1:] > positions[:-1]).all()):
            return self
        topic, broker_name, structs = (
            array.take(pa.array(positions))
            for array in (self.topic, self.broker_name, self.structs)
        )
        return QueueLists(
            self.row[positions], topic, broker_name, self.queue_id[positions], structs
        )
