"""A publishing process is killed at random moments; readers then see the old night or the new one.

`make test-kills` kills 30 with ``SEED``.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from tests.recordings.tables import DATA
from tests.spark.test_catalogs import small
from tests.tree import TREE

KILLS, SEED = int(os.environ.get("KILLS", "3")), int(os.environ.get("SEED", "1"))
SECONDS = 1200
"""The longest that a process may live."""


def as_run(folder: Path, run_id: str, less: int) -> Path:
    """A run of this id and of a few tables, whose `diffs` have so many rows less."""
    record = json.loads((folder / "_run.json").read_text())
    (file,) = (folder / "diffs").glob("*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) - less), file)
    record["run_id"], record["outputs"]["diffs"]["rows"] = run_id, len(rows) - less
    (folder / "_run.json").write_text(json.dumps(record))
    return small(folder)


def rows_of(folder: Path) -> dict[str, int]:
    """The rows of each table of a run."""
    record = json.loads((folder / "_run.json").read_text())
    return {name: table["rows"] for name, table in record["outputs"].items() if table["rows"]}


class Publisher:
    """The child process."""

    def __init__(self, folder: Path, *words: object) -> None:
        command = [sys.executable, "-m", "tests.spark.publishing_child", str(folder)]
        with (folder / "stderr.txt").open("a") as errors:
            self.process = subprocess.Popen(
                [*command, *map(str, words)],
                cwd=TREE,
                env=os.environ | {"PYTHONPATH": str(TREE)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._watch = threading.Timer(SECONDS, self.kill)
        self._watch.start()

    def go(self) -> None:
        """Let it look and publish."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def line(self) -> str:
        """The next line that it prints; empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        """Kill it and its JVM, which holds the lock of the metastore until it is gone."""
        self._watch.cancel()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            while True:
                os.killpg(self.process.pid, 0)
                time.sleep(0.1)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.mark.slow
@pytest.mark.timeout(KILLS * SECONDS)
def test_readers_see_the_old_night_or_the_new_one(tmp_path: Path) -> None:
    made = tmp_path / "run"
    assert (
        main(
            None,
            ["simulate", "--input", str(DATA / "join-leave" / "tables"), "--output", str(made)],
        )
        == 0
    )
    runs = {
        run_id: as_run(Path(shutil.copytree(made, tmp_path / run_id)), run_id, less)
        for less, run_id in enumerate(("f1" * 8, "f2" * 8))
    }
    words = ("killed", *runs.values())
    draw, took, seen = random.Random(SEED), 0.0, list[str]()
    following = Publisher(tmp_path, *words)
    for turn in range(KILLS + 2):
        child, last = following, turn == KILLS + 1
        child.go()
        if not last:  # its session starts meanwhile
            following = Publisher(tmp_path, *words)
        shown = json.loads(child.line() or "null")
        assert shown is not None, f"{turn}: it died by itself, see {tmp_path}/stderr.txt"
        found = {table: counts for table, counts in shown.items() if counts and table != "runs"}
        ids = {run_id for counts in found.values() for run_id in counts}
        if turn:
            assert len(ids) == 1, (turn, found)
            (run_id,) = ids
            expected = {table: {run_id: rows} for table, rows in rows_of(runs[run_id]).items()}
            assert found == expected, turn
            seen.append(run_id[:2])
        assert child.line() == "begun"
        if turn == 0:
            took = float(child.line().removeprefix("ended "))
        else:
            wait = draw.uniform(0, took)
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(wait)
            print(f"{turn}: saw {seen[-1]}, kill after {wait:.1f} of {took:.1f} s", flush=True)
        child.kill()
    changes = sum(one != two for one, two in pairwise(seen))
    print(f"seed {SEED}: {len(seen) - 1} kills, {changes} of them after the new night was shown")
    assert len(seen) - 1 == KILLS
