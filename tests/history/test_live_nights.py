"""Two nights of a live cluster, whose logs all begin with the first; mended in between."""

import contextlib
import io
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from tests.history.test_clipped_nights import SUMMED
from tests.tree import TREE


def quietly(job: str, *words: object) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(job, list(map(str, words))) in (0, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`nights`: both, one after the other; `whole`: the logs of the second read once."""
    folder = tmp_path_factory.mktemp("live")
    with tarfile.open(TREE / "docs" / "two-nights.tar.xz") as archive:
        # Pythons before 3.11.4 have no filter
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(folder)
    before, after = (("--collection", folder / name) for name in ("before", "after"))
    quietly("audit", *before, "--output", folder / "nights" / "1")
    first = ("--previous", folder / "nights" / "1")
    quietly("audit", *after, "--output", folder / "nights" / "2", *first)
    quietly("audit", *after, "--output", folder / "whole" / "1")
    for name in ("nights", "whole"):
        quietly("history", "--runs", folder / name, "--output", folder / f"{name}-folded")
    return folder


def sums(folded: Path) -> dict[tuple[str, str], int]:
    found: Counter[tuple[str, str]] = Counter()
    for row in pq.read_table(folded / "group_nights").to_pylist():
        for name in SUMMED:
            found[row["consumer_group"], name] += row[name]
    return +found


def test_nothing_is_counted_in_both_nights(folder: Path) -> None:
    assert sums(folder / "nights-folded") == sums(folder / "whole-folded")
    first, second = pq.read_table(folder / "nights-folded" / "nights").to_pylist()
    assert second["start_ms"] == first["end_ms"]
    billing: list[Any] = [
        row["orphan_ms"] > 0
        for row in pq.read_table(folder / "nights-folded" / "group_nights").to_pylist()
        if row["consumer_group"] == "billing"
    ]
    assert billing == [True, True]


def test_verdicts_and_history_count_the_same_moves(folder: Path) -> None:
    nights = pq.read_table(folder / "nights-folded" / "group_nights").to_pylist()
    for number in ("1", "2"):
        audit = folder / "nights" / number
        verdicts = pq.read_table(audit / "group_verdicts").to_pylist()
        moved = {row["consumer_group"]: row["moved"] for row in verdicts if row["moved"]}
        end_ms = sorted({row["end_ms"] for row in nights})[int(number) - 1]
        of_night = [row for row in nights if row["end_ms"] == end_ms and row["moved"]]
        assert moved == {row["consumer_group"]: row["moved"] for row in of_night} != {}


def test_metrics_of_audits_have_the_orphan_time_of_history(folder: Path) -> None:
    nights = pq.read_table(folder / "nights-folded" / "group_nights").to_pylist()
    for number, end_ms in enumerate(sorted({row["end_ms"] for row in nights}), 1):
        lines = (folder / "nights" / str(number) / "metrics.prom").read_text("utf-8").splitlines()
        samples = dict(line.rsplit(" ", 1) for line in lines if "_orphan_queue_seconds{" in line)
        of_night = [row for row in nights if row["end_ms"] == end_ms and row["orphan_ms"]]
        assert {name: float(value) for name, value in samples.items()} == {
            f'rebalance_audit_orphan_queue_seconds{{cluster="{row["cluster"]}",'
            f'group="{row["consumer_group"]}"}}': row["orphan_ms"] / 1000
            for row in of_night
        }
        assert samples


def test_the_folder_of_the_nightly_loop_stands_for_its_nights(folder: Path, tmp_path: Path) -> None:
    quietly("history", "--runs", folder, "--output", tmp_path / "again")
    states = [
        sorted((row["rule_id"], row["state"]) for row in pq.read_table(place).to_pylist())
        for place in (
            tmp_path / "again" / "open_findings",
            folder / "nights-folded" / "open_findings",
        )
    ]
    assert states[0] == states[1] != []


def test_history_has_the_sentence_before_the_rule(folder: Path) -> None:
    page = (folder / "nights-folded" / "history.html").read_text("utf-8")
    (row,) = (line for line in page.splitlines() if "<code>CONSUMER_<wbr>BLOCKED" in line)
    assert row.index("has messages of") < row.index("<code>") < row.index("<bdi>slowpoke")


def test_an_administrator_s_change_stands_on_the_timeline_of_its_night(folder: Path) -> None:
    change = "Settings changed at broker-a, broker-b: consumeBroadcastEnable: false → true"
    for number, times in (("1", 0), ("2", 2)):  # the cluster's timeline and the group's row
        page = (folder / "nights" / number / "report.html").read_text("utf-8")
        assert page.count(change) == times


def test_what_was_mended_is_healed(folder: Path) -> None:
    rows = pq.read_table(folder / "nights-folded" / "open_findings").to_pylist()
    states = {(row["rule_id"], row["consumer_group"]): row["state"] for row in rows}
    assert states == {
        ("BROADCASTING_REFUSED", "cache-refresh"): "HEALED",
        ("BROKER_DOWN", None): "HEALED",
        ("CONSUMER_BLOCKED", "slowpoke"): "OPEN",  # its listener still hangs
        ("DOUBLE_OWNER", "billing"): "HEALED",
        ("IDLE_MEMBER", "audit-writer"): "GONE",
        ("MIXED_STRATEGIES", "billing"): "HEALED",
        ("ORPHAN_QUEUES", "billing"): "HEALED",
    }
    page = (folder / "nights-folded" / "history.html").read_text("utf-8")
    assert "1 still open, 7 healed, 1 gone" in page
    assert "seen in the last night and before" in page
