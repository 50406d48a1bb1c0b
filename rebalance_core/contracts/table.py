"""The declaration of a table, and the schemas that derive from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ISSUES_TYPE = "ARRAY<STRUCT<code: STRING, message: STRING>>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its SQL type, whether it may be null, what it means (with the unit).

    ``allowed``: the words it may hold; empty: any value of the type.
    """

    name: str
    type: str
    nullable: bool
    meaning: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in order, its unique key and what a row is.

    ``since``: the contract version that brought it; runs of earlier ones did not write it.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    required: bool = True
    since: int = 1

    @property
    def column_names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def ddl(self) -> str:
        """The columns as a Spark DDL string, NOT NULL where the contract says so."""
        return ", ".join(
            f"`{column.name}` {column.type}" + ("" if column.nullable else " NOT NULL")
            for column in self.columns
        )

    @property
    def plain_ddl(self) -> str:
        """The columns as a Spark DDL string, all nullable."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema, all nullable."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in self.columns])


@cache
def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type of one of the SQL types the contracts use."""
    import pyarrow as pa

    return {
        "STRING": pa.string(),
        "BIGINT": pa.int64(),
        "INT": pa.int32(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
        "ARRAY<STRING>": pa.list_(pa.string()),
        "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
        ISSUES_TYPE: pa.list_(pa.struct([("code", pa.string()), ("message", pa.string())])),
    }[sql_type]


def columns(text: str, **allowed: Sequence[str]) -> tuple[Column, ...]:
    """Declare columns one per line: ``name[?] TYPE meaning``; ``?`` marks a nullable column.

    Args:
        text: the lines; ``{allowed}`` in a meaning becomes the list of the allowed words.
        allowed: the words a column may hold, by its name.

    >>> columns("epoch INT counts from 0")[0].type
    'INT'
    >>> columns("status STRING {allowed}", status=("A", "B", "C"))[0].meaning
    'A, B or C'
    """
    declared = []
    for line in text.strip().splitlines():
        name, rest = line.strip().split(" ", 1)
        kind = next(known for known in _TYPES if rest == known or rest.startswith(known + " "))
        words = tuple(allowed.get(name.removesuffix("?"), ()))
        meaning = rest[len(kind) :].strip().replace("{allowed}", _listed(words))
        declared.append(Column(name.removesuffix("?"), kind, name.endswith("?"), meaning, words))
    return tuple(declared)


def _listed(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


_TYPES = (
    ISSUES_TYPE,
    "ARRAY<STRING>",
    "MAP<STRING, STRING>",
    "STRING",
    "BIGINT",
    "BOOLEAN",
    "DOUBLE",
    "INT",
)
