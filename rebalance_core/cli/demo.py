"""`demo`: a recorded cluster written into a folder and audited, with what to try next."""

import io
import zipfile
from importlib.resources import files
from pathlib import Path

from rebalance_core.cli import audit
from rebalance_core.cli.job_options import AuditOptions, DemoOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.terminal import DRY_RUN, joined, say
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.storage.place import reason_of

RECORDING = "nightly.zip"
"""A cluster of RocketMQ 5.3.3 in which eleven groups were set up well or badly on purpose; made of
the tests' recording by `scripts/bundle_recording.py`."""
COLLECTION, AUDIT, PLAN = "collection", "audit", "plan"


def run(options: DemoOptions) -> JobReport:
    """Run the job; the report for stdout. Findings are what it is to show, so it ends with 0."""
    folder = Path(options.folder)
    if options.dry_run:
        lines = [*DRY_RUN, f"writes a recording into {folder / COLLECTION}, audits it into",
                 f"{folder / AUDIT}"]  # fmt: skip
        return JobReport(joined(lines), {"job": "demo", "dry_run": True, "output": str(folder)})
    asked = AuditOptions(
        argv=options.argv,
        config=options.config,
        set=options.set,
        collection=str(folder / COLLECTION),
        output=str(folder / AUDIT),
        overwrite=options.overwrite,
        debug=options.debug,
        run_on="process",
    )
    if folder.exists() and not options.overwrite:
        raise OutputExists(f"{folder} is there already; name another folder, or --overwrite")
    count = _write_recording(folder)
    say(f"{count} files of a recorded cluster are in {folder / COLLECTION}")
    report = audit.run(asked)
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
    return joined([
        "",
        "",
        f"Open {ledger / 'report.html'} in a browser. Then ask, for example:",
        f"  rebalance explain --ledger {ledger} --group order-service --queue orders/broker-a/1 "
        "--at 2026-11-21T03:51:00Z",
        f"  rebalance plan --input {ledger / 'ingested'} --scenario add-consumers "
        f"--output {folder / PLAN}",
        "A collection of your own cluster: rebalance collect --init",
    ])  # fmt: skip
