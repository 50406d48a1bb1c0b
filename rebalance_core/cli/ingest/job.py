"""`ingest`: list the collection, read it where it is to run, record, summarise."""

from collections import Counter
from collections.abc import Sequence
from types import ModuleType

from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.ingest.summary import ingest_facts, render_ingest
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run_on import SPARK, run_on_of
from rebalance_core.cli.settings import Settings, assumptions, resolve_settings
from rebalance_core.cli.terminal import joined
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.paths import local_path
from rebalance_core.ingest.collection.collection import Collection, open_collection


def run_ingest(options: IngestOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    assumed = assumptions(settings)
    # A folder that cannot be read is told before Spark starts.
    collection = open_collection(local_path(options.collection))
    run_on = run_on_of(options, settings, [options.collection], [options.output])
    carrier = _carrier(run_on)
    if options.dry_run:
        carrier.check(options, settings)
        return _dry_run(options, settings, collection)
    written, record = carrier.ingest(options, settings, collection, assumed)
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = ingest_facts(
        options.output,
        record.files,
        rows,
        record.rejected,
        written.findings,
        record.seconds,
        run_on,
    )
    return JobReport(render_ingest(facts), facts)


def _carrier(run_on: str) -> ModuleType:
    """What runs the job there; pyspark takes a second to import."""
    if run_on == SPARK:
        from rebalance_core.cli.ingest import on_spark

        return on_spark
    from rebalance_core.cli.ingest import in_process

    return in_process


def _dry_run(options: IngestOptions, settings: Settings, collection: Collection) -> JobReport:
    """What a run would read: lists the collection; reads no file whole."""
    kinds = Counter(file.kind for file in collection.files)
    sizes: Counter[str] = Counter()
    for file in collection.files:
        sizes[file.kind] += file.size
    facts = {
        "job": "ingest",
        "dry_run": True,
        "exit_code": 0,
        "cluster": collection.settings.cluster,
        "files": {kind: {"files": n, "bytes": sizes[kind]} for kind, n in kinds.items()},
        "refused": [{"file": file.source, "code": file.code} for file in collection.refused],
        "output": options.output,
        "tables": list(INGESTED_TABLES),
        "config": settings.as_dict(),
    }
    lines = ["Dry run: nothing is written.", "", f"cluster  {facts['cluster']}", ""]
    lines += [f"  {k:<26} {n:>6,} files {sizes[k]:>15,} bytes" for k, n in sorted(kinds.items())]
    lines += _refusals([file.message for file in collection.refused])
    lines += ["", f"output  {options.output}", f"  {', '.join(INGESTED_TABLES)}"]
    return JobReport(joined(lines), facts)


def _refusals(messages: Sequence[str]) -> list[str]:
    return ["", "refused", *(f"  {message}" for message in messages)] if messages else []
