"""Where a job runs: in this process or on Spark.

A job asks `carrier_of` and then does the same in both places: it reserves the output, reads, calls
a service of `process` or the one of the same name of `spark`, and records what came of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from rebalance_core.cli.options import AUTO, PROCESS, SPARK
from rebalance_core.cli.run.input_files import fingerprint, local_bytes
from rebalance_core.cli.run.jvm import under_spark_submit
from rebalance_core.cli.run.output_folder import (
    LocalFolder,
    OutputFolder,
    breakable_lock,
    folder_here,
    refuse_own_input,
)
from rebalance_core.cli.run.run_record import (
    InputRecord,
    OutputRun,
    check_output,
    output_errors,
    redact_text,
)
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import progress_of, say
from rebalance_core.contracts.paths import is_local
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.place import is_reached, place_of

# A run in this process: the output folder, the lock, and how services are called.
#
# A job asks `carrier_of` and then does the same in both places: it reserves the output, reads,
# calls a service of `process` or the one of the same name of `spark`, and records what came of
# it.


class Carrier:
    """One run of a job in this process; `on_spark.OnSpark` is one on Spark.

    Attributes:
        name: `PROCESS` or `SPARK`.
    """

    name: ClassVar[str] = PROCESS

    def __init__(self, job: str, options: Any, settings: Settings) -> None:
        self.job = job
        self.options = options
        self.settings = settings

    @property
    def session(self) -> Any:
        """Of Spark; None in a process."""
        return None

    @contextmanager
    def running(self, tables: Iterable[str]) -> Iterator[OutputRun]:
        """Reserve the output folder for this run."""
        with self._reserved(folder_here(self.options.output), tables) as run:
            yield run

    def check_free(self) -> None:
        """Raise what `running` would raise about the output folder, and touch nothing."""
        folder = folder_here(self.options.output)
        if isinstance(folder, LocalFolder):
            with output_errors(folder.location):
                folder.check_makeable()
        self._check_unlocked(folder)

    def call(
        self, service: Callable[..., Any], *arguments: Any, of: str | None = None, **keywords: Any
    ) -> Any:
        """Call a service of this place.

        Args:
            service: a function of `process`; on Spark of `spark`, which takes the session first.
            arguments: after the session.
            of: what its progress counts, e.g. ``groups``; None: it tells of none.
            keywords: of the service.
        """
        if of is None:
            return service(*arguments, **keywords)
        with progress_of(of) as progress:
            return service(*arguments, progress=progress, **keywords)

    def output(self, *names: str) -> Any:
        """The output folder, or what lies below it, as services take it; while `running`."""
        place = place_of(self.options.output)
        for name in names:
            place /= name
        return place

    def location(self, location: str) -> str:
        """A place that an option names, as services take it."""
        return location

    def folder(self, location: str) -> OutputFolder:
        """A folder that another run wrote."""
        return folder_here(location)

    def input_tables(self, inputs: Mapping[str, str]) -> Any:
        """The input tables.

        Args:
            inputs: place by table; empty: what there is in the remote folder that --input names.
        """
        from rebalance_core.checks.input_tables import read_input_tables

        return read_input_tables(paths=inputs, input_format=self.options.input_format)

    def records(self, inputs: Mapping[str, str]) -> list[InputRecord]:
        """Fingerprints of the inputs, for the record of the run."""
        return [fingerprint(table, path, self.session) for table, path in inputs.items()]

    @contextmanager
    def _reserved(self, folder: OutputFolder, tables: Iterable[str]) -> Iterator[OutputRun]:
        config = self.settings.as_dict()
        with OutputRun(folder, self.job, self.options, config, tables, self.name) as run:
            if run.broken is not None:
                say(f"broke the lock of a dead run: {run.broken}")
            yield run

    def _check_unlocked(self, folder: OutputFolder) -> None:
        """Raise `OutputExists` if a run could not have the folder now."""
        options = self.options
        refuse_own_input(folder, options)
        with output_errors(folder.location):
            dead = breakable_lock(folder, break_lock=options.break_lock)
            check_output(folder, overwrite=options.overwrite, left_by_dead_run=dead is not None)


# Where a run takes place: in this process, or on Spark.


def run_on_of(
    options: Any,
    settings: Settings,
    places: Iterable[str | None],
    others: Iterable[str | None] = (),
) -> str:
    """`PROCESS` or `SPARK`, by the rule of ``auto`` if nothing is said.

    Spark: under spark-submit, with --master, where an input is not local or the output is not
    reached without Spark, or the input is larger than ``limits.process_bytes``.

    Args:
        options: of the run; its ``run_on`` and ``master``.
        settings: of the run.
        places: paths and URIs of the inputs; None is none.
        others: what else a process must reach, of any size: the output.

    Raises:
        UsageError: --run-on process, and something is not reached; an address is wrong.
    """
    given = [place for place in places if place is not None]
    remote = [place for place in given if not is_local(place)]
    beyond = [place for place in others if place is not None and not is_reached(place)]
    if options.run_on == PROCESS and remote:
        raise UsageError(
            f"--run-on process reads local files only; {redact_text(remote[0])} is not"
        )
    if options.run_on == PROCESS and beyond:
        place_of(beyond[0])  # says why
    if options.run_on != AUTO:
        return str(options.run_on)
    if under_spark_submit() or options.master is not None or remote or beyond:
        return SPARK
    return SPARK if sum(map(local_bytes, given)) > settings.limits.process_bytes else PROCESS


def carrier_of(
    job: str,
    options: Any,
    settings: Settings,
    places: Iterable[str | None] = (),
    others: Iterable[str | None] = (),
    *,
    large: bool = False,
) -> Carrier:
    """Where the run takes place.

    Args:
        job: its name.
        options: of the run.
        settings: of the run.
        places: paths and URIs of the inputs, as `run_on_of` takes them.
        others: what else a process must reach, beside the output.
        large: there is more to do than ``auto`` leaves to a process, whatever is read.
    """
    run_on = SPARK
    if not (large and options.run_on == AUTO):
        run_on = run_on_of(options, settings, places, [options.output, *others])
    if run_on == PROCESS:
        return Carrier(job, options, settings)
    from rebalance_core.cli.run.on_spark import OnSpark  # pyspark takes a second to import

    return OnSpark(job, options, settings)
