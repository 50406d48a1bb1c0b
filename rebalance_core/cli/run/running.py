"""What every job does around its work: the output folder, the lock, the session."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rebalance_core.cli.run.output_folder import LocalFolder, OutputFolder, is_local
from rebalance_core.cli.run.output_lock import breakable_lock
from rebalance_core.cli.run.output_run import OutputRun, check_output, output_errors
from rebalance_core.cli.run.session import open_session
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.spark import SparkSession
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder


class WritingOptions(Protocol):
    """The options of a job that writes a folder."""

    @property
    def output(self) -> str:
        """Path or URI of the folder."""

    @property
    def overwrite(self) -> bool:
        """An earlier result may go."""

    @property
    def break_lock(self) -> bool:
        """The lock of a dead run may go."""

    @property
    def debug(self) -> bool:
        """Everything is shown."""

    @property
    def master(self) -> str | None:
        """Spark master."""


@contextmanager
def running(
    job: str, options: Any, settings: Settings, tables: Iterable[str]
) -> Iterator[tuple[OutputRun, SparkSession]]:
    """The output folder, reserved for this run, and the session.

    A local folder is reserved before Spark starts: a conflict is told at once.
    """
    session = None if is_local(options.output) else open_for(job, options, settings)
    folder: OutputFolder
    folder = HadoopFolder(options.output, session) if session else LocalFolder(options.output)
    with OutputRun(folder, job, options, settings.as_dict(), tables) as run:
        if run.broken is not None:
            say(f"broke the lock of a dead run: {run.broken}")
        yield run, session or open_for(job, options, settings)


def open_for(job: str, options: WritingOptions, settings: Settings) -> SparkSession:
    """The session of a job."""
    partitions = settings.spark.shuffle_partitions
    wanted = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
    return open_session(
        f"rebalance {job}", master=options.master, settings=wanted, show_spark=options.debug
    )


def check_free(job: str, options: WritingOptions, settings: Settings) -> None:
    """Raise what `running` would raise about the output folder, and touch nothing."""
    folder: OutputFolder
    if is_local(options.output):
        folder = local = LocalFolder(options.output)
        with output_errors(local.location):
            local.check_makeable()
    else:
        folder = HadoopFolder(options.output, open_for(job, options, settings))
    dead = breakable_lock(folder, break_lock=options.break_lock)
    check_output(folder, overwrite=options.overwrite, left_by_dead_run=dead is not None)


def warn(text: str) -> None:
    """What the operator should look at, though the run goes on."""
    say(f"warning: {text}")


def say(text: str) -> None:
    """A word to the operator; results alone go to stdout."""
    print(f"rebalance: {text}", file=sys.stderr)
