"""Run every job of a checkout and write its results as plain text, to compare two checkouts.

    snapshot_jobs.py TREE OUTPUT [--spark]

Run it once for each checkout, then `diff -r` the two folders: tables row by row (read from Parquet,
sorted, as text; no digest of the library's own), results, messages, exit codes, pages. Times, paths
and versions are left out. With --spark also the same jobs on Spark (slow).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds

FLEET = "--groups 300 --days 1 --seed 3"
SMALL_FLEET = "--groups 20 --days 1 --seed 5"
PLAN = "--scenario add-consumers --strategy AVG_BY_CIRCLE --strategy league"
QUEUE = "--group order-service --queue OrderTopic/broker-a/3 --at 1795231740000"
VOLATILE = {"started_at", "seconds", "library_version", "python_version", "arguments", "inputs"}
NUMBERS = (
    (re.compile(r"\d+\.\d+ s\b"), "N s"),
    (re.compile(r"(?<=pid )\d+"), "N"),
)
JOBS = ("simulate", "ingest", "audit", "plan", "explain", "generate", "propagate", "producers")
WRONG = """
simulate
simulate --input nowhere --output OUT/w1
simulate --input DAY --output OUT/w2 --strategy AVGG
simulate --input DAY --output OUT/w3 --set no.such=1
simulate --input DAY --output OUT/w4 --on-bad-rows perhaps
simulate --input DAY --output OUT/w5 --max-bad-share 2
simulate --input DAY --output OUT/w6 --from yesterday
simulate --input DAY --output OUT/w7 --from 2026-01-02T00:00:00Z --to 2026-01-01T00:00:00Z
simulate --inputs DAY --output OUT/w8
simulate --input DAY --events DAY --output OUT/w9
simulate --input DAY
ingest --output OUT/w10
ingest --collection nowhere --output OUT/w11
ingest --collection DAY --output OUT/w12
audit --output OUT/w13
audit --input DAY --collection DAY --output OUT/w14
audit --collection nowhere --output OUT/w15
audit --input DAY --output OUT/w16 --fail-on SEVERE
audit --input DAY --output OUT/w17 --accepted nowhere.toml
plan --input DAY --output OUT/w18 --scenario nowhere.toml
plan --input DAY --output OUT/w19 --strategy NONE_SUCH
plan --output OUT/w20
explain --ledger nowhere --group g --queue T/a/0 --at 1
explain --ledger OUT/day --group nobody --queue T/a/0 --at 1795231740000
explain --ledger OUT/day --group g --queue T --at 1795231740000
generate --groups 0 --output OUT/w21
generate --groups many --output OUT/w22
propagate --input DAY --output OUT/w23 --seeds 0
propagate --output OUT/w24
producers --output OUT/w25
producers --model nowhere.toml --output OUT/w26
nosuchjob
"""


def calls(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, arguments) of every call; later calls may need earlier ones."""
    yield "day", f"generate {FLEET} --output DAY"
    yield "small", f"generate {SMALL_FLEET} --output SMALL"
    yield "generate-dry", f"generate {FLEET} --output OUT/dry --dry-run"
    yield "simulate-day", "simulate --input DAY --output OUT/day"
    yield "simulate-reference", "simulate --input SMALL --output OUT/reference --engine reference"
    yield "simulate-dry", "simulate --input DAY --output OUT/dry --dry-run"
    yield "simulate-part", "simulate --input DAY --output OUT/part --group *1* --strategy AVG"
    yield "audit-day", "audit --input SMALL --output OUT/audit-day"
    yield "plan", f"plan --input STEADY --output OUT/plan {PLAN}"
    yield "plan-dry", f"plan --input STEADY --output OUT/dry {PLAN} --dry-run"
    yield "propagate", "propagate --input STEADY --seeds 2 --output OUT/propagate"
    yield (
        "producers",
        "producers --model brown-out --output OUT/producers",
    )
    for recording in sorted((tree / "tests/recordings/data").iterdir()):
        collection = f"--collection {recording}/collection --output OUT"
        yield f"ingest-{recording.name}", f"ingest {collection}/ingest-{recording.name}"
        yield f"audit-{recording.name}", f"audit {collection}/audit-{recording.name}"
        if (recording / "tables").exists():
            yield (
                f"simulate-{recording.name}",
                f"simulate --input {recording}/tables --output OUT/simulate-{recording.name}",
            )
    yield "explain", f"explain --ledger OUT/simulate-join-leave {QUEUE}"
    yield "explain-json", f"explain --ledger OUT/simulate-join-leave {QUEUE} --json"
    case = f"audit --collection {tree}/tests/cases/data/14-offset-above-max"
    yield "audit-json", f"{case} --json --output OUT/json"
    yield "audit-dry", f"{case} --dry-run --output OUT/dry"
    for number, words in enumerate(WRONG.strip().splitlines()):
        yield f"wrong-{number:02}", words
    for job in JOBS:
        yield f"help-{job}", f"{job} --help"


def spark_calls(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield the same for Spark: few, because each costs half a minute."""
    nightly = tree / "tests/recordings/data/nightly"
    where = "--run-on spark --output OUT/spark"
    yield "spark-generate", f"generate {SMALL_FLEET} {where}-generate"
    yield "spark-simulate", f"simulate --input DAY {where}-simulate"
    yield "spark-ingest", f"ingest --collection {nightly}/collection {where}-ingest"
    yield "spark-audit", f"audit --collection {nightly}/collection {where}-audit"
    yield "spark-plan", f"plan --input STEADY {PLAN} {where}-plan"
    yield "spark-propagate", f"propagate --input STEADY --seeds 2 {where}-propagate"
    yield (
        "spark-producers",
        f"producers --model brown-out {where}-producers",
    )


def neutral(text: str, paths: dict[str, str]) -> str:
    """Return the text without parts that differ between runs."""
    for path, name in paths.items():
        text = text.replace(path, name)
    for pattern, word in NUMBERS:
        text = pattern.sub(word, text)
    return text


def table_text(folder: Path) -> str:
    """Return the rows of a table as sorted lines."""
    rows = ds.dataset(folder, format="parquet").to_table().to_pylist()
    return "".join(sorted(json.dumps(row, default=str, sort_keys=True) + "\n" for row in rows))


def write_result(folder: Path, target: Path, paths: dict[str, str]) -> None:
    """Write all files of a run's folder as text."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and any(entry.glob("*.parquet")):
            (target / f"{entry.name}.rows").write_text(table_text(entry), "utf-8")
        elif entry.name == "_run.json":
            record = json.loads(entry.read_text("utf-8"))
            kept = {key: value for key, value in record.items() if key not in VOLATILE}
            text = json.dumps(kept, indent=1, sort_keys=True)
            (target / "_run.json").write_text(neutral(text, paths), "utf-8")
        elif entry.suffix in {".html", ".prom", ".jsonl"}:
            (target / entry.name).write_text(neutral(entry.read_text("utf-8"), paths), "utf-8")


def main() -> int:
    """Run all calls; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    tree, output = given.tree.resolve(), given.output.resolve()
    work = output.with_name(output.name + ".work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(output, ignore_errors=True)
    places = {"DAY": work / "fleet", "SMALL": work / "small", "OUT": work}
    places["STEADY"] = tree / "rebalance_core/bundled/demo/steady/tables"
    paths = {str(work): "OUT", str(tree): "TREE"}
    environment = os.environ | {"PYTHONPATH": str(tree), "COLUMNS": "100"}
    every = [*calls(tree), *(spark_calls(tree) if given.spark else ())]
    for name, words in every:
        filled = re.sub(r"\b(DAY|SMALL|STEADY|OUT)\b", lambda match: str(places[match[1]]), words)
        command = [sys.executable, "-m", "rebalance_core.cli.main", *filled.split()]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        target = output / name
        target.mkdir(parents=True)
        streams = {"stdout": done.stdout, "stderr": done.stderr, "code": f"{done.returncode}\n"}
        for stream, text in streams.items():
            (target / stream).write_text(neutral(text, paths), "utf-8")
        place = re.search(r"--output (\S+)", filled)
        if place and Path(place[1]).is_dir():
            write_result(Path(place[1]), target, paths)
        print(f"{name}: {done.returncode}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
