"""What every job in this process does around its work: the output folder and its lock."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rebalance_core.cli.own_input import refuse_own_input
from rebalance_core.cli.run.output_folder import LocalFolder, OutputFolder, StoreFolder
from rebalance_core.cli.run.output_lock import breakable_lock
from rebalance_core.cli.run.output_run import OutputRun, check_output, output_errors
from rebalance_core.cli.run_on import PROCESS
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import say
from rebalance_core.contracts.paths import is_local, is_utf8, local_path
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.place import place_of


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
def running_here(
    job: str, options: Any, settings: Settings, tables: Iterable[str]
) -> Iterator[OutputRun]:
    """The output folder, reserved for this run."""
    folder = folder_here(options.output)
    with OutputRun(folder, job, options, settings.as_dict(), tables, PROCESS) as run:
        say_broken_lock(run)
        yield run


def check_free_here(options: WritingOptions) -> None:
    """Raise what `running_here` would raise about the output folder, and touch nothing."""
    folder = folder_here(options.output)
    if isinstance(folder, LocalFolder):
        with output_errors(folder.location):
            folder.check_makeable()
    check_unlocked(folder, options)


def folder_here(location: str) -> LocalFolder | StoreFolder:
    """The folder at a place that this process reaches.

    Raises:
        UsageError: it does not, or the path is not UTF-8.
    """
    if is_local(location) and not is_utf8(local_path(location).absolute()):
        raise UsageError(f"--output {location}: the folder it is in is not UTF-8; name another")
    place = place_of(location)
    return LocalFolder(location) if place.is_local else StoreFolder(place)


def check_unlocked(folder: OutputFolder, options: WritingOptions) -> None:
    """Raise `OutputExists` if a run could not have the folder now."""
    refuse_own_input(folder, options)
    with output_errors(folder.location):
        dead = breakable_lock(folder, break_lock=options.break_lock)
        check_output(folder, overwrite=options.overwrite, left_by_dead_run=dead is not None)


def say_broken_lock(run: OutputRun) -> None:
    """Tell whose lock the run broke, if it did."""
    if run.broken is not None:
        say(f"broke the lock of a dead run: {run.broken}")
