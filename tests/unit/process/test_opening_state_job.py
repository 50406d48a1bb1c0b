"""The job keeps a state, and begins at the state of another run."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rebalance_core
from rebalance_core.checks.opening_state import end_of
from rebalance_core.cli.main import main
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.run_names import STATE
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import read_run
from tests.recordings.tables import DATA
from tests.unit.process.cut_inputs import by_text, later_rows, opened, since, until


def test_the_job_keeps_a_state_and_begins_at_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, cut_ms, _ = opened(tmp_path)
    for name, part in (("first", until(tables, cut_ms)), ("second", since(tables, cut_ms))):
        for table, rows in part.items():
            plain = rows.select(INPUT_TABLES[table].column_names)
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(plain, tmp_path / name / f"{table}.parquet")
    one, two = tmp_path / "one", tmp_path / "two"
    assert main("simulate", ["--input", str(tmp_path / "first"), "--output", str(one)]) == 0
    begin = ["--input", str(tmp_path / "second"), "--state", str(one)]
    assert main("simulate", [*begin, "--output", str(two), "--dry-run"]) == 0
    assert main("simulate", [*begin, "--output", str(two)]) == 0
    assert f"with an event after the end of {one}" in capsys.readouterr().out
    record = read_run(place_of(two))
    assert (record["period_from_ms"] or 0) >= cut_ms
    assert record["inputs"][0]["rows"] == len(since(tables, cut_ms)["cluster_events"])
    whole = rebalance_core.simulate(tables)
    expected = by_text(later_rows(whole, cut_ms))
    for source in (str(tmp_path / "second"), since(tables, cut_ms)):
        again = rebalance_core.simulate(source, state=one)
        assert by_text({name: rows.to_pylist() for name, rows in again.items()}) == expected
    nothing = ["--input", str(tmp_path / "first"), "--state", str(one)]
    assert main("simulate", [*nothing, "--output", str(tmp_path / "none")]) == 0
    assert f"--state {one}: no input row matches" in capsys.readouterr().err
    # the state of the second run is that of both
    assert main("simulate", [*begin, "--output", str(two)]) == 5
    assert main("simulate", ["--input", str(two / STATE), "--output", str(tmp_path / "all")]) == 0
    same = read_run(place_of(tmp_path / "all"))["outputs"]
    assert same["ownership"]["rows"] == len(whole["ownership"])


def test_a_folder_without_a_run_is_no_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output", str(tmp_path / "out")]
    assert main("simulate", [*words, "--state", str(tmp_path / "nowhere")]) == 4
    said = capsys.readouterr().err
    assert "--state: " in said
    assert "nowhere holds no _run.json" in said


def test_a_state_that_lost_rows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    assert main("simulate", [*words, str(tmp_path / "one")]) == 0
    (file,) = (tmp_path / "one" / STATE / "committed_offsets").glob("*.parquet")
    pq.write_table(pq.read_table(file).slice(1), file)
    again = [*words, str(tmp_path / "two"), "--state", str(tmp_path / "one")]
    assert main("simulate", again) == 4
    said = capsys.readouterr().err
    assert "its tables are not as the run wrote them" in said
    assert "committed_offsets has" in said


def test_a_state_with_other_values_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    assert main("simulate", [*words, str(tmp_path / "one")]) == 0
    (file,) = (tmp_path / "one" / STATE / "cluster_events").glob("*.parquet")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("client_id")
    missing = pa.nulls(len(rows), rows.schema.field(place).type)
    pq.write_table(rows.set_column(place, rows.schema.field(place), missing), file)
    again = [*words, str(tmp_path / "two"), "--state", str(tmp_path / "one")]
    assert main("simulate", again) == 4
    assert "cluster_events is not as the run wrote it" in capsys.readouterr().err


def test_a_state_whose_record_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    assert main("simulate", [*words, str(tmp_path / "one")]) == 0
    (tmp_path / "one" / STATE / "_run.json").unlink()
    (tmp_path / "one" / STATE / "_run.json").mkdir()
    again = [*words, str(tmp_path / "two"), "--state", str(tmp_path / "one")]
    assert main("simulate", again) == 4
    assert "--state: " in capsys.readouterr().err


@pytest.mark.parametrize(("most", "code"), [(65_536, 0), (2, 4)])
def test_rows_of_a_state_meet_the_limits_of_the_run(tmp_path: Path, most: int, code: int) -> None:
    """As on Spark, where every row of a state is checked again."""
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    assert main("simulate", [*words, str(tmp_path / "one")]) == 0
    again = [*words, str(tmp_path / "two"), "--state", str(tmp_path / "one")]
    assert main("simulate", [*again, "--set", f"limits.max_queue_nums={most}"]) == code


def test_a_run_without_events_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="has no event"):
        end_of(None, "run")


def test_the_output_may_not_be_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output"]
    out = str(tmp_path / "out")
    assert main("simulate", [*words, out]) == 0
    assert main("simulate", [*words, out, "--state", out, "--overwrite"]) == 5
    assert "--state" in capsys.readouterr().err


@pytest.mark.parametrize("job", ["simulate", "plan"])
def test_a_condition_on_times_needs_a_state(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--input-tables", "db", "--where", "event_ms >= 5", "--output", "x"]
    assert main(job, words) == 2
    said = capsys.readouterr().err
    assert "--where on event_ms cuts off the history" in said
    assert ("--state RUN" in said) == (job == "simulate")
