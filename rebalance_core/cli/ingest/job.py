"""`ingest`: list the collection, read it, write its tables, record, summarise."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.ingest.summary import ingest_facts, render_ingest
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.run_record import table_records
from rebalance_core.cli.run.running import check_free, running
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.assume_section import assumptions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.terminal import say
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.locations import local_path
from rebalance_core.ingest.collection.collection import Collection, open_collection
from rebalance_core.ingest.in_process import understood
from rebalance_core.spark.ingest.write_tables import ingest_and_write


def run_ingest(options: IngestOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    assumed = assumptions(settings)
    # A folder that cannot be read is told before Spark starts.
    collection = open_collection(local_path(options.collection))
    if options.dry_run:
        return _dry_run(options, settings, collection)
    with running("ingest", options, settings, INGESTED_TABLES) as (run, session):
        say(f"reading {len(collection.files):,} files of {options.collection}")
        written = ingest_and_write(
            session,
            collection,
            run.folder.table_location(""),
            assumed,
            before_writing=run.clear,
        )
        files = understood(written.stats)
        lines = sum(file["lines"] for file in files)
        record = run.finish(
            Outcome(
                outputs=table_records(written.tables),
                inputs=[replace(fingerprint("collection", options.collection), rows=lines)],
                rejected=written.rejected,
                files=files,
                versions=versions(session),
            )
        )
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = ingest_facts(
        options.output, files, rows, written.rejected, written.findings, record.seconds
    )
    return JobReport(render_ingest(facts), facts)


def _dry_run(options: IngestOptions, settings: Settings, collection: Collection) -> JobReport:
    """What a run would read: lists the collection, checks the output; reads no file whole."""
    check_free("ingest", options, settings)
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
    return JobReport("\n".join(lines), facts)


def _refusals(messages: Sequence[str]) -> list[str]:
    return ["", "refused", *(f"  {message}" for message in messages)] if messages else []
