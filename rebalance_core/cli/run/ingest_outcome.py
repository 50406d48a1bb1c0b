"""The outcome of an ingest, on its own or within an audit."""

from dataclasses import replace
from typing import Any

from rebalance_core.cli.run.input_files import collection_fingerprint, fingerprint
from rebalance_core.cli.run.run_record import Origin, RunOutcome
from rebalance_core.contracts.paths import without_user
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.in_process import understood, with_lines
from rebalance_core.model.nouns import counted
from rebalance_core.process.ingest import IngestWritten


def ingest_outcome(
    place: str, state: str | None, collection: Collection, written: IngestWritten, session: Any
) -> RunOutcome:
    """Return the outcome of an ingest, for the run's record.

    Args:
        place: the collection's path as typed.
        state: the earlier run that it continues, or None.
        collection: the collection that was read.
        written: the result.
        session: the Spark session, for a state that only Spark can reach; None in-process.
    """
    files = understood(collection, written.stats)
    lines = sum(file["lines"] for file in files)
    return RunOutcome(
        outputs=written.tables,
        origin=_origin(collection, written),
        inputs=[
            replace(collection_fingerprint("collection", place, session), rows=lines),
            *([] if state is None else [fingerprint("state", state, session)]),
        ],
        rejected=with_lines(written.counts.rejections.codes, files),
        files=files,
    )


def reading_line(place: str, state: str | None, collection: Collection) -> str:
    """Return the progress line that announces the reading."""
    text = f"reading {counted(len(collection.own_files), 'file')} of {without_user(place)}"
    if state is None:
        return text
    logs = sum(file.begins_at > 0 for file in collection.own_files)
    return f"{text}, {counted(logs, 'log')} from where {without_user(state)} ended"


def _origin(collection: Collection, written: IngestWritten) -> Origin:
    """Return the origin of a run that writes what it reads: the digests of its rows, and their
    period.
    """
    digests = {name: table.digest for name, table in written.tables.items() if table.rows}
    first, last = written.counts.event_ms or (None, None)
    return Origin(digests, (collection.settings.cluster,), first, last)
