"""Rows of every type that a contract has, whose hashes Spark computed once.

`data/spark_hashes.json` of the unit lane has the hashes of `rows` by Spark 4.3.0: `xxhash64` of
each column and whether it is null, lists and structs as JSON, the entries of maps sorted.
"""

from pathlib import Path

import pyarrow as pa

from rebalance_core.contracts.table import Table, columns

HASHES = Path(__file__).parent / "unit" / "checks" / "data" / "spark_hashes.json"

TABLE = Table(
    "hashed",
    "One column of each type.",
    columns(
        """
        text? STRING a text
        whole? INT 32 bits
        long? BIGINT 64 bits
        number? DOUBLE a number
        flag? BOOLEAN a truth value
        texts? ARRAY<STRING> texts
        fields? MAP<STRING, STRING> texts by name
        issues? ARRAY<STRUCT<code: STRING, message: STRING>> issues
        """
    ),
)
_SIGNS = 'abc"\\\n\x01é€😀/\u2028'
_WHOLES: tuple[object, ...] = (0, -1, 5, 2**31 - 1, -(2**31), None)
_LONGS: tuple[object, ...] = (0, -1, 2**53 + 1, 2**63 - 1, -(2**63), None)
_NUMBERS: tuple[object, ...] = (0.0, -0.0, 1.5, 1e-5, 1e23, float("nan"), float("inf"), -3.25, None)
_FLAGS: tuple[object, ...] = (True, False, None)
_TEXTS: tuple[object, ...] = ([], ["a", None], [None, "a"], ["é", 'a"b', ""], None)
_FIELDS: tuple[object, ...] = (
    {},
    {"b": "1", "a": None},
    {"a": None, "b": "1"},
    {"😀": "x\ty", "": ""},
    None,
)
_ISSUES: tuple[object, ...] = ([], [("A", "x")], [("A", None), (None, "A")], [None], None)


def rows() -> list[tuple[object, ...]]:
    """Texts of 0 to 70 bytes and signs, beside all values of the other types and nulls."""
    cases: list[tuple[object, ...]] = []
    texts = ["x" * n for n in range(71)] + [_SIGNS[n % 12 :] * (n % 7) for n in range(60)] + [None]
    for n, text in enumerate(texts):
        others = (_WHOLES, _LONGS, _NUMBERS, _FLAGS, _TEXTS, _FIELDS, _ISSUES)
        cases.append((text, *(values[n % len(values)] for values in others)))
    return cases


def arrow_rows() -> pa.Table:
    """The same as an Arrow table."""
    named = [dict(zip(TABLE.column_names, row, strict=True)) for row in rows()]
    for row in named:
        issues = row["issues"]
        if isinstance(issues, list):
            keys = ("code", "message")
            row["issues"] = [i and dict(zip(keys, i, strict=True)) for i in issues]
        if isinstance(row["fields"], dict):
            row["fields"] = list(row["fields"].items())
    return pa.Table.from_pylist(named, TABLE.arrow_schema())
