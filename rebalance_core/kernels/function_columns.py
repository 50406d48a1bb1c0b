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
"""As they are read: an id that is no Java int is the reason of its row."""
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
    """A column of texts. Raises: UsageError."""
    return _typed(name, column, TEXT, _is_text)


def _typed(
    name: str, column: pa.Array, kind: pa.DataType, fits: Callable[[pa.DataType], bool]
) -> pa.Array:
    if not (fits(column.type) or pa.types.is_null(column.type)):
        raise _wrong_type(name, kind, column.type)
    return column.cast(kind)


def _wrong_type(name: str, kind: pa.DataType, found: pa.DataType) -> UsageError:
    return UsageError(f"{name} must be {SQL_TYPES[kind]}; it is {found} (as Arrow names it)")


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def numbers_of(name: str, column: pa.Array) -> pa.Int64Array:
    """A column of whole numbers, or of texts of them. Raises: UsageError."""
    if _is_text(column.type):
        try:
            return column.cast(NUMBER)
        except pa.ArrowInvalid as error:
            raise UsageError(f"{name}: {error}") from error
    return _typed(name, column, NUMBER, pa.types.is_integer)


def elements_of(name: str, column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array, Ints]:
    """The lists, their elements one after the other, and the row of each element."""
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
    """Lists of client ids, one after the other.

    Attributes:
        row: By id: its row.
        name: By id.
    """

    row: Ints
    name: pa.StringArray

    @classmethod
    def read(cls, name: str, column: pa.Array, reasons: Reasons) -> ClientLists:
        """A column of lists of ids; what a row lacks becomes its reason."""
        lists, names, row = elements_of(name, column, TEXTS)
        names = texts_of(name, names)
        reasons.put(nulls_of(lists), f"{name} is null: not known, which is not none")
        reasons.put(row[nulls_of(names)].tolist(), f"{name} has a null")
        return cls(row, names)


@dataclass(frozen=True, slots=True)
class QueueLists:
    """Lists of queues, one after the other.

    Attributes:
        row: By queue: its row.
        topic: By queue.
        broker_name: By queue.
        queue_id: By queue; -1 where it is null.
        structs: By queue: all its fields.
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
        """A column of lists of structs; what a row lacks becomes its reason."""
        lists, structs, row = elements_of(name, column, kind)
        if pa.types.is_null(structs.type):
            structs = structs.cast(kind.value_type)
        if not pa.types.is_struct(structs.type):
            raise _wrong_type(name, kind, column.type)
        reasons.put(nulls_of(lists), f"{name} is null: not known, which is not none")
        reasons.put(row[nulls_of(structs)].tolist(), f"{name} has a null queue")
        fields = dict(zip([f.name for f in structs.type], structs.flatten(), strict=True))
        if not {field.name for field in kind.value_type} <= fields.keys():
            raise _wrong_type(name, kind, column.type)
        for key in ("topic", "broker_name", "queue_id"):
            reasons.put(row[nulls_of(fields[key])].tolist(), f"{name} has a null {key}")
        topic, broker_name = (
            _typed(f"{key} of {name}", fields[key], TEXT, _is_text)
            for key in ("topic", "broker_name")
        )
        ids = _typed(f"queue_id of {name}", fields["queue_id"], NUMBER, pa.types.is_integer)
        queue_id = ids.fill_null(-1).to_numpy()
        for at in np.flatnonzero((queue_id < 0) | (queue_id > JAVA_INT_MAX)).tolist():
            reasons.put([int(row[at])], f"{name} has queue_id {queue_id[at]}; 0 to {JAVA_INT_MAX}")
        return cls(row, topic, broker_name, queue_id, structs)

    def take(self, at: Ints) -> QueueLists:
        """Some of them."""
        if len(at) == len(self.row) and bool((at[1:] > at[:-1]).all()):
            return self
        topic, broker_name, structs = (
            array.take(pa.array(at)) for array in (self.topic, self.broker_name, self.structs)
        )
        return QueueLists(self.row[at], topic, broker_name, self.queue_id[at], structs)
