"""What stdout cannot take: letters that its encoding lacks, and anything on a full disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

GROUP = "bestellungen-größe-😀"
EVENTS: tuple[dict[str, object], ...] = (
    {
        "event_type": "TOPIC_CONFIG",
        "topic": "T",
        "broker_name": "broker-a",
        "read_queue_nums": 1,
        "write_queue_nums": 1,
    },
    {
        "event_type": "CONSUMER_JOIN",
        "consumer_group": GROUP,
        "client_id": "a",
        "subscriptions": ["T"],
    },
)
MAIN = "import sys; from rebalance_core.cli.main import main; sys.exit(main())"


def write_tables(folder: Path) -> None:
    (folder / "tables").mkdir(exist_ok=True)
    lines = [
        json.dumps({"cluster": "c", "event_ms": 1795231709901, "sequence": number, **event}) + "\n"
        for number, event in enumerate(EVENTS)
    ]
    (folder / "tables" / "cluster_events.jsonl").write_text("".join(lines))


def simulate(folder: Path, encoding: str, *more: str) -> str:
    write_tables(folder)
    tables, output = str(folder / "tables"), str(folder / encoding)
    words = ["simulate", "--input", tables, "--output", output, *more]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(encoding)


def test_a_text(tmp_path: Path) -> None:
    assert "bestellungen-gr\\xf6\\xdfe-\\U0001f600 " in simulate(tmp_path, "ascii")
    assert "bestellungen-größe-\\U0001f600 " in simulate(tmp_path, "latin-1")
    assert GROUP in simulate(tmp_path, "utf-8")


def test_json_stays_json(tmp_path: Path) -> None:
    for encoding in ("ascii", "utf-8"):
        facts = json.loads(simulate(tmp_path, encoding, "--json"))
        assert facts["worst_groups"][0]["consumer_group"] == GROUP


def test_a_full_disk_behind_stdout(tmp_path: Path) -> None:
    write_tables(tmp_path)
    words = ["simulate", "--input", str(tmp_path / "tables"), "--output", str(tmp_path / "out")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = (
        b"rebalance: the job has finished, but its result "
        b"cannot be printed: No space left on device\n"
    )
    assert (done.returncode, done.stderr.endswith(said)) == (2, True), done.stderr
    assert (tmp_path / "out" / "_run.json").exists()
