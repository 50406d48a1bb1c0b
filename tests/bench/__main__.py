"""`python -m tests.bench`: run the benches of a list, each as a process, and keep the results."""

import argparse
import datetime
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.benches import BENCHES, LISTS, QUICK, Bench
from tests.bench.machine import load, machine
from tests.bench.process_tree import cost_of
from tests.bench.report import read_json, report_of, say, tidy
from tests.tree import TREE


def main() -> int:
    """Run, print and write the results after each bench; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=LISTS, default=QUICK, dest="listed")
    parser.add_argument("--only", nargs="+", choices=[bench.name for bench in BENCHES])
    parser.add_argument("--out", type=Path, required=True, help="gets the results as JSON")
    options = parser.parse_args()
    kept = read_json(options.out)["benches"] if options.only and options.out.exists() else {}
    results: dict[str, Any] = {
        "list": options.listed, "machine": machine(), "benches": kept,
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    for bench in BENCHES:
        if options.only is None or bench.name in options.only:
            found = run(bench, options.listed)
            results["benches"][bench.name] = found
            options.out.write_text(json.dumps(results, indent=1) + "\n")
            if found["error"]:
                failed.append(bench.name)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def run(bench: Bench, listed: str) -> dict[str, Any]:
    """One bench: its report, and what the whole process tree took."""
    arguments = bench.arguments(listed)
    say(f"{bench.name} …")
    before = load()
    with tempfile.TemporaryDirectory() as scratch:
        cost = cost_of(
            [sys.executable, "-m", bench.module, *arguments],
            environment={"PYTHONPATH": str(TREE), "PYTHONUNBUFFERED": "1"},
            scratch=Path(scratch),
        )
    result: dict[str, Any] = {
        "command": " ".join(["python -m", bench.module, *arguments]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load before": before,
        "seconds": tidy(cost.seconds),
        "processor_seconds": tidy(cost.processor_seconds),
        "peak_mib": {kind: round(mib) for kind, mib in cost.peak_mib.items()},
        "report": None,
        "error": None,
    }
    if cost.code != 0:
        result["error"] = cost.errors.strip().rpartition("\n")[2] or f"exit code {cost.code}"
        say(f"  {cost.errors}\n  FAILED with {cost.code}")
        return result
    result["report"] = json.loads(cost.output)
    for figure in report_of(result["report"]).figures:
        shown = {None: "", True: "met", False: "MISSED"}[figure.met]
        say(f"  {figure.name}: {figure.value} {figure.unit} {shown}")
    for left_out in report_of(result["report"]).left_out:
        say(f"  left out: {left_out}")
    say(f"  {cost.seconds:.0f} s, {cost.processor_seconds:.0f} s of processor time")
    return result


if __name__ == "__main__":
    os.chdir(TREE)
    sys.exit(main())
