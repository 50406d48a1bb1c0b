"""The `publish` job: write the tables of a finished run into a catalog's database, always on
Spark.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_core.cli import terminal
from rebalance_core.cli.job_options import PublishOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.output_folder import spark_location, typed_place
from rebalance_core.cli.settings import settings_of
from rebalance_core.storage.place import is_direct
from rebalance_core.storage.run_folder import Folder, counted_rows, read_run


def run(options: PublishOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings_of(options)  # refuses invalid settings, like every job
    if options.run is None:
        return _removed(options)
    from rebalance_core.spark import catalogs, sources

    location, session = spark_location(options.run), None
    folder: Folder
    if is_direct(options.run):
        folder = typed_place(options.run)  # refuses an invalid result before Spark starts
    else:
        session = _session(options)
        folder = sources.run_folder(session, location)
    record = read_run(folder)
    run_id, tables = catalogs.publishable(record, options.run)
    rows = counted_rows(folder, record, tables)
    if options.dry_run:
        return _report(options, run_id, rows)
    terminal.say(f"publishing run {run_id}: {len(tables)} tables of {options.run}")
    session = session or _session(options)
    if catalogs.is_forgotten(session, options.to):
        terminal.warn(
            f"{options.to} is in Spark's own catalog, which loses its tables when this session "
            "ends: set spark.sql.catalogImplementation=hive, or name a catalog"
        )
    published = catalogs.publish(
        session,
        location,
        options.to,
        options.prefix,
        replace=options.replace,
        keep_days=options.keep,
        warn=terminal.warn,
    )
    return _report(options, published.run_id, published.tables, published.removed)


def _removed(options: PublishOptions) -> JobReport:
    """Run the job with --remove."""
    from rebalance_core.spark import catalogs

    run_id = str(options.remove)
    if options.dry_run:
        return _report(options, run_id, {}, [run_id])
    removed = catalogs.remove(_session(options), run_id, options.to, options.prefix)
    return _report(options, run_id, removed.tables, removed.removed)


def _session(options: PublishOptions) -> Any:
    from rebalance_core.cli.run.session import open_session

    return open_session("rebalance publish", master=options.master, show_spark=options.debug)


def _report(
    options: PublishOptions, run_id: str, rows: Mapping[str, int], removed: Sequence[str] = ()
) -> JobReport:
    facts: dict[str, Any] = {
        "job": "publish",
        "dry_run": options.dry_run,
        "run": options.run,
        "run_id": run_id,
        "to": options.to,
        "rows": dict(rows),
        "removed": list(removed),
    }
    title = f"Run {run_id} of {options.run} in {options.to}"
    if options.run is None:
        title = f"Run {run_id} removed from {options.to}"
    lines = [*(terminal.DRY_RUN if options.dry_run else ()), title, "", *terminal.numbers(rows)]
    if removed and options.run is not None:
        lines += ["", f"Removed: {', '.join(removed)}"]
    return JobReport(terminal.joined(lines), facts)
