"""A run in its output folder: locked, cleared as late as possible, and recorded at the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.output_folder import (
    BREAKING_NAME,
    LockHolder,
    OutputLock,
    read_lock,
    refuse_own_input,
)
from rebalance_core.cli.run.secrets import redact_arguments, redact_text, redact_values
from rebalance_core.cli.run.spark_failure import explain_spark_failure, is_spark_failure
from rebalance_core.cli.terminal import exit_code_of, say
from rebalance_core.contracts import ALL_TABLES, run_names
from rebalance_core.contracts.run_names import LOCK_NAME
from rebalance_core.model.errors import OutputExists
from rebalance_core.storage.place import LocalPlace
from rebalance_core.storage.run_folder import DamagedRecord
from rebalance_core.storage.run_folder import find_run as find_run
from rebalance_core.storage.run_folder import read_run as read_run
from rebalance_core.storage.store_answers import reason_of, refusal
from rebalance_core.strategies.custom import PLUGIN_KINDS

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.process.stage_rows import StageRows
from rebalance_core.cli.run.run_record import (
    RunOutcome,
    RunRecord,
    python_version,
    run_id_of,
    write_run,
)

BESIDE_TABLES = {
    "audit": (
        "report.html",
        "metrics.prom",
        run_names.INGESTED,
        run_names.STATE,
        "private",
        "not_looked_at.jsonl",
        "gone.txt",
    ),
    "autoscale": ("scaler.yaml", "scaling.svg"),
    "fidelity": ("observed.svg",),
    "history": ("history.html", "metrics.prom"),
    "ingest": (run_names.STATE,),
    "plan": ("rollout.toml", "strategy.yaml", "front.svg"),
    "simulate": (run_names.STATE,),
}
"""The files in each job's result besides tables; they are removed with the result, whichever job
runs next.
"""


DELIVERED_NAME = "_delivered.json"
"""The record, in the output of `history`, of what has been sent to webhooks; it remains when a
later run replaces the rest.
"""


_WRITTEN_ASIDE = {
    run_names.RUN_NAME,
    LOCK_NAME,
    BREAKING_NAME,
    DELIVERED_NAME,
    *chain(*BESIDE_TABLES.values()),
}
"""Small files that a killed run may have left under a temporary name."""


DECIDING_SETTINGS = ("include_retry_topics", "generate", "assume", "audit", "plan")
"""Keys and sections that determine which rows an input yields."""


def check_output(folder: OutputFolder, *, overwrite: bool, dead: LockHolder | None) -> None:
    """Raise `OutputExists` if a run may not write there; the record of a failed run does not
    prevent it.

    Args:
        folder: the output folder; it may not exist.
        overwrite: whether an earlier result may be replaced.
        dead: the run whose lock proves that the contents belong to a dead run. If it is certainly
            dead, its half-written tables do not block later runs.
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
    if run is not None and run["status"] != run_names.STATUS_OK:
        tables = [name for name in names if name in ALL_TABLES]
        if tables and not overwrite:
            raise OutputExists(
                f"{folder.url} holds {', '.join(tables[:3])} beside the record of a failed run, "
                "which left no tables; --overwrite replaces them, or name another --output"
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
            f"{folder.url} is not empty and has no {run_names.RUN_NAME} that rebalance wrote "
            f"({some}): rebalance never overwrites such a folder; name another --output"
        )
    elif not overwrite and not dead.is_surely_dead():
        raise OutputExists(
            f"{folder.url} holds tables that a dead run left; --break-lock together with "
            "--overwrite removes them"
        )


@contextmanager
def output_errors(location: str) -> Iterator[None]:
    """Turn file system errors on --output into this program's errors."""
    try:
        yield
    except FileExistsError as error:
        raise OutputExists(f"--output {location} is a file") from error
    except OSError as error:
        raise refusal(error, f"--output {location} cannot be written") from error


class OutputRun:
    """Holds the output folder for one run; a context manager.

    An earlier result stays untouched until `clear`, so a refused input leaves the earlier ledger in
    place. An error after that removes the half-written tables and leaves a record with status
    FAILED.

    Attributes:
        versions: the versions for the record: of Python and, once in use, Spark and Java.
        stages: the stages for the record: those finished on Spark.
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
        self.stages: list[StageRows] = []
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
        self._may_clear = run is None or run["status"] != run_names.STATUS_OK
        return self

    def clear(self) -> None:
        """Remove the earlier result, its record first; call right before the first table is
        written.

        Only files directly in the folder are removed, by the names that this library uses; a record
        lists no others.
        """
        run = find_run(self.folder)
        self._may_clear = True
        (self.folder / run_names.RUN_NAME).delete()
        recorded = () if run is None else ALL_TABLES.keys() & run.get("outputs", {}).keys()
        beside = () if run is None else BESIDE_TABLES.get(run["job"], ())
        ours = {run_names.ATTEMPTS, *self._tables, *recorded, *beside}
        for name in self.folder.names():
            if name in ours:
                (self.folder / name).delete()

    def finish(self, outcome: RunOutcome) -> RunRecord:
        """Write the record, which makes the folder a result."""
        self._lock.check()
        record = self._record(run_names.STATUS_OK, int(outcome.exit_code), outcome)
        write_run(self.folder, record)
        return record

    def record_below(self, name: str, job: str, outcome: RunOutcome) -> None:
        """Write the record of a job that this run performed as a step, next to that job's
        tables.
        """
        record = self._record(run_names.STATUS_OK, int(outcome.exit_code), outcome, job=job)
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
            # the first error is more informative, and without its record the folder is no result
            # either
            say(f"{self.folder.url} could not be cleared: {reason_of(second)}")

    def _fail(self, error: BaseException) -> None:
        holder = read_lock(self.folder)
        if holder is None or holder.token != self._lock.token:
            return  # the folder now belongs to another run
        code, text = exit_code_of(error), f"{type(error).__name__}: {error}"
        if is_spark_failure(error):
            failure = explain_spark_failure(error)
            code, text = failure.exit_code, failure.line
        self.clear()
        nothing = RunOutcome(outputs={})
        write_run(
            self.folder,
            self._record(run_names.STATUS_FAILED, int(code), nothing, redact_text(text)),
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
        if chosen is not None:  # a run that writes all tables is a different run
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
            stages=list(self.stages),
            seed=outcome.seed,
            audit=outcome.audit,
            error=error,
        )
