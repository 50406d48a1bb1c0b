"""`ingest`: list the collection, read it, put it together, write the tables, record, summarise."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.ingest.summary import ingest_facts, render_ingest
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import local_path
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.run.running import check_free, running, say
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.model.errors import RebalanceError, UsageError
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import parse_strategy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.ingest.collection.assumptions import Assumptions
    from rebalance_core.ingest.collection.collection import Collection
    from rebalance_core.spark.ingest.ingest import IngestedCollection


def run_ingest(options: IngestOptions) -> JobReport:
    """Run the job; the report for stdout."""
    from rebalance_core.ingest.collection.collection import open_collection
    from rebalance_core.spark.engine.summary import rejected_per_code

    settings = resolve_settings(options.config, options.set)
    assumed = assumptions(settings)
    # A folder that cannot be read is told before Spark starts.
    collection = open_collection(local_path(options.collection))
    if options.dry_run:
        return _plan(options, settings, collection)
    with running("ingest", options, settings, INGESTED_TABLES) as (run, session):
        say(f"reading {len(collection.files):,} files of {options.collection}")
        done, outputs = ingest_and_write(
            session, collection, assumed, run.clear, run.folder.table_location("")
        )
        back = session.read.parquet(run.folder.table_location("rejected"))
        rejected = rejected_per_code(back)
        files = understood(done)
        lines = sum(one["lines"] for one in files)
        found = fingerprint("collection", options.collection)
        record = run.finish(
            Outcome(
                outputs=outputs,
                inputs=[type(found)(**{**asdict(found), "rows": lines})],
                rejected=rejected,
                files=files,
                versions=versions(session),
            )
        )
        written = session.read.parquet(run.folder.table_location("findings"))
        findings = count_by(written, "rule_id")
    rows = {name: table.rows for name, table in outputs.items()}
    facts = ingest_facts(options.output, files, rows, rejected, findings, record.seconds)
    return JobReport(render_ingest(facts), facts)


def assumptions(settings: Settings) -> "Assumptions":
    """The section ``[assume]``, checked.

    Raises:
        UsageError: names every value that is wrong.
    """
    from rebalance_core.ingest.collection.assumptions import Assumptions
    from rebalance_core.ingest.parse.text.time_zones import known_zone

    given = settings.assume
    mistakes = []
    for name, check in (
        ("strategy", parse_strategy),
        ("client_version", parse_version),
        ("broker_version", parse_version),
    ):
        try:
            check(getattr(given, name))
        except RebalanceError as error:
            mistakes.append(f"assume.{name}: {error}")
    if not known_zone(given.time_zone):
        mistakes.append(f"assume.time_zone = {given.time_zone!r} is no time zone")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return Assumptions(**asdict(given))


def understood(done: "IngestedCollection") -> list[dict[str, Any]]:
    """The files as `_run.json` keeps them."""
    from rebalance_core.ingest.in_process import understood as rows_of

    return rows_of(done.stats)


def count_by(frame: "DataFrame", name: str) -> dict[str, int]:
    """Rows per value of a column."""
    return {row[name]: row["count"] for row in frame.groupBy(name).count().orderBy(name).collect()}


def ingest_and_write(
    session: "SparkSession",
    collection: "Collection",
    assumed: "Assumptions",
    clear: Callable[[], None],
    location: str,
) -> "tuple[IngestedCollection, Mapping[str, TableRecord]]":
    """The tables of a collection into a folder, and what was written.

    ``clear`` removes an earlier result: after reading, before the first table.
    """
    from rebalance_core.spark.ingest.ingest import ingest
    from rebalance_core.spark.tables.write import write_table

    done = ingest(session, collection, assumed)
    clear()
    outputs = {}
    for name, frame in done.tables.items():
        written = write_table(frame, location, name)
        outputs[name] = TableRecord(written.rows, written.digest)
    return done, outputs


def _plan(options: IngestOptions, settings: Settings, collection: "Collection") -> JobReport:
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
        "refused": [{"file": one.source, "code": one.code} for one in collection.refused],
        "output": options.output,
        "tables": list(INGESTED_TABLES),
        "config": settings.as_dict(),
    }
    lines = ["Dry run: nothing is written.", "", f"cluster  {facts['cluster']}", ""]
    lines += [f"  {k:<26} {n:>6,} files {sizes[k]:>15,} bytes" for k, n in sorted(kinds.items())]
    lines += _refusals([one.message for one in collection.refused])
    lines += ["", f"output  {options.output}", f"  {', '.join(INGESTED_TABLES)}"]
    return JobReport("\n".join(lines), facts)


def _refusals(messages: Sequence[str]) -> list[str]:
    return ["", "refused", *(f"  {message}" for message in messages)] if messages else []
