"""What every ingest says as it begins, and records as it ends."""

from dataclasses import replace

from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import Outcome, RunRecord, table_records
from rebalance_core.cli.terminal import say
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.in_process import understood, with_lines
from rebalance_core.process.ingest import IngestWritten


def say_begin(options: IngestOptions, collection: Collection) -> None:
    """Name what is read."""
    say(f"reading {len(collection.files):,} files of {options.collection}")


def finish(run: OutputRun, options: IngestOptions, written: IngestWritten) -> RunRecord:
    """Write the record of the run.

    Args:
        run: Where the tables are.
        options: Of the run.
        written: What came of it.
    """
    files = understood(written.stats)
    lines = sum(file["lines"] for file in files)
    return run.finish(
        Outcome(
            outputs=table_records(written.tables),
            inputs=[replace(fingerprint("collection", options.collection), rows=lines)],
            rejected=with_lines(written.rejected, files),
            files=files,
        )
    )
