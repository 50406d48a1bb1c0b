"""The `demo` job: write a recorded cluster into a folder, audit it and suggest next steps."""

import io
import zipfile
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from rebalance_core.cli.job_options import DemoOptions
from rebalance_core.cli.jobs import JOBS, JobReport, parse_options
from rebalance_core.cli.terminal import DRY_RUN, joined, say
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.storage.store_answers import reason_of

RECORDING = "nightly.zip"
"""A recording of a RocketMQ 5.3.3 cluster with eleven groups, deliberately configured well or
badly; `scripts/bundle_recording.py` makes it from the tests' recording.
"""
NEEDED = ("numpy", "pyarrow", "jinja2")
"""Packages of the extra ``process``."""
COLLECTION, AUDIT, PLAN = "collection", "audit", "plan"


def run(options: DemoOptions) -> JobReport:
    """Run the job and return the report for stdout. Its purpose is to show findings, so it exits
    with 0.
    """
    folder = Path(options.folder)
    if options.dry_run:
        lines = [
            *DRY_RUN,
            f"writes a recording into {folder / COLLECTION}, audits it into",
            f"{folder / AUDIT}",
        ]
        return JobReport(joined(lines), {"job": "demo", "dry_run": True, "output": str(folder)})
    words = ["audit", "--collection", str(folder / COLLECTION), "--output", str(folder / AUDIT)]
    words += ["--run-on", "process", *(["--overwrite"] if options.overwrite else [])]
    words += [word for file in options.config for word in ("--config", file)]
    words += [word for setting in options.set for word in ("--set", setting)]
    if folder.exists() and not options.overwrite:
        raise OutputExists(f"{folder} exists already; name another folder, or use --overwrite")
    for package in NEEDED:
        import_module(package)  # report a missing package before anything is written
    count = _write_recording(folder)
    say(f"{count} files of a recorded cluster are in {folder / COLLECTION}")
    job, asked = parse_options(words, JOBS)
    report = job.run(asked)
    return JobReport(report.text + _next(folder), {**report.facts, "job": "demo", "exit_code": 0})


def _write_recording(folder: Path) -> int:
    packed = (files("rebalance_core") / "bundled" / RECORDING).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(folder)
            return len(archive.namelist())
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {reason_of(error)}") from error


def _next(folder: Path) -> str:
    ledger = folder / AUDIT
    return joined(
        [
            "",
            "",
            f"Open {ledger / 'report.html'} in a browser. Then ask, for example:",
            f"  rebalance explain --ledger {ledger} --group order-service "
            "--queue orders/broker-a/1 --at 2026-11-21T03:51:00Z",
            f"  rebalance plan --input {ledger / 'ingested'} --scenario add-consumers "
            f"--output {folder / PLAN}",
            "To collect from your own cluster: rebalance collect --init",
        ]
    )
