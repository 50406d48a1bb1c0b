"""Replaces client ids in tables by the pseudonyms of `rebalance_core.audit.redact`."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit import redact

_PLACE = re.compile(redact.PLACES_OF_CLIENTS)


def redacted(rows: pa.RecordBatch, salt: str) -> pa.RecordBatch:
    """Return the rows with pseudonyms for client ids and without connections and the text of
    rejected rows.

    Args:
        rows: the rows of any table; names may be encoded.
        salt: the salt for the pseudonyms.
    """
    columns = [_redacted(name, rows[name], salt) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _redacted(name: str, column: pa.Array, salt: str) -> pa.Array:
    if name in redact.CLIENT_COLUMNS:
        return _mapped(column, lambda client_id: redact.pseudonym(client_id, salt))
    if name in redact.PLACE_COLUMNS:
        return pa.nulls(len(column), column.type)
    if name == "channel_ids":
        return pa.array([[None] * len(of_queue) for of_queue in column.to_pylist()], column.type)
    if name == "raw":
        return pa.array([redact.HIDDEN] * len(column), column.type)
    if name == "source":
        return _mapped(column, _hidden_client)
    if name == "note":
        return _mapped(column, _hidden_client)
    return _without_messages(column) if name == "issues" else column


def _hidden_client(place: str) -> str:
    hidden = redact.DUMP_OF_CLIENT.sub(
        lambda m: f"{m[1]}{redact.HIDDEN}{m[3].removeprefix('.txt')}", place
    )
    return _PLACE.sub(redact.HIDDEN, hidden)


def redacted_coverage(coverage: pa.Table, salt: str) -> pa.Table:
    """Return the rows with pseudonyms for clients' folders."""
    hidden = [redacted(rows, salt) for rows in coverage.to_batches()]
    coverage = pa.Table.from_batches(hidden, coverage.schema).combine_chunks()
    of_clients = pc.equal(coverage["role"], "CLIENT")
    hosts = _mapped(coverage["host"].combine_chunks(), lambda host: redact.pseudonym(host, salt))
    shown = pc.if_else(of_clients, hosts, coverage["host"])
    return coverage.set_column(coverage.column_names.index("host"), "host", shown)


def _mapped(
    column: pa.StringArray | pa.DictionaryArray, change: Callable[[str], str]
) -> pa.StringArray | pa.DictionaryArray:
    encoded = column.dictionary_encode()
    names = pa.array([change(name) for name in encoded.dictionary.to_pylist()], pa.string())
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(encoded.indices, names)
    return names.take(encoded.indices)


def _without_messages(issues: pa.ListArray) -> pa.Array:
    shown = (
        None
        if of_row is None
        else [{"code": issue["code"], "message": redact.HIDDEN} for issue in of_row]
        for of_row in issues.to_pylist()
    )
    return pa.array(shown, issues.type)
