"""One run in its output folder: locked, cleared as late as can be, recorded at the end."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from rebalance_core.cli.exit_codes import exit_code_of
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.jvm import explain_spark_failure, is_spark_failure
from rebalance_core.cli.run.output_folder import OutputFolder, refuse_own_input
from rebalance_core.cli.run.output_lock import (
    BREAKING_NAME,
    LOCK_NAME,
    LockHolder,
    OutputLock,
    read_lock,
)
from rebalance_core.cli.run.run_record import (
    Outcome,
    RunRecord,
    find_run,
    python_version,
    redact_arguments,
    redact_text,
    redact_values,
    run_id_of,
    write_run,
)
from rebalance_core.cli.terminal import say
from rebalance_core.contracts.run_record import (
    ATTEMPTS,
    RUN_NAME,
    STATUS_FAILED,
    STATUS_OK,
)
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.access import reason_of, refusal

BESIDE_TABLES = {
    "audit": ("report.html", "metrics.prom", "ingested", "private", "not_looked_at.jsonl")
}
"""By job: what its result holds beside tables; it goes with it, whichever job comes next."""


DECIDING_SETTINGS = ("include_retry_topics", "generate", "assume", "audit", "plan")
"""Keys and sections that decide which rows come of the same input."""


def check_output(folder: OutputFolder, *, overwrite: bool, dead: LockHolder | None) -> None:
    """Raise `OutputExists` if a run may not write there. A failed run's record protects nothing.

    Args:
        folder: the output folder; it may not exist.
        overwrite: an earlier result may be replaced.
        dead: the run whose lock proves that what lies there is a dead run's. If it surely is, its
            half-written tables are in nobody's way.
    """
    ours = (LOCK_NAME, BREAKING_NAME)
    names = [name for name in folder.names() if name not in ours and not name.startswith(".")]
    run = find_run(folder)
    if not names or (run is not None and run["status"] != STATUS_OK):
        return
    if run is not None:
        if not overwrite:
            raise OutputExists(
                f"{folder.location} holds the result of a {run['job']} run of "
                f"{run.get('started_at', 'unknown time')}; --overwrite replaces it, or name "
                "another --output"
            )
    elif dead is None:
        some = ", ".join(names[:3]) + " …" * (len(names) > 3)
        raise OutputExists(
            f"{folder.location} is not empty and holds no {RUN_NAME} of ours ({some}): it is never "
            "overwritten; name another --output"
        )
    elif not overwrite and not dead.is_surely_dead():
        raise OutputExists(
            f"{folder.location} holds tables that a dead run left; --break-lock together with "
            "--overwrite removes them"
        )


@contextmanager
def output_errors(location: str) -> Iterator[None]:
    """What the file system says of --output, as an error of ours."""
    try:
        yield
    except FileExistsError as error:
        raise OutputExists(f"--output {location} is a file") from error
    except OSError as error:
        raise refusal(error, f"--output {location} cannot be written") from error


class OutputRun:
    """Holds the output folder for one run; a context manager.

    An earlier result stays untouched until `clear`: a refused input leaves the earlier ledger. An
    error after that removes the half-written tables and leaves a record that says FAILED.

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
        """The dead run whose lock this one broke."""
        return self._lock.broken

    def __enter__(self) -> Self:
        refuse_own_input(self.folder, self._options)
        try:
            with output_errors(self.folder.location):
                self._lock.acquire()
                check_output(
                    self.folder,
                    overwrite=self._options.overwrite,
                    dead=self.broken,
                )
        except BaseException:
            with suppress(OSError, OutputExists):  # the first error says more
                self._lock.release(undo=True)
            raise
        run = find_run(self.folder)
        self._may_clear = run is None or run["status"] != STATUS_OK
        return self

    def clear(self) -> None:
        """Remove the earlier result, its record first; call right before the first table."""
        run = find_run(self.folder) or {}
        self._may_clear = True
        self.folder.delete(RUN_NAME)
        beside = BESIDE_TABLES.get(str(run.get("job")), ())
        for name in {ATTEMPTS, *self._tables, *run.get("outputs", {}), *beside}:
            if "/" not in name:
                self.folder.delete(name)

    def finish(self, outcome: Outcome) -> RunRecord:
        """Write the record: from now on the folder is a result."""
        self._lock.check()
        record = self._record(STATUS_OK, int(outcome.exit_code), outcome)
        write_run(self.folder, record)
        return record

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
            # the first error says more; without its record the folder is no result either
            say(f"{self.folder.location} could not be cleared: {reason_of(second)}")

    def _fail(self, error: BaseException) -> None:
        holder = read_lock(self.folder)
        if holder is None or holder.token != self._lock.token:
            return  # the folder is another run's now
        code, text = exit_code_of(error), f"{type(error).__name__}: {error}"
        if is_spark_failure(error):
            failure = explain_spark_failure(error)
            code, text = failure.exit_code, failure.line
        self.clear()
        nothing = Outcome(outputs={})
        write_run(self.folder, self._record(STATUS_FAILED, int(code), nothing, redact_text(text)))

    def _record(
        self, status: str, exit_code: int, outcome: Outcome, error: str | None = None
    ) -> RunRecord:
        asked = {name: getattr(self._options, name) for name in self._options.DECIDING}
        asked |= {name: self._config.get(name) for name in DECIDING_SETTINGS}
        origin = outcome.origin
        start, end = getattr(self._options, "from_ms", None), getattr(self._options, "to_ms", None)
        return RunRecord(
            run_id=run_id_of(self.job, origin, redact_values(asked)) if error is None else None,
            clusters=list(origin.clusters),
            period_from_ms=origin.from_ms if start is None else start,
            period_to_ms=origin.to_ms if end is None else end,
            input_digests=origin.digests,
            status=status,
            exit_code=exit_code,
            job=self.job,
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
