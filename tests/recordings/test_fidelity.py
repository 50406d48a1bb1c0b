"""`rebalance fidelity` sees in clients' logs what the recorder saw, and judges it alike."""

from collections import Counter
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from rebalance_core.timing import moves
from tests.plans import rows_of
from tests.recordings.tables import DATA
from tests.recordings.timings.compared import Given, compared

SEEDS = 100
MEASURES = {moves.ADD: "FIRST_ADD", moves.DROP: "FIRST_DROP", moves.GAP: "GAP"}
KINDS = {
    "join": "CONSUMER_JOIN",
    "leave": "CONSUMER_LEAVE",
    "kill": "CONSUMER_LOST",
    "queues": "TOPIC_CONFIG",
}


@pytest.mark.parametrize("name", ["join-leave", "scale-out"])
def test_the_logs_of_all_clients_show_what_the_recorder_saw(name: str, tmp_path: Path) -> None:
    """Of the group's first change on, as all were present before it in no recording."""
    collection = DATA / name / "collection"
    words = ("--collection", str(collection), "--output", str(tmp_path / "in"))
    assert main(None, ["ingest", *words]) == 0
    words = ("--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"))
    assert main(None, ["fidelity", *words, "--seeds", str(SEEDS)]) == 0
    rows = rows_of(tmp_path / "out", "fidelity")
    seen = {(row["kind"], row["measure"]): row for row in rows if row["samples"]}
    counts: Counter[tuple[str, str]] = Counter()
    inside: Counter[tuple[str, str]] = Counter()
    for one in compared(name, SEEDS, given=Given.FILES):
        key = KINDS[one.change.kind], MEASURES[one.what]
        counts[key] += 1
        inside[key] += one.is_inside
    of_files = {key: row for key, row in seen.items() if key in counts}
    assert {key: row["samples"] for key, row in of_files.items()} == counts
    assert sum(counts.values()) >= 20
    off = {key: abs(row["in_range"] - inside[key]) for key, row in of_files.items()}
    assert sum(off.values()) <= 1  # a leave is as old as its line
    assert {measure for _, measure in seen} == {*MEASURES.values(), "LAST", "LATENCY"}
