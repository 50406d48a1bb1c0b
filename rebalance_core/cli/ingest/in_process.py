"""`ingest` in this process; needs no JVM."""

from rebalance_core.cli.ingest.finish import finish, say_begin
from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import progress_of
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.engine.table_writer import IngestWritten
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.storage.place import place_of


def ingest(
    options: IngestOptions, settings: Settings, collection: Collection, assumed: Assumptions
) -> tuple[IngestWritten, RunRecord]:
    """Write the tables and their record."""
    with running_here("ingest", options, settings, INGESTED_TABLES) as run:
        say_begin(options, collection)
        output = place_of(options.output)
        with progress_of("files") as progress:
            written = ingest_and_write(
                collection, output, assumed, before_writing=run.clear, progress=progress
            )
        return written, finish(run, options, written)


def check(options: IngestOptions, _settings: Settings) -> None:
    """Raise what `ingest` would raise about the output folder, and touch nothing."""
    check_free_here(options)
