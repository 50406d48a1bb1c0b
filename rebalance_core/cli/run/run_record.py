"""`_run.json`: a run's input, its output, and its end.

The record states the run's input, its output and that it finished, and contains no secrets.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rebalance_core.checks.row_counts import Content, RowCounts
from rebalance_core.cli.terminal import ExitCode
from rebalance_core.contracts import CONTRACT_VERSION, run_names
from rebalance_core.storage.run_folder import find_run as find_run
from rebalance_core.storage.run_folder import read_run as read_run
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.checks.digest import TableWritten
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.run_record import AuditRecord
    from rebalance_core.engine.table_writer import Written
    from rebalance_core.ingest.file_record import FileRecord
    from rebalance_core.planning.sweep.plan_options import PlanResult
    from rebalance_core.process.stage_rows import StageRows


@dataclass(frozen=True)
class InputRecord:
    """An input as read. For a folder or a remote place, the hash covers its file list."""

    table: str
    path: str
    rows: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    file_list_sha256: str | None = None


@dataclass(frozen=True)
class Origin:
    """The subject of a run, whichever files contained it; part of the run's id.

    Attributes:
        digests: the digests of the rows of each non-empty input table, without the column
            ``source``; for a job that writes input tables, the digests of those tables.
        clusters: the clusters in the rows, sorted.
        from_ms: time of the first event; None if there is none.
        to_ms: time of the last.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    clusters: Sequence[str] = ()
    from_ms: int | None = None
    to_ms: int | None = None


def origin_of(read: Mapping[str, RowCounts]) -> Origin:
    """Return the origin of a job that reads tables."""
    from rebalance_core.checks.digest import table_written  # needs numpy

    whole = sum((counts.content for counts in read.values()), Content())
    return Origin(
        {
            name: table_written(counts.rows, counts.content.hashes).digest
            for name, counts in sorted(read.items())
            if counts.rows
        },
        sorted(whole.clusters),
        whole.first_ms,
        whole.last_ms,
    )


RUN_ID_DIGITS = 32


def run_id_of(job: str, origin: Origin, asked: Mapping[str, Any]) -> str:
    """Return an id that is equal for runs with equal rows, and differs if rows may differ.

    Args:
        job: its name.
        origin: the origin of its input.
        asked: the period, and the options and settings that affect the result.
    """
    content = [job, LIBRARY_VERSION, CONTRACT_VERSION, asdict(origin), asked]
    text = json.dumps(content, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:RUN_ID_DIGITS]


@dataclass(frozen=True)
class RunOutcome:
    """The results of a finished run, for its record."""

    outputs: Mapping[str, TableWritten]
    origin: Origin = Origin()
    inputs: Sequence[InputRecord] = ()
    rejected: Mapping[str, int] = field(default_factory=dict)
    files: Sequence[FileRecord] = ()
    replayed_groups: int | None = None
    replay_reasons: Mapping[str, int] = field(default_factory=dict)
    seed: int | None = None
    audit: AuditRecord | None = None
    exit_code: int = ExitCode.OK


def outcome_of(
    written: Written[Mapping[str, object]] | PlanResult,
    inputs: Sequence[InputRecord],
    *,
    replay_reasons: Mapping[str, int] | None = None,
    seed: int | None = None,
    exit_code: int = ExitCode.OK,
) -> RunOutcome:
    """Return the outcome of a run over input tables.

    Args:
        written: its result.
        inputs: the records of the inputs, without their rows.
        replay_reasons: number of groups replayed one by one, by reason; None if the job has no
            groups.
        seed: the seed of random choices.
        exit_code: the job's exit code.
    """
    return RunOutcome(
        outputs=written.tables,
        origin=origin_of(written.inputs),
        inputs=[
            replace(record, rows=written.inputs[record.table].rows)
            if record.table in written.inputs
            else record
            for record in inputs
        ],
        rejected=written.rejected,
        replayed_groups=None if replay_reasons is None else sum(replay_reasons.values()),
        replay_reasons=replay_reasons or {},
        seed=seed,
        exit_code=exit_code,
    )


@dataclass(frozen=True)
class RunRecord:
    """The content of `_run.json`."""

    status: str
    exit_code: int
    job: str
    arguments: list[str]
    config: Mapping[str, Any]
    started_at: str
    seconds: float
    run_id: str | None = None
    """See `run_id_of`; None for a failed run."""
    clusters: list[str] = field(default_factory=list)
    period_from_ms: int | None = None
    """``--from``, or the first event."""
    period_to_ms: int | None = None
    """``--to``, or the last event."""
    input_digests: Mapping[str, str] = field(default_factory=dict)
    """Digest of the rows of each input table, independent of the files."""
    inputs: list[InputRecord] = field(default_factory=list)
    outputs: Mapping[str, TableWritten] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    files: list[FileRecord] = field(default_factory=list)
    """For an ingest, each file of the collection with the share of its lines that was
    understood."""
    replayed_groups: int | None = None
    replay_reasons: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    run_on: str | None = None
    """Where the job ran: `process` or `spark`."""
    stages: list[StageRows] = field(default_factory=list)
    """On Spark, the rows that each stage read and produced, in order."""
    seed: int | None = None
    audit: AuditRecord | None = None
    """For an audit, the verdict, what fails the run, and the counts of findings and groups."""
    error: str | None = None
    library_version: str = LIBRARY_VERSION
    contract_version: int = CONTRACT_VERSION


def python_version() -> str:
    """Return the version of this Python."""
    return ".".join(map(str, sys.version_info[:3]))


def write_run(folder: OutputFolder, record: RunRecord) -> None:
    """Write the record; raise `FileExistsError` if the folder already has one."""
    text = json.dumps(vars(record), indent=2, ensure_ascii=False, default=asdict) + "\n"
    # writes lone surrogates, from names that are not UTF-8, as JSON escapes
    (folder / run_names.RUN_NAME).create_text(text.encode(errors="backslashreplace").decode())
