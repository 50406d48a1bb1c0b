"""What every job on Spark does around its work: the output folder, the lock, the session."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rebalance_core.cli.run.output_folder import OutputFolder
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.running_here import (
    WritingOptions,
    check_free_here,
    check_unlocked,
    folder_here,
    say_broken_lock,
)
from rebalance_core.cli.run.session import open_session, versions
from rebalance_core.cli.run_on import SPARK
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.spark_progress import spark_progress
from rebalance_core.spark import SparkSession
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder
from rebalance_core.storage.place import is_here


@contextmanager
def running(
    job: str, options: Any, settings: Settings, tables: Iterable[str]
) -> Iterator[tuple[OutputRun, SparkSession]]:
    """The output folder, reserved for this run, and the session.

    A folder that is reached without Spark is reserved before it starts: a conflict is told at once.
    """
    session = None if is_here(options.output) else open_for(job, options, settings)
    folder: OutputFolder
    folder = HadoopFolder(options.output, session) if session else folder_here(options.output)
    with OutputRun(folder, job, options, settings.as_dict(), tables, SPARK) as run:
        say_broken_lock(run)
        session = session or open_for(job, options, settings)
        run.versions = versions(session)
        with spark_progress(session):
            yield run, session


def open_for(job: str, options: WritingOptions, settings: Settings) -> SparkSession:
    """The session of a job."""
    partitions = settings.spark.shuffle_partitions
    wanted = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
    return open_session(
        f"rebalance {job}",
        master=options.master,
        settings=wanted,
        show_spark=options.debug,
        rows_in_jvm=not is_here(options.output),
    )


def check_free(job: str, options: WritingOptions, settings: Settings) -> None:
    """Raise what `running` would raise about the output folder, and touch nothing."""
    if is_here(options.output):
        check_free_here(options)
    else:
        check_unlocked(HadoopFolder(options.output, open_for(job, options, settings)), options)
