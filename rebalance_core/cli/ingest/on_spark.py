"""`ingest` on Spark."""

from rebalance_core.cli.ingest.finish import finish, say_begin
from rebalance_core.cli.ingest.options import IngestOptions
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, running
from rebalance_core.cli.settings import Settings
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.engine.table_writer import IngestWritten
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.spark.ingest import ingest_and_write


def ingest(
    options: IngestOptions, settings: Settings, collection: Collection, assumed: Assumptions
) -> tuple[IngestWritten, RunRecord]:
    """Write the tables and their record."""
    with running("ingest", options, settings, INGESTED_TABLES) as (run, session):
        say_begin(options, collection)
        output = run.folder.table_location("")
        written = ingest_and_write(session, collection, output, assumed, before_writing=run.clear)
        return written, finish(run, options, written)


def check(options: IngestOptions, settings: Settings) -> None:
    """Raise what `ingest` would raise about the output folder, and touch nothing."""
    check_free("ingest", options, settings)
