"""The declaration of a table, the schemas derived from it, and conversion of rows from dicts to
Arrow and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rebalance_core.contracts.derived import Derived

if TYPE_CHECKING:
    import pyarrow as pa


QUEUE_KEY = ("topic", "broker_name", "queue_id")
"""The columns that name a queue of a cluster."""

NONE_DERIVED: Mapping[str, Derived] = {}
ISSUES_TYPE = "ARRAY<STRUCT<code: STRING, message: STRING>>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its SQL type, nullability and meaning (with the unit).

    ``allowed``: the permitted words; empty if any value of the type is. ``derived``: how it is
    computed from other columns of its row, if it is.
    """

    name: str
    type: str
    nullable: bool
    meaning: str
    allowed: tuple[str, ...] = ()
    derived: Derived | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns in order, its unique key, and the meaning of a row."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    required: bool = True

    def __post_init__(self) -> None:
        for name, derived in self.derived.items():
            for other in derived.of:
                if other not in self.column_names:
                    raise ValueError(
                        f"{self.name}: {name!r} derives from {other!r}, which is no column"
                    )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column with this name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def derived(self) -> dict[str, Derived]:
        """Functions that derive columns from others, by name."""
        return {c.name: c.derived for c in self.columns if c.derived is not None}

    def with_derived(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the row with its derived columns; all columns that they derive from must be
        present.
        """
        made = dict(row)
        for name, derived in self.derived.items():
            made[name] = derived.value(*(made[column] for column in derived.of))
        return made

    @property
    def ddl(self) -> str:
        """Return the columns as a Spark DDL string, NOT NULL where the contract requires it."""
        return ", ".join(
            f"`{column.name}` {column.type}" + ("" if column.nullable else " NOT NULL")
            for column in self.columns
        )

    @property
    def plain_ddl(self) -> str:
        """The columns as a Spark DDL string, all nullable."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def arrow_schema(self) -> pa.Schema:
        """Return the columns as an Arrow schema, all nullable."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in self.columns])


@cache
def arrow_type(sql_type: str) -> pa.DataType:
    """Return the Arrow type of a SQL type that the contracts use."""
    import pyarrow as pa

    return {
        "STRING": pa.string(),
        "BIGINT": pa.int64(),
        "INT": pa.int32(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
        "DATE": pa.date32(),
        "ARRAY<STRING>": pa.list_(pa.string()),
        "ARRAY<INT>": pa.list_(pa.int32()),
        "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
        "MAP<STRING, INT>": pa.map_(pa.string(), pa.int32()),
        ISSUES_TYPE: pa.list_(pa.struct([("code", pa.string()), ("message", pa.string())])),
    }[sql_type]


def columns(
    text: str, derived: Mapping[str, Derived] = NONE_DERIVED, /, **allowed: Sequence[str]
) -> tuple[Column, ...]:
    """Declare columns one per line: ``name[?] TYPE meaning``; ``?`` marks a nullable column.

    Args:
        text: the lines; ``{allowed}`` in a meaning becomes the list of the allowed words.
        derived: how columns derive from others, by name.
        allowed: the words a column may hold, by its name.

    >>> columns("epoch INT counts from 0")[0].type
    'INT'
    >>> columns("status STRING {allowed}", status=("A", "B", "C"))[0].meaning
    'A, B or C'
    """
    declared = []
    for line in text.strip().splitlines():
        name, rest = line.strip().split(" ", 1)
        kind = next(
            type_name
            for type_name in _TYPES
            if rest == type_name or rest.startswith(type_name + " ")
        )
        words = tuple(allowed.get(name.removesuffix("?"), ()))
        meaning = rest[len(kind) :].strip().replace("{allowed}", _listed(words))
        name, nullable = name.removesuffix("?"), name.endswith("?")
        declared.append(Column(name, kind, nullable, meaning, words, derived.get(name)))
    for name in derived.keys() - {column.name for column in declared}:
        raise ValueError(f"derived: {name!r} is no column of these")
    return tuple(declared)


def _listed(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


_TYPES = (
    ISSUES_TYPE,
    "ARRAY<STRING>",
    "ARRAY<INT>",
    "MAP<STRING, STRING>",
    "MAP<STRING, INT>",
    "STRING",
    "BIGINT",
    "BOOLEAN",
    "DOUBLE",
    "DATE",
    "INT",
)


def batch_of_rows(table: Table, rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    """Return the rows with all columns of the table; columns that a row lacks are null."""
    return batch_of_columns(
        table, {c.name: [row.get(c.name) for row in rows] for c in table.columns}
    )


def batch_of_columns(table: Table, values: Mapping[str, Sized]) -> pa.RecordBatch:
    """Return equally long lists or arrays by column, with all of the table's columns, missing ones
    null.
    """
    import pyarrow as pa

    length = max(map(len, values.values()), default=0)
    arrays = [_array(column, values.get(column.name), length) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema())


RowT = TypeVar("RowT", bound=Mapping[str, object])


def rows_of_arrow(table: pa.Table | pa.RecordBatch) -> list[RowT]:
    """Return the rows as dicts, of the type in `contracts.rows` that the caller expects."""
    import pyarrow as pa

    rows = table.to_pylist()
    for field in table.schema:
        if pa.types.is_map(field.type):
            for row in rows:
                if row[field.name] is not None:
                    row[field.name] = dict(row[field.name])
    return rows  # type: ignore[no-any-return]  # pyarrow has no types


def _array(column: Column, values: Any, length: int) -> pa.Array:
    import pyarrow as pa

    kind = arrow_type(column.type)
    if values is None:
        return pa.nulls(length, kind)
    if pa.types.is_map(kind):
        values = [None if value is None else list(value.items()) for value in values]
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape but UTF-8 lacks
        return pa.array(list(map(_encodable, values)), kind)


def _encodable(value: Any) -> Any:
    """Return the value with a question mark for each lone surrogate, as the JVM encodes it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return type(value)(map(_encodable, value))  # type: ignore[call-arg]  # a list or a tuple
    return value


SOURCE: Final = "_source"
RAW: Final = "_raw"
READ_ISSUES = "_read_issues"
TECHNICAL = (SOURCE, RAW, READ_ISSUES)
"""The source of a row, the row as read, and its unreadable values."""

TABLE = "_table"
"""The input table of a row, for rows of several tables in one batch."""
