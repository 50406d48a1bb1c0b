import json
from typing import Any

import pyarrow as pa

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.checks.hashing.row_hash import BLOCK_ROWS, row_hashes
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.contracts.table import columns
from tests.hash_cases import HASHES, TABLE, arrow_rows

MEMBERSHIPS = ALL_TABLES["memberships"]
ROW = dict(
    zip(
        MEMBERSHIPS.column_names,
        (
            *("c", "g", "1@1", None, ["a", "b"], "AVG", "5.3", "CLUSTERING", False, "CLIENT"),
            *(0, None, 1, None),
        ),
        strict=True,
    )
)


def digest_of(table: Table, *rows: dict[str, Any]) -> str:
    digest = TableDigest(table)
    digest.add(pa.Table.from_pylist(list(rows), table.arrow_schema()))
    return digest.result.digest


def test_hashes_are_those_of_spark() -> None:
    (batch,) = arrow_rows().combine_chunks().to_batches()
    expected = json.loads(HASHES.read_text())
    assert row_hashes(TABLE, batch).tolist() == expected
    assert row_hashes(TABLE, batch.slice(7, 90)).tolist() == expected[7:97]


def test_alike_rows_and_dictionaries_hash_alike() -> None:
    rows = arrow_rows()
    first = rows.slice(5, 1)
    text = rows["text"].combine_chunks().dictionary_encode()
    coded = rows.set_column(0, "text", text)
    many = pa.concat_tables([first] * 3 + [rows] + [first] * BLOCK_ROWS).combine_chunks()
    expected = json.loads(HASHES.read_text())
    hashes = row_hashes(TABLE, many.to_batches()[0]).tolist()
    assert hashes == [expected[5]] * 3 + expected + [expected[5]] * BLOCK_ROWS
    assert row_hashes(TABLE, coded.combine_chunks().to_batches()[0]).tolist() == expected


def test_the_digest_depends_on_the_rows_alone() -> None:
    rows = arrow_rows()
    whole, parts, other = TableDigest(TABLE), TableDigest(TABLE), TableDigest(TABLE)
    whole.add(rows)
    other.add(rows.slice(0, 40))
    parts.add(rows.slice(40).take(pa.array(range(len(rows) - 41, -1, -1))))
    parts.merge(other)
    assert whole.result == parts.result
    assert whole.total == sum(json.loads(HASHES.read_text()))
    parts.add(rows.slice(0, 1))
    assert parts.result != whole.result


def test_the_digest_of_no_rows_is_spark_s() -> None:
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
    """Few long texts are hashed one by one, many at once."""
    texts = [letter * (1_000 + 37 * number) for number, letter in enumerate("abcdefghij")]
    some = arrow_rows().slice(0, len(texts))
    place = some.schema.get_field_index("text")
    rows = some.set_column(place, some.schema.field(place), pa.array(texts))
    (batch,) = rows.combine_chunks().to_batches()
    together = row_hashes(TABLE, batch).tolist()
    alone = [row_hashes(TABLE, batch.slice(n, 1)).tolist()[0] for n in range(len(texts))]
    assert together == alone
    assert len(set(alone)) == len(texts)
