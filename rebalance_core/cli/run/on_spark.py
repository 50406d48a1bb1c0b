"""A run on Spark: the output folder, the lock, the session, and the progress."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from rebalance_core.cli.options import SPARK
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.output_folder import spark_location, typed_place
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord
from rebalance_core.cli.run.session import open_session, versions
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import ProgressLine, warn
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.model.errors import UsageError
from rebalance_core.process.audit import InputsOfAudit
from rebalance_core.process.runtime import Runtime
from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.audit import read_ingested, read_inputs, unwritten_inputs
from rebalance_core.spark.catalogs import is_catalog
from rebalance_core.spark.hadoop_folder import HadoopPlace
from rebalance_core.spark.ingest import collection_at
from rebalance_core.spark.opening_state import with_state
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.spark_versions import context_of
from rebalance_core.storage.place import is_direct

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder

LOOK_SECONDS = 5.0
_TABLE_NAME = re.compile(r"\w+(\.\w+)+")


class OnSpark(Backend):
    """A run of a job on Spark. The session is opened when it is first needed."""

    name: ClassVar[str] = SPARK
    _opened: SparkSession | None = None
    _output: OutputFolder

    def __init__(self, job: str, options: Any, settings: Settings) -> None:
        super().__init__(job, options, settings)
        self._stages: list[StageRows] = []

    @property
    def session(self) -> SparkSession:
        """The session of the job."""
        if self._opened is None:
            partitions = self.settings.spark.shuffle_partitions
            wanted = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
            self._opened = open_session(
                f"rebalance {self.job}",
                master=self.options.master,
                settings=wanted,
                show_spark=self.options.debug,
                rows_in_jvm=not is_direct(self.options.output),
            )
        return self._opened

    @property
    def runtime(self) -> Runtime:
        """The runtime of the session."""
        return SparkRuntime(self.session, self._stages)

    @contextmanager
    def running(self, tables: Iterable[str]) -> Iterator[OutputRun]:
        """Reserve the output folder for this run, and open the session.

        A folder reachable without Spark is reserved before Spark starts, so that conflicts are
        reported at once.
        """
        self._refuse_table_name()
        self._output = self.folder(self.options.output)
        with self._reserved(self._output, tables) as run:
            run.versions, run.stages = versions(self.session), self._stages
            with spark_progress(self.session):
                yield run

    def check_free(self) -> None:
        """Raise the errors of `running` about the output folder, without changing it."""
        self._refuse_table_name()
        if is_direct(self.options.output):
            super().check_free()
        else:
            self._check_unlocked(self.folder(self.options.output))

    def run(
        self, service: Callable[..., Any], *arguments: Any, of: str | None = None, **keywords: Any
    ) -> Any:
        """Call a service on Spark, whose own progress is shown."""
        return service(*arguments, runtime=self.runtime, **keywords)

    def output(self, *names: str) -> Any:
        """Return the output folder, or a path below it, as a URI."""
        place = self._output
        for name in names:
            place /= name
        return spark_location(place.url).rstrip("/")

    def location(self, location: str) -> str:
        """Return a place that an option names, in Spark's form."""
        return spark_location(location)

    def folder(self, location: str) -> OutputFolder:
        """Return a folder that another run wrote, or that this run writes."""
        return typed_place(location) if is_direct(location) else HadoopPlace(location, self.session)

    def collection(self, location: str) -> Collection:
        """Return the collection at a place; a collection that only Hadoop can reach needs the
        session.
        """
        if is_direct(location):
            return super().collection(location)
        return collection_at(self.session, location)

    def input_tables(self, inputs: Mapping[str, str]) -> InputTables:
        """Return the lazy input tables; local ones were looked up by name, remote folders are
        listed.
        """
        database = self._database()
        if database is not None:
            where = self.options.where
            return InputTables.from_catalog(self.session, database, where, warn=warn)
        remote = None if inputs else self.options.input
        paths: dict[str, Any] = {name: spark_location(path) for name, path in inputs.items()}
        form = self.options.input_format
        return InputTables.read(self.session, remote, **paths, input_format=form)

    def _with_state(self, tables: InputTables, folder: str) -> InputTables:
        return with_state(self.session, tables, spark_location(folder))

    def audit_inputs(self, folder: Any, *, ingested: bool = False) -> InputsOfAudit:
        """Return the lazy tables of an audit in a folder."""
        read = (read_ingested if ingested else read_inputs)(self.session, folder)
        return replace(read, stages=self._stages)

    def unwritten_inputs(
        self, collection: Collection, assumed: Assumptions, kept: ExitStack
    ) -> InputsOfAudit:
        """Return the lazy, unwritten tables of a collection, valid until ``kept`` is closed."""
        made = unwritten_inputs(self.session, collection, assumed, kept)
        return replace(made, stages=self._stages)

    def records(self, inputs: Mapping[str, str]) -> list[InputRecord]:
        """Return fingerprints of the inputs; tables in a database have none."""
        if self._database() is not None:
            return [InputRecord(*each) for each in self._all(inputs).items()]
        return super().records(inputs)

    def _all(self, inputs: Mapping[str, str]) -> Mapping[str, str]:
        return inputs or self.input_tables(inputs).paths

    def _database(self) -> str | None:
        """Return the input's database, if it is in one."""
        database: str | None = getattr(self.options, "input_tables", None)
        return database

    def _refuse_table_name(self) -> None:
        """Raise `UsageError` for an output that is named like a table in a catalog."""
        output: str = self.options.output
        if _TABLE_NAME.fullmatch(output) and is_catalog(self.session, output.partition(".")[0]):
            database = output.rpartition(".")[0]
            raise UsageError(
                f"--output {output} would become a folder on the driver's disk, not a table: name "
                f"a folder, then run `rebalance publish --run FOLDER --to {database}`; a folder of "
                f"that name is ./{output}"
            )


@contextmanager
def spark_progress(session: Any, every: float = LOOK_SECONDS) -> Iterator[None]:
    """Show the session's tasks on stderr while the block runs; on a terminal, Spark does so itself.

    Args:
        session: Under Spark Connect, there is no progress.
        every: Seconds between updates.
    """
    context = None if sys.stderr.isatty() else context_of(session)
    if context is None:
        yield
        return
    stop = threading.Event()
    tracker = context.statusTracker()

    def watch() -> None:
        # the run reports Spark's errors
        with suppress(Exception):
            progress = ProgressLine("tasks", terminal=False)
            while not stop.wait(every):
                done, total = tasks_of(tracker)
                if total:
                    progress(done, total)

    thread = threading.Thread(target=watch, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def tasks_of(tracker: Any) -> tuple[int, int]:
    """Return how many tasks of the running jobs are done and how many there are, including skipped
    stages.
    """
    done = total = 0
    for job in tracker.getActiveJobsIds():
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            of_stage = tracker.getStageInfo(stage)
            if of_stage is not None:
                done += of_stage.numCompletedTasks
                total += of_stage.numTasks
    return done, total
