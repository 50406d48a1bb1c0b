"""Both carriers read, check and fingerprint the same: `rebalance_core.checks` beside Spark."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks import parquet_rows
from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_counts import Content
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark import checks
from rebalance_core.spark.read_tables import InputTables
from tests.line_cases import BAD_TYPES, CSV_LINES, NOT_ONE_OBJECT
from tests.row_cases import DEFAULTS, EVENTS, rows_by_table

ODD_FIELDS = (
    '"subscriptions":[1,2.50,{"a":[NaN]}]', '"perm":-0', '"perm":1e1', '"perm":+INF',
    '"topic":{"a":1,"a":2}', '"topic":["😀"]', '"topic":"\\ud800"', '"topic":"[x"', '"topic":5',
    '"x":1,"x":2,"topic":[1]', '"event_ms":"1700000000001.0"', '"version":5.3', '"cluster":"d"',
    '"channel_id":"2020-01-01T00:00:00Z"', '"source":"a:1"', '"sequence":9223372036854775808',
)  # fmt: skip


def odd_lines() -> list[str]:
    start = json.dumps(DEFAULTS[EVENTS] | {"sequence": 1})[:-1]
    texts = [f"{start}, {field}}}" for field in ODD_FIELDS]
    texts += [json.dumps(DEFAULTS[EVENTS] | {"sequence": 2, name: v}) for name, v in BAD_TYPES]
    return [*NOT_ONE_OBJECT, *texts, *texts[:3], f"{start}}}]", f"{start}}}] x", "\ufeff{}", "\x1c"]


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def json_parts(folder: Path) -> None:
    lines, _ = rows_by_table()
    for name, texts in lines.items():
        half = len(texts) // 2
        first = "\r\n".join(["", *texts[:half], " "]).encode()
        write(folder / name / "part 0+1%20é.jsonl", b"\xef\xbb\xbf" + first)
        write(folder / name / "sub" / "part-1.json.gz", "\n".join(texts[half:]).encode())
        write(folder / name / "_SUCCESS", b"no rows")
    broken = b'\n\xff\xfe{}\r{"x\xc3":1}\na\xe2\x82b\n\xed\xa0\x80'
    write(folder / EVENTS / "odd.jsonl", "\n".join(odd_lines()).encode() + broken)


def csv_parts(folder: Path) -> None:
    lines, _ = rows_by_table()
    for name, texts in lines.items():
        path = folder / f"{name}.csv" / "part-0.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
            cells = csv.writer(file)
            cells.writerow([*INPUT_TABLES[name].column_names, "more"])
            for text in texts:
                row = json.loads(text) if text.endswith("}") else {}
                cells.writerow([row.get(column) for column in INPUT_TABLES[name].column_names])
                cells.writerow([*map(row.get, INPUT_TABLES[name].column_names), "x"])
            file.write("\n".join(CSV_LINES))


def parquet_parts(spark: SparkSession, folder: Path) -> None:
    lines, _ = rows_by_table()
    for name, texts in lines.items():
        good = [text for text in texts if text.endswith("}")]
        frame = spark.createDataFrame([(text,) for text in good], "text STRING")
        names = ", ".join(f"`{c}` STRING" for c in INPUT_TABLES[name].column_names)
        row = sf.from_json("text", names)
        wide = frame.select(row.alias("row")).select(
            "row.*",
            sf.lit(1.5).alias("number"),
            sf.array(sf.lit("a"), sf.lit(None)).alias("list"),
            sf.lit("2020-01-02 03:04:05.678").cast("TIMESTAMP").alias("moment"),
        )
        wide.repartition(2).write.parquet(str(folder / f"{name}.parquet"))


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, list) else value


def assert_agree(spark: SparkSession, folder: Path) -> None:
    inputs = InputTables.read(spark, str(folder))
    quarantined = checks.check_and_count(inputs)
    mine = read_input_tables(str(folder))
    checked = check_tables(mine)
    assert mine.unknown_columns == quarantined.unknown
    assert mine.paths == inputs.paths
    assert checked.counts == quarantined.counts
    for name, counts in checked.counts.items():
        assert counts.content == quarantined.counts[name].content != Content()
    rejected = quarantined.rejected.collect()
    assert Counter(
        (r["table_name"], r["source"], r["raw"], *((i["code"], i["message"]) for i in r["issues"]))
        for r in checked.rejected.to_pylist()
    ) == Counter((r.table_name, r.source, r.raw, *map(tuple, r.issues)) for r in rejected)
    for name, frame in quarantined.tables.items():
        used = Counter(tuple(map(plain, row)) for row in frame.collect())
        rows = checked.tables[name].to_pylist()
        assert Counter(tuple(map(plain, row.values())) for row in rows) == used
    assert checked.rejections == quarantined.rejections
    quarantined.close()


def test_json_lines_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    json_parts(tmp_path)
    assert_agree(spark, tmp_path)


def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    csv_parts(tmp_path)
    assert_agree(spark, tmp_path)


def test_parquet(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet_parts(spark, tmp_path)
    assert_agree(spark, tmp_path)
    monkeypatch.setattr(parquet_rows, "_WHOLE_BYTES", 0)  # each row group is a piece
    assert_agree(spark, tmp_path)
