"""What `tests/spark/test_read.py` demands of Spark's reader, of the one without a JVM."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.conform import conform, conformed_schema
from rebalance_core.checks.input_tables import input_tables_of, read_input_tables
from rebalance_core.contracts import INPUT_TABLES, unpacking
from rebalance_core.contracts.table import TECHNICAL
from rebalance_core.model.errors import InputRefused, UsageError
from tests.line_cases import BAD_TYPES, NOT_ONE_OBJECT
from tests.unit.checks.files import BIG, EVENT, issues_of, line, read_events, write

EVENTS = INPUT_TABLES["cluster_events"]


def test_json_values_are_exact_and_rows_say_where_they_stand(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cluster_events.jsonl",
        line(event_ms=BIG, subscriptions=['a"b', "é,|"], client_id='[::1]@"1\\', topic="t\u2028"),
        "",
        "   ",
        line(subscriptions=[], read_queue_nums=-3, topic=None),
    )
    first, second = read_events(path)
    assert first["event_ms"] == BIG
    assert first["subscriptions"] == ['a"b', "é,|"]
    assert (first["client_id"], first["topic"]) == ('[::1]@"1\\', "t\u2028")
    assert (second["subscriptions"], second["read_queue_nums"], second["topic"]) == ([], -3, None)
    assert [row["_source"] for row in (first, second)] == [f"{path.name}:1", f"{path.name}:4"]
    assert issues_of(first) == issues_of(second) == []


@pytest.mark.parametrize("text", NOT_ONE_OBJECT)
def test_a_line_that_is_not_one_object_is_unparsable(tmp_path: Path, text: str) -> None:
    (row,) = read_events(write(tmp_path / "e.jsonl", text))
    assert issues_of(row) == [("UNPARSABLE", "the line is not a JSON object")]
    assert row["_raw"] == text
    assert row["cluster"] is None


def test_a_line_that_is_not_utf8_is_unparsable(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(line(client_id="X").encode().replace(b"X", b"\xff\xfe") + b"\n")
    (row,) = read_events(path)
    assert issues_of(row) == [("UNPARSABLE", "the line is not UTF-8")]
    assert "\ufffd" in row["_raw"]


@pytest.mark.parametrize(("column", "value"), BAD_TYPES)
def test_a_bad_type_is_named_and_the_rest_of_the_row_read(
    tmp_path: Path, column: str, value: object
) -> None:
    (row,) = read_events(write(tmp_path / "e.jsonl", line(**{column: value})))
    ((code, message),) = issues_of(row)
    assert code == "BAD_TYPE"
    assert message.startswith(f"{column} is ")
    shown = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    assert shown in message
    assert row[column] is None
    assert (row["cluster"], row["sequence"]) == ("c", 1)


def test_whole_numbers_written_as_decimals_or_text_are_numbers(tmp_path: Path) -> None:
    text = line(read_queue_nums=4.0, perm="6", event_ms=str(BIG))
    (row,) = read_events(write(tmp_path / "e.jsonl", text))
    assert (row["read_queue_nums"], row["perm"], row["event_ms"]) == (4, 6, BIG)


def test_booleans(tmp_path: Path) -> None:
    write(tmp_path / "cluster_events.jsonl", line())
    group = {"cluster": "c", "consumer_group": "g"}
    texts = (json.dumps(group | {"ordered": value}) for value in (True, False, None, "maybe"))
    write(tmp_path / "consumer_groups.jsonl", *texts)
    rows = read_input_tables(str(tmp_path)).tables["consumer_groups"].to_pylist()
    assert [row["ordered"] for row in rows] == [True, False, None, None]
    assert [len(row["_read_issues"]) for row in rows] == [0, 0, 0, 1]


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".jsonl.gz"])
def test_bom_crlf_and_gz(tmp_path: Path, suffix: str) -> None:
    texts = (line(), "", line(sequence=2))
    path = write(tmp_path / f"cluster_events{suffix}", *texts, end="\r\n", start="\ufeff")
    rows = read_events(path)
    assert [row["sequence"] for row in rows] == [1, 2]
    assert [row["_source"] for row in rows] == [f"{path.name}:1", f"{path.name}:3"]
    assert rows[0]["_raw"] == line()


def test_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cluster_events.csv",
        "sequence,cluster,event_ms,event_type,subscriptions,client_id,more,read_queue_nums",
        f'1,c,{BIG},CONSUMER_JOIN,"[""a,b"",""c""]","x ""y"", z",,4.0',
        '2,c,1,CONSUMER_JOIN,,"",,',
        "3,c,1",
        "4,c,1,X,a,b,c,5,6",
        '5,c,1,X,"[""a"",""b",b,c,d',
        end="\r\n",
        start="\ufeff",
    )
    rows = read_events(path)
    assert [row["_source"] for row in rows] == [f"cluster_events.csv:{n}" for n in range(2, 7)]
    assert (rows[0]["event_ms"], rows[0]["subscriptions"]) == (BIG, ["a,b", "c"])
    assert (rows[0]["client_id"], rows[0]["read_queue_nums"]) == ('x "y", z', 4)
    assert [rows[1][n] for n in ("subscriptions", "client_id", "read_queue_nums")] == [None] * 3
    codes = [[code for code, _ in issues_of(row)] for row in rows]
    assert codes == [[], [], ["UNPARSABLE"], ["UNPARSABLE"], ["BAD_TYPE", "BAD_TYPE"]]
    ((_, why),) = issues_of(rows[2])
    assert "does not have the header's 8 columns; each row must be one line" in why
    unknown = read_input_tables(paths={"cluster_events": str(path)}).unknown_columns
    assert unknown == {"cluster_events": ["more"]}


def test_csv_parts_need_one_header(tmp_path: Path) -> None:
    head = "cluster,event_ms,sequence,event_type"
    folder = tmp_path / "cluster_events.csv"
    write(folder / "part-0.csv", head, "c,1,1,A")
    write(folder / "part-1.csv.gz", head, "c,1,2,B")
    write(folder / "part-2.csv")
    rows = read_events(folder)
    assert [(row["sequence"], row["_source"]) for row in rows] == [
        (1, "part-0.csv:2"),
        (2, "part-1.csv.gz:2"),
    ]
    write(folder / "part-3.csv", "x")
    with pytest.raises(
        InputRefused, match=r"part-3\.csv: the header is 'x'.* must have the same header"
    ):
        read_events(folder)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("cluster;topic", "c;t"), "it has cluster;topic; required: .* by commas"),
        (("\0c\0l", "c"), r"it has \?c\?l; required: .* in UTF-8"),
        (("cluster,topic", "c,t"), r"lacks the column\(s\) event_ms, sequence, event_type; it has"),
        (("cluster,cluster", "c,t"), "the header names cluster more than once"),
        (("", "c,t"), r"lacks the column\(s\) cluster"),
    ],
)
def test_a_bad_header_is_refused(tmp_path: Path, lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InputRefused, match=reason):
        read_events(write(tmp_path / "cluster_events.csv", *lines))


def test_parquet(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "cluster": ["c", "c"],
            "event_ms": [BIG, 2],
            "sequence": pa.array([1, 2], pa.int32()),
            "event_type": pa.array(["BROKER_UP", "X"]).dictionary_encode(),
            "subscriptions": [["a"], None],
            "read_queue_nums": [4.0, 1.5],
            "other": ["x", "y"],
        }
    )
    folder = tmp_path / "cluster_events.parquet"
    folder.mkdir()
    pq.write_table(rows, folder / "part-0.parquet")
    pq.write_table(rows.slice(0, 1).drop_columns("other"), folder / "part-1.parquet")
    inputs = read_input_tables(str(tmp_path))
    first, second, third = inputs.tables["cluster_events"].to_pylist()
    assert (first["event_ms"], first["subscriptions"], first["read_queue_nums"]) == (BIG, ["a"], 4)
    assert [row["_source"] for row in (first, second, third)] == [
        "part-0.parquet:1",
        "part-0.parquet:2",
        "part-1.parquet:1",
    ]
    assert json.loads(second["_raw"])["other"] == "y"
    assert "other" not in json.loads(third["_raw"])
    assert issues_of(first) == []
    assert issues_of(second) == [("BAD_TYPE", "read_queue_nums is '1.5', not a valid INT")]
    assert inputs.unknown_columns == {"cluster_events": ["other"]}


def test_tables_are_found_by_name_and_explicit_paths_go_first(tmp_path: Path) -> None:
    folder = tmp_path / "cluster_events in"
    write(folder / "cluster_events.jsonl.gz", line(sequence=1, extra=1))
    write(folder / "consumer_groups" / "part-0.json", '{"cluster":"c","consumer_group":"g"}')
    write(folder / "queue_offsets.csv")
    write(folder / "old" / "committed_offsets.jsonl", "{}")
    write(folder / "_run.json", "{}")
    other = write(tmp_path / "groups.txt", '{"cluster":"c","consumer_group":"h","x":1}')
    inputs = read_input_tables(str(folder))
    assert set(inputs.tables) == {"cluster_events", "consumer_groups", "queue_offsets"}
    assert inputs.tables["consumer_groups"]["consumer_group"].to_pylist() == ["g"]
    assert len(inputs.tables["queue_offsets"]) == 0
    assert inputs.unknown_columns == {"cluster_events": ["extra"]}
    inputs = read_input_tables(
        str(folder), paths={"consumer_groups": str(other)}, input_format="json"
    )
    assert inputs.tables["consumer_groups"]["consumer_group"].to_pylist() == ["h"]


def test_refusals(tmp_path: Path) -> None:
    def refused(reason: str, folder: str | None = None, **events: str) -> None:
        paths = {"cluster_events": events["path"]} if "path" in events else {}
        with pytest.raises(InputRefused, match=reason):
            read_input_tables(folder, paths=paths, input_format=events.get("kind"))

    refused("nowhere does not exist", str(tmp_path / "nowhere"))
    refused(r"none\.jsonl does not exist", path=str(tmp_path / "none.jsonl"))
    refused("the path for cluster_events is missing")
    with pytest.raises(UsageError, match="gs://b/x: without Spark only local folders, s3"):
        read_input_tables(paths={"cluster_events": "gs://b/x"})
    write(tmp_path / "a" / "events.jsonl", line())
    refused(r"expected cluster_events\.jsonl.* found events.jsonl", str(tmp_path / "a"))
    write(tmp_path / "b" / "cluster_events.jsonl", line())
    write(tmp_path / "b" / "cluster_events.csv", line())
    refused("more than once", str(tmp_path / "b"))
    odd = str(write(tmp_path / "c.txt", line()))
    refused("does not show its format", path=odd)
    refused("cannot be read as parquet", path=odd, kind="parquet")
    with pytest.raises(UsageError, match="unknown input format 'xml'"):
        read_input_tables(paths={"cluster_events": odd}, input_format="xml")


def test_damaged_gzip_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl.gz", *(line(sequence=n) for n in range(5000)))
    whole = path.read_bytes()
    for damaged, reason in (
        (whole[: len(whole) // 2], "truncated gzip"),
        (b"plain", "not a gzip"),
        (whole[:-8] + b"\0" * 8, "damaged gzip"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputRefused, match=rf"e\.jsonl\.gz cannot be read: {reason}"):
            read_events(path)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_packed_table_is_unpacked_up_to_a_limit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    pack: Callable[[bytes], bytes],
    kind: str,
) -> None:
    path = tmp_path / f"cluster_events.{kind}{suffix}"
    path.write_bytes(pack(bytes(50 * 1024**2)))
    monkeypatch.setattr(unpacking, "UNPACKED_LIMIT", 10 * 1024**2)
    with pytest.raises(InputRefused, match=rf"{suffix} unpacks to more than 10485760 bytes, the l"):
        read_events(path, kind)
    monkeypatch.undo()
    path.write_bytes(pack(bytes(unpacking.RATIO_FROM + 1)))
    packed = path.stat().st_size
    with pytest.raises(InputRefused, match=f"more than 200 times its {packed} bytes; unpack it"):
        read_events(path, kind)


def test_patterns_and_hidden_files(tmp_path: Path) -> None:
    for name in ("x-1.jsonl", "x-2.jsonl", "_x.jsonl", ".x.jsonl"):
        write(tmp_path / name, line())
    write(tmp_path / "_hidden" / "x-3.jsonl", line())
    for pattern, rows in (("x-*.jsonl", 2), ("x-{1,3}.jsonl", 1), ("x-[12].jsonl", 2), ("", 2)):
        assert len(read_events(tmp_path / pattern, "json")) == rows


def test_hand_made_tables_are_conformed() -> None:
    rows = pa.table(
        {
            "cluster": ["c", "c"],
            "event_ms": [1.0, 2.5],
            "sequence": [1, 1],
            "event_type": ["X", "X"],
            "perm": [float("nan"), 4.0],
            "topic": pa.nulls(2),
        }
    )
    once = conform(EVENTS, rows)
    assert once.schema == conformed_schema(EVENTS)
    first, second = once.to_pylist()
    assert (first["event_ms"], first["perm"], first["topic"]) == (1, None, None)
    assert issues_of(first) == []
    assert issues_of(second) == [
        ("BAD_TYPE", "event_ms is '2.5', not a valid BIGINT (epoch milliseconds)")
    ]
    assert json.loads(second["_raw"])["event_ms"] == 2.5
    assert conform(EVENTS, once).equals(once)
    with pytest.raises(InputRefused, match="event_ms, sequence, event_type"):
        conform(EVENTS, pa.table({"cluster": ["c"]}))
    mine = input_tables_of({"cluster_events": rows.append_column("mine", rows["perm"])})
    assert mine.unknown_columns == {"cluster_events": ["mine"]}
    assert mine.tables["cluster_events"].column_names == [*EVENTS.column_names, *TECHNICAL]
    with pytest.raises(InputRefused, match="the path for cluster_events is missing"):
        input_tables_of({})


def test_rows_of_an_object_without_members_lack_everything(tmp_path: Path) -> None:
    (row,) = read_events(write(tmp_path / "e.jsonl", "{}"))
    assert {row[name] for name in EVENT} == {None}
    assert issues_of(row) == []
