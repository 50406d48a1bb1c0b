"""Columns of moments that are stored as times."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest

import rebalance_core
from rebalance_core.cli.main import main
from rebalance_core.model.errors import InputRefused
from tests.tree import TREE

TABLES = TREE / "rebalance_core/bundled/demo/join-leave/tables"
NAMES = ("cluster_events", "consumer_groups", "queue_offsets", "committed_offsets")


def tables() -> dict[str, pa.Table]:
    return {name: pj.read_json(TABLES / f"{name}.jsonl") for name in NAMES}


def with_times(kind: pa.DataType) -> dict[str, pa.Table]:
    """The tables with the moments of each as times; one of a zone is stored in UTC."""
    found = {}
    for name, rows in tables().items():
        for column in ("event_ms", "observed_ms"):
            if column in rows.column_names:
                place = rows.column_names.index(column)
                times = (
                    rows[column].cast(pa.timestamp("ms")).cast(pa.timestamp(kind.unit), safe=False)
                )
                rows = rows.set_column(place, column, times.cast(kind))
        found[name] = rows
    return found


def ledger_of(given: dict[str, pa.Table]) -> dict[str, list[str]]:
    made = rebalance_core.simulate(given)
    return {name: sorted(map(repr, table.to_pylist())) for name, table in made.items()}


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("ms"),
        pa.timestamp("us"),
        pa.timestamp("ns"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "Asia/Shanghai"),
        pa.timestamp("ns", "America/New_York"),
    ],
    ids=str,
)
def test_times_of_any_unit_and_zone_give_the_same_ledger(kind: pa.DataType, tmp_path: Path) -> None:
    given = with_times(kind)
    assert given["cluster_events"]["event_ms"].type == kind
    assert ledger_of(given) == ledger_of(tables())
    for name, rows in given.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    from_files = rebalance_core.simulate(str(tmp_path))
    assert from_files["rejected"].num_rows == 0
    assert sorted(map(repr, from_files["diffs"].to_pylist())) == ledger_of(tables())["diffs"]


def test_frames_and_python_s_own_times() -> None:
    rows = tables()["cluster_events"].to_pylist()
    for row in rows:
        row["event_ms"] = dt.datetime.fromtimestamp(row["event_ms"] / 1000, dt.UTC)
    made = rebalance_core.simulate({"cluster_events": rows})
    assert (
        made["epochs"].num_rows
        == rebalance_core.simulate({"cluster_events": tables()["cluster_events"]})[
            "epochs"
        ].num_rows
    )
    frame = pa.Table.from_pylist(rows).to_pandas()
    assert rebalance_core.simulate({"cluster_events": frame})["epochs"] == made["epochs"]


def test_whole_seconds_and_what_does_not_fit() -> None:
    rows = tables()["cluster_events"]
    times = pc.divide(rows["event_ms"], 1000).cast(pa.timestamp("s"))
    made = rebalance_core.read_tables(
        {"cluster_events": rows.set_column(1, "event_ms", times).slice(0, 3)}
    )["cluster_events"]
    assert made["event_ms"].to_pylist() == [
        one // 1000 * 1000 for one in rows["event_ms"].to_pylist()[:3]
    ]
    far = pa.chunked_array([pa.array([2**62] * 3, pa.timestamp("s"))])
    given = {"cluster_events": rows.slice(0, 3).set_column(1, "event_ms", far)}
    with pytest.raises(InputRefused, match="3 of 3 rows are bad"):
        rebalance_core.simulate(given)


def dates() -> dict[str, pa.Table]:
    rows = tables()["cluster_events"]
    days = pa.array([dt.date(2026, 11, 21)] * len(rows))
    return {"cluster_events": rows.set_column(1, "event_ms", days)}


def test_python_refuses_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = dates()
    with pytest.raises(InputRefused) as caught:
        rebalance_core.simulate(given)
    (tmp_path / "in").mkdir()
    pq.write_table(given["cluster_events"], tmp_path / "in" / "cluster_events.parquet")
    words = ["simulate", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    assert main(None, [*words, "--run-on", "process"]) == 4
    said = capsys.readouterr().err
    assert str(caught.value).splitlines()[0] in said
    assert "event_ms is '2026-11-21', not a valid BIGINT (epoch milliseconds)" in said


def test_python_takes_the_limits_of_the_command() -> None:
    rows = tables()["cluster_events"]
    odd = rows.slice(0, 1).set_column(1, "event_ms", pa.array([5], pa.int64()))
    given = {"cluster_events": pa.concat_tables([rows, odd])}
    assert rebalance_core.simulate(given)["rejected"].num_rows == 1
    with pytest.raises(InputRefused, match="--on-bad-rows fail allows none"):
        rebalance_core.simulate(given, on_bad_rows="fail")
    with pytest.raises(InputRefused, match="more than max_bad_share"):
        rebalance_core.simulate(given, max_bad_share=0.01)
