"""Tables without client ids: the same names as `rebalance_core.audit.redact` gives."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from rebalance_core.audit.redact import (
    CLIENT_COLUMNS,
    DUMP_OF_CLIENT,
    HIDDEN,
    PLACE_COLUMNS,
    PLACES_OF_CLIENTS,
    pseudonym,
)

_PLACE = re.compile(PLACES_OF_CLIENTS)


def redacted(rows: pa.RecordBatch, salt: str) -> pa.RecordBatch:
    """The rows with names for client ids, no connections, and no text of rejected rows.

    Args:
        rows: of any table; names may be coded.
        salt: of the names.
    """
    columns = [_redacted(name, rows[name], salt) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _redacted(name: str, column: pa.Array, salt: str) -> pa.Array:
    if name in CLIENT_COLUMNS:
        return _mapped(column, lambda client_id: pseudonym(client_id, salt))
    if name in PLACE_COLUMNS:
        return pa.nulls(len(column), column.type)
    if name == "raw":
        return pa.array([HIDDEN] * len(column), column.type)
    if name == "source":
        return _mapped(column, _hidden_client)
    return _without_messages(column) if name == "issues" else column


def _hidden_client(place: str) -> str:
    hidden = DUMP_OF_CLIENT.sub(lambda m: f"{m[1]}{HIDDEN}{m[3].removeprefix('.txt')}", place)
    return _PLACE.sub(HIDDEN, hidden)


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
        None if found is None else [{"code": one["code"], "message": HIDDEN} for one in found]
        for found in issues.to_pylist()
    )
    return pa.array(shown, issues.type)
