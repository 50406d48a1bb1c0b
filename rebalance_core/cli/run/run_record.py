"""One run in its output folder, from the lock to `_run.json`, which is written last.

The record holds what the run was given, what it made, and that it came to its end; no secrets.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rebalance_core.checks.row_counts import Content, RowCounts
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.jvm import explain_spark_failure, is_spark_failure
from rebalance_core.cli.run.output_folder import (
    BREAKING_NAME,
    LockHolder,
    OutputLock,
    read_lock,
    refuse_own_input,
)
from rebalance_core.cli.terminal import ExitCode, exit_code_of, say
from rebalance_core.contracts import ALL_TABLES, CONTRACT_VERSION, paths
from rebalance_core.contracts.paths import LOCK_NAME
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.place import LocalPlace, reason_of, refusal
from rebalance_core.storage.run_folder import DamagedRecord
from rebalance_core.storage.run_folder import find_run as find_run
from rebalance_core.storage.run_folder import read_run as read_run
from rebalance_core.strategies.custom import PLUGIN_KINDS
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.checks.digest import TableWritten
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.audit_record import AuditRecord
    from rebalance_core.engine.table_writer import Written
    from rebalance_core.ingest.file_record import FileRecord
    from rebalance_core.planning.sweep.plan_options import PlanResult


# `_run.json`: what a run was given, what it made, and that it came to its end.
#
# It is written last: a folder without it is not a result.


@dataclass(frozen=True)
class InputRecord:
    """One input as it was read. A folder or a remote place has the hash of its file list."""

    table: str
    path: str
    rows: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    file_list_sha256: str | None = None


@dataclass(frozen=True)
class Origin:
    """Subject of a run, whatever files held it: part of its id.

    Attributes:
        digests: of the rows of each input table that has any, without the column ``source``; of
            a job that makes input tables, of these.
        clusters: those that the rows name, sorted.
        from_ms: the first event; None where there is none.
        to_ms: the last.
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
    """Return an id that is equal for runs with equal rows, and differs where rows may differ.

    Args:
        job: its name.
        origin: of its input.
        asked: the period, and the options and settings that decide what comes of the input.
    """
    content = [job, LIBRARY_VERSION, CONTRACT_VERSION, asdict(origin), asked]
    text = json.dumps(content, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:RUN_ID_DIGITS]


@dataclass(frozen=True)
class RunOutcome:
    """Results of a run that came to its end, for its record."""

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
    written: Written | PlanResult,
    inputs: Sequence[InputRecord],
    *,
    replay_reasons: Mapping[str, int] | None = None,
    seed: int | None = None,
    exit_code: int = ExitCode.OK,
) -> RunOutcome:
    """Return the outcome of a run over input tables.

    Args:
        written: what came of it.
        inputs: the records of the inputs, without rows.
        replay_reasons: how many groups were done one by one, by reason; None: no job of groups.
        seed: of what was random.
        exit_code: of the job.
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
    """See `run_id_of`; None of a run that failed."""
    clusters: list[str] = field(default_factory=list)
    period_from_ms: int | None = None
    """``--from``, or the first event."""
    period_to_ms: int | None = None
    """``--to``, or the last event."""
    input_digests: Mapping[str, str] = field(default_factory=dict)
    """Of the rows of each input table, whatever files held them."""
    inputs: list[InputRecord] = field(default_factory=list)
    outputs: Mapping[str, TableWritten] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    files: list[FileRecord] = field(default_factory=list)
    """Ingest: each file of the collection with the share of its lines that was understood."""
    replayed_groups: int | None = None
    replay_reasons: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    run_on: str | None = None
    """Where it ran: `process` or `spark`."""
    seed: int | None = None
    audit: AuditRecord | None = None
    """Audit: the verdict, what fails the run, and the counts of findings and groups."""
    error: str | None = None
    library_version: str = LIBRARY_VERSION
    contract_version: int = CONTRACT_VERSION


def python_version() -> str:
    """Return the version of this Python."""
    return ".".join(map(str, sys.version_info[:3]))


def write_run(folder: OutputFolder, record: RunRecord) -> None:
    """Write the record; `FileExistsError` if the folder has one already."""
    text = json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n"
    # half characters, of names that are not UTF-8, as JSON's own escapes
    (folder / paths.RUN_NAME).create_text(text.encode(errors="backslashreplace").decode())


# What must not be written down: values of secret keys, credentials inside addresses.

REDACTED = "***"

_SECRET_NAME = re.compile(
    r"passw|secret|salt|token|credential|access[._-]?key|api[._-]?key|account[._-]?key|private[._-]?key",
    re.IGNORECASE,
)
_IN_QUERY = re.compile(r"(?i)([?&;](?:sig|signature|x-amz-[a-z-]+|[^=&;]*token|key)=)[^&;\s]+")


def redact_text(text: str) -> str:
    """Return `text` without ``user:password@``, signatures of addresses and secret ``KEY=VALUE``.

    >>> redact_text("s3a://me:mine@bucket/a"), redact_text("fs.s3a.secret.key=abc")
    ('s3a://***@bucket/a', 'fs.s3a.secret.key=***')
    >>> redact_text("sc://host:443/;token=abc;user_id=me")
    'sc://host:443/;token=***;user_id=me'
    """
    name, equals, _ = text.partition("=")
    if equals and "://" not in name and _SECRET_NAME.search(name):
        return f"{name}={REDACTED}"
    return _IN_QUERY.sub(rf"\g<1>{REDACTED}", paths.without_user(text))


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line, with the value of a secret option masked."""
    result: list[str] = []
    secret = False
    for word in arguments:
        result.append(REDACTED if secret else redact_text(word))
        secret = word.startswith("-") and "=" not in word and bool(_SECRET_NAME.search(word))
    return result


def redact_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the values of secret keys replaced, at any depth."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            result[key] = redact_values(value)
        elif value is not None and _SECRET_NAME.search(key):
            result[key] = REDACTED
        else:
            result[key] = redact_text(value) if isinstance(value, str) else value
    return result


# One run in its output folder: locked, cleared as late as can be, recorded at the end.

BESIDE_TABLES = {
    "audit": (
        "report.html",
        "metrics.prom",
        paths.INGESTED,
        paths.STATE,
        "private",
        "not_looked_at.jsonl",
        "gone.txt",
    ),
    "history": ("history.html", "metrics.prom"),
    "ingest": (paths.STATE,),
    "plan": ("rollout.toml", "strategy.yaml", "front.svg"),
    "simulate": (paths.STATE,),
}
"""By job: what its result holds beside tables; it goes with it, whichever job comes next."""
DELIVERED_NAME = "_delivered.json"
"""In the output of `history`: what webhooks took. It stays when a later run replaces the rest."""
_WRITTEN_ASIDE = {
    paths.RUN_NAME,
    LOCK_NAME,
    BREAKING_NAME,
    DELIVERED_NAME,
    *chain(*BESIDE_TABLES.values()),
}
"""Small files, which a killed run may have left under a name of the moment."""


DECIDING_SETTINGS = ("include_retry_topics", "generate", "assume", "audit", "plan")
"""Keys and sections that decide which rows come of the same input."""


def check_output(folder: OutputFolder, *, overwrite: bool, dead: LockHolder | None) -> None:
    """Raise `OutputExists` if a run may not write there. A failed run's record protects nothing.

    Args:
        folder: the output folder; it may not exist.
        overwrite: an earlier result may be replaced.
        dead: the run whose lock proves that what lies there is a dead run's. If it surely is, its
            half-written tables block no later run.
    """
    locks = (LOCK_NAME, BREAKING_NAME)
    names = [name for name in folder.names() if name not in locks and not name.startswith(".")]
    try:
        run = find_run(folder)
    except DamagedRecord as error:
        raise OutputExists(
            f"{error}: rebalance never overwrites this folder; name another --output"
        ) from error
    if not names:
        return
    if run is not None and run["status"] != paths.STATUS_OK:
        tables = [name for name in names if name in ALL_TABLES]
        if tables and not overwrite:
            raise OutputExists(
                f"{folder.url} holds {', '.join(tables[:3])} beside the record of a run that "
                "failed, which left no table; --overwrite replaces them, or name another --output"
            )
    elif run is not None:
        if not overwrite:
            raise OutputExists(
                f"{folder.url} holds the result of a {run['job']} run of "
                f"{run.get('started_at', 'unknown time')}; --overwrite replaces it, or name "
                "another --output"
            )
    elif dead is None:
        some = ", ".join(names[:3]) + " …" * (len(names) > 3)
        raise OutputExists(
            f"{folder.url} is not empty and has no {paths.RUN_NAME} that rebalance wrote ({some}): "
            "rebalance never overwrites such a folder; name another --output"
        )
    elif not overwrite and not dead.is_surely_dead():
        raise OutputExists(
            f"{folder.url} holds tables that a dead run left; --break-lock together with "
            "--overwrite removes them"
        )


@contextmanager
def output_errors(location: str) -> Iterator[None]:
    """Turn the file system's errors on --output into our own."""
    try:
        yield
    except FileExistsError as error:
        raise OutputExists(f"--output {location} is a file") from error
    except OSError as error:
        raise refusal(error, f"--output {location} cannot be written") from error


class OutputRun:
    """Holds the output folder for one run; a context manager.

    An earlier result stays untouched until `clear`: a refused input leaves the earlier ledger. An
    error after that removes the half-written tables and leaves a record with FAILED.

    Attributes:
        versions: for the record: of Python and, once they take part, Spark and Java.
    """

    def __init__(
        self,
        folder: OutputFolder,
        job: str,
        options: JobOptions,
        config: Mapping[str, Any],
        tables: Iterable[str],
        run_on: str,
    ) -> None:
        self.folder = folder
        self.job = job
        self._options = options
        self._config = config
        self._tables = tuple(tables)
        self._run_on = run_on
        self.versions: Mapping[str, str | None] = {"python": python_version()}
        self._lock = OutputLock(folder, break_lock=options.break_lock)
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._may_clear = False

    @property
    def broken(self) -> LockHolder | None:
        """The dead run whose lock this run broke."""
        return self._lock.broken

    def __enter__(self) -> Self:
        refuse_own_input(self.folder, self._options)
        try:
            with output_errors(self.folder.url):
                self._lock.acquire()
                if isinstance(self.folder, LocalPlace):
                    self.folder.delete_leftovers(_WRITTEN_ASIDE)
                check_output(self.folder, overwrite=self._options.overwrite, dead=self.broken)
        except BaseException:
            with suppress(OSError, OutputExists):  # the first error is more informative
                self._lock.release(undo=True)
            raise
        run = find_run(self.folder)
        self._may_clear = run is None or run["status"] != paths.STATUS_OK
        return self

    def clear(self) -> None:
        """Remove the earlier result, its record first; call right before the first table.

        Only what is listed right in the folder goes, by names that this library gives its files:
        a record names none other.
        """
        run = find_run(self.folder) or {}
        self._may_clear = True
        (self.folder / paths.RUN_NAME).delete()
        recorded = ALL_TABLES.keys() & run.get("outputs", {}).keys()
        beside = BESIDE_TABLES.get(str(run.get("job")), ())
        ours = {paths.ATTEMPTS, *self._tables, *recorded, *beside}
        for name in self.folder.names():
            if name in ours:
                (self.folder / name).delete()

    def finish(self, outcome: RunOutcome) -> RunRecord:
        """Write the record: from now on the folder is a result."""
        self._lock.check()
        record = self._record(paths.STATUS_OK, int(outcome.exit_code), outcome)
        write_run(self.folder, record)
        return record

    def record_below(self, name: str, job: str, outcome: RunOutcome) -> None:
        """Write the record of a job that this run did on its way, beside that one's tables."""
        record = self._record(paths.STATUS_OK, int(outcome.exit_code), outcome, job=job)
        write_run(self.folder / name, record)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._lock.release()
            return
        try:
            try:
                if self._may_clear:
                    self._fail(error)
            finally:
                self._lock.release()
        except OSError as second:
            # the first error is more informative; without its record the folder is no result either
            say(f"{self.folder.url} could not be cleared: {reason_of(second)}")

    def _fail(self, error: BaseException) -> None:
        holder = read_lock(self.folder)
        if holder is None or holder.token != self._lock.token:
            return  # the folder is another run's now
        code, text = exit_code_of(error), f"{type(error).__name__}: {error}"
        if is_spark_failure(error):
            failure = explain_spark_failure(error)
            code, text = failure.exit_code, failure.line
        self.clear()
        nothing = RunOutcome(outputs={})
        write_run(
            self.folder, self._record(paths.STATUS_FAILED, int(code), nothing, redact_text(text))
        )

    def _record(
        self,
        status: str,
        exit_code: int,
        outcome: RunOutcome,
        error: str | None = None,
        *,
        job: str | None = None,
    ) -> RunRecord:
        job = job or self.job
        asked = {name: getattr(self._options, name) for name in self._options.DECIDING}
        asked |= {name: self._config.get(name) for name in DECIDING_SETTINGS}
        asked |= {kind: pieces for kind in PLUGIN_KINDS if (pieces := self._config.get(kind))}
        chosen = getattr(self._options, "tables", None)
        if chosen is not None:  # a run of all tables is another one
            asked["tables"] = sorted(chosen)
        if outcome.audit is not None:
            asked["night_ms"] = outcome.audit["night_ms"]
        origin = outcome.origin
        start, end = getattr(self._options, "from_ms", None), getattr(self._options, "to_ms", None)
        return RunRecord(
            run_id=run_id_of(job, origin, redact_values(asked)) if error is None else None,
            clusters=list(origin.clusters),
            period_from_ms=origin.from_ms if start is None else start,
            period_to_ms=origin.to_ms if end is None else end,
            input_digests=origin.digests,
            status=status,
            exit_code=exit_code,
            job=job,
            arguments=redact_arguments(self._options.argv),
            config=redact_values(self._config),
            started_at=self._started.isoformat(timespec="milliseconds"),
            seconds=round(time.monotonic() - self._clock, 3),
            inputs=list(outcome.inputs),
            outputs=dict(outcome.outputs),
            rejected=dict(outcome.rejected),
            files=list(outcome.files),
            replayed_groups=outcome.replayed_groups,
            replay_reasons=outcome.replay_reasons,
            versions=dict(self.versions),
            run_on=self._run_on,
            seed=outcome.seed,
            audit=outcome.audit,
            error=error,
        )
