"""Rows of several tables as one stream: what a Spark task can yield."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from rebalance_core.contracts.table import Column
from rebalance_core.producers.simulation.parts import PARTS

KIND = "kind"


def _columns() -> tuple[Column, ...]:
    """Columns of all parts, each once: where names are equal, types are."""
    every: dict[str, Column] = {}
    for table in PARTS.values():
        every |= {column.name: column for column in table.columns}
    return tuple(every.values())


TAGGED_DDL = ", ".join([f"{KIND} STRING", *(f"`{c.name}` {c.type}" for c in _columns())])
"""The columns of `tagged` for Spark."""


def tagged(parts: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows of all tables with the name of their table; columns of others are null."""
    names = [column.name for column in _columns()]
    types = {field.name: field.type for t in PARTS.values() for field in t.arrow_schema()}
    for kind, rows in parts.items():
        columns = [pa.array([kind] * len(rows), pa.string())]
        for name in names:
            there = name in rows.column_names
            nulls = pa.nulls(len(rows), types[name])
            columns.append(rows[name].combine_chunks().cast(types[name]) if there else nulls)
        yield pa.RecordBatch.from_arrays(columns, names=[KIND, *names])
