"""Hashes of rows of every type that a contract has, and the digests made of them."""

from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.checks.digest import (
    BLOCK_ROWS,
    Hashes,
    TableDigest,
    TableWritten,
    column_hashes,
)
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.table import columns

MEMBERSHIPS = ALL_TABLES["memberships"]
ROW = dict(
    zip(
        MEMBERSHIPS.column_names,
        (
            *("c", "g", "1@1", None, ["a", "b"], "AVG", "5.3", "CLUSTERING", False, "CLIENT"),
            *(0, None, 1, None, None),
        ),
        strict=True,
    )
)


def digest_of(table: Table, *rows: dict[str, Any]) -> str:
    digest = TableDigest(table)
    digest.add(pa.Table.from_pylist(list(rows), table.arrow_schema()))
    return digest.result.digest


HASHED = Table(
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
    named = [dict(zip(HASHED.column_names, row, strict=True)) for row in rows()]
    for row in named:
        issues = row["issues"]
        if isinstance(issues, list):
            keys = ("code", "message")
            row["issues"] = [i and dict(zip(keys, i, strict=True)) for i in issues]
        if isinstance(row["fields"], dict):
            row["fields"] = list(row["fields"].items())
    return pa.Table.from_pylist(named, HASHED.arrow_schema())


def hashes_of(rows: pa.Table) -> Hashes:
    (batch,) = rows.combine_chunks().to_batches()
    return column_hashes(HASHED.columns, batch)


def test_hashes_stay_what_they_are() -> None:
    """Everywhere and in every release: digests of earlier runs are compared with later ones."""
    rows = arrow_rows()
    assert [f"{value:016x}" for value in hashes_of(rows)[[0, 1, 70, 75, -1]]] == [
        "3b9fac3c3a142b32",
        "eb0518a76e857219",
        "16501889f602b9db",
        "a517d4451e336867",
        "21b019ca3ef80a18",
    ]
    digest = TableDigest(HASHED)
    digest.add(rows)
    assert digest.result == TableWritten(len(rows), "56a447c984fc03eea2775f9d7d1418be")


def test_a_hash_depends_on_the_row_alone() -> None:
    rows = arrow_rows()
    expected = hashes_of(rows)
    assert len(set(expected.tolist())) == len(rows)
    assert (hashes_of(rows.slice(7, 90)) == expected[7:97]).all()
    alone = [hashes_of(rows.slice(n, 1))[0] for n in range(len(rows))]
    assert (np.array(alone) == expected).all()
    coded = rows.set_column(0, "text", rows["text"].combine_chunks().dictionary_encode())
    assert (hashes_of(coded) == expected).all()
    first = rows.slice(5, 1)
    many = hashes_of(pa.concat_tables([first] * 3 + [rows] + [first] * BLOCK_ROWS))
    assert (many == np.concatenate([expected[[5] * 3], expected, expected[[5] * BLOCK_ROWS]])).all()


def test_hashes_of_long_texts_stay_what_they_are() -> None:
    """They are longer than the stretch that is hashed at once."""
    table = Table("t", "", columns("text? STRING a text"))
    texts = ["ab", "x" * 65_536, "", "é" * 40_000, "y" * 65_535, "cd"]
    hashes = column_hashes(table.columns, pa.record_batch([pa.array(texts)], ["text"]))
    assert [f"{value:016x}" for value in hashes] == [
        "ba9ee7a2a63cf83c",
        "8cf286faeedc8262",
        "2a988e853279c3ba",
        "001ffac60acdfa81",
        "c41f70c1884c11e5",
        "149757ac83b66fe6",
    ]


def test_bytes_under_nulls_do_not_count() -> None:
    texts = pa.array(["ab", "cd", "ef"])
    under = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *texts.buffers()[1:]])
    assert under.to_pylist() == ["ab", None, "ef"]
    table = Table("t", "", columns("text? STRING a text"))
    plain, odd = (
        column_hashes(table.columns, pa.record_batch([values], ["text"]))
        for values in (pa.array(["ab", None, "ef"]), under)
    )
    assert (plain == odd).all()


def test_the_digest_depends_on_the_rows_alone() -> None:
    rows = arrow_rows()
    whole, parts, other = TableDigest(HASHED), TableDigest(HASHED), TableDigest(HASHED)
    whole.add(rows)
    other.add(rows.slice(0, 40))
    parts.add(rows.slice(40).take(pa.array(range(len(rows) - 41, -1, -1))))
    parts.merge(other)
    assert whole.result == parts.result
    assert whole.total == sum(hashes_of(rows).tolist())
    parts.add(rows.slice(0, 1))
    assert parts.result != whole.result


def test_the_digest_of_no_rows() -> None:
    # printf 0:0 | sha256sum
    assert TableDigest(MEMBERSHIPS).result == TableWritten(0, "ac72368a586a18c19088393573ce0307")


def test_the_digest_sees_every_change() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"subscriptions": ["b", "a"]},
        {"subscriptions": ["a", "b", None]},
        {"subscriptions": [None, "a", "b"]},
        {"subscriptions": ["ab"]},
        {"subscriptions": []},
        {"subscriptions": ['a","b']},
        {"suspended": True},
        {"channel_id": "AVG", "strategy": ""},
        {"channel_id": ""},
        {"to_epoch": 1},
        {"to_ms": 1},
        {"to_epoch": 0},
        {"from_epoch": 1, "from_ms": 0},
        {"client_id": "1@", "strategy": "1AVG"},
        {"from_ms": 9007199254740993},
        {"from_ms": 9007199254740992},
    ]
    tables = [[ROW | change] for change in changes] + [[], [ROW] * 2, [ROW] * 3]
    assert len({digest_of(MEMBERSHIPS, *rows) for rows in tables}) == len(tables)


def test_the_digest_takes_maps_without_their_order() -> None:
    table = Table("t", "", columns("evidence? MAP<STRING, STRING> a map"))
    maps: list[dict[str, str | None] | None]
    maps = [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "2"}, {"a": None}, {}, None]
    rows = [{"evidence": None if each is None else list(each.items())} for each in maps]
    digests = [digest_of(table, row) for row in rows]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 5


def test_the_digest_sees_issues() -> None:
    issues: list[list[tuple[str | None, str | None]]]
    issues = [[("A", "x")], [("A", None)], [(None, "A")], [("A", "x"), ("A", "x")]]
    rows = [
        {
            "table_name": "t",
            "raw": "raw",
            "issues": [{"code": code, "message": text} for code, text in each],
        }
        for each in issues
    ]
    assert len({digest_of(ALL_TABLES["rejected"], row) for row in rows}) == len(issues)


def test_long_texts_hash_alike_alone_and_among_many() -> None:
    texts = [letter * (1_000 + 37 * number) for number, letter in enumerate("abcdefghij")]
    texts += ["ab" * 4_000, "ba" * 4_000, "a" * 8_000]
    some = arrow_rows().slice(0, len(texts))
    place = some.schema.get_field_index("text")
    rows = some.set_column(place, some.schema.field(place), pa.array(texts))
    alone = [hashes_of(rows.slice(n, 1))[0] for n in range(len(texts))]
    assert alone == hashes_of(rows).tolist()
    assert len(set(alone)) == len(texts)
