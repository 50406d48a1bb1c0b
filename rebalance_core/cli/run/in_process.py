"""A run in this process: the output folder, the lock, inputs, and how jobs are called.

A job calls `backend_of` and then does the same in both places: it reserves the output, reads the
input, calls a service with the place's runtime, and records the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from rebalance_core.cli.options import PROCESS
from rebalance_core.cli.run import output_run
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import breakable_lock, refuse_own_input, typed_place
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import InputRecord
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import progress_of, say
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.opening_state import EVIDENCE_FILES
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.storage.place import LocalPlace, place_of

if TYPE_CHECKING:
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.ingest.assumptions import Assumptions
    from rebalance_core.ingest.collection import Collection
    from rebalance_core.process.audit import InputsOfAudit
    from rebalance_core.process.runtime import Runtime


class Backend:
    """A run of a job in this process; `on_spark.OnSpark` is its counterpart on Spark.

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
        """The Spark session; None in-process."""
        return None

    @property
    def runtime(self) -> Runtime:
        """The place in the form that services take."""
        from rebalance_core.process.runtime import HERE

        return HERE

    @contextmanager
    def running(self, tables: Iterable[str]) -> Iterator[OutputRun]:
        """Reserve the output folder for this run."""
        with self._reserved(typed_place(self.options.output), tables) as run:
            yield run

    def check_free(self) -> None:
        """Raise the errors of `running` about the output folder, without changing it."""
        folder = typed_place(self.options.output)
        if isinstance(folder, LocalPlace):
            with output_run.output_errors(folder.url):
                folder.check_makeable()
        self._check_unlocked(folder)

    def run(
        self, service: Callable[..., Any], *arguments: Any, of: str | None = None, **keywords: Any
    ) -> Any:
        """Call a service that is written once for all places.

        Args:
            service: a function of `process` that takes a runtime.
            arguments: the service's arguments.
            of: the unit of its progress, e.g. ``groups``; None if it reports no progress.
            keywords: the service's keywords.
        """
        if of is None:
            return service(*arguments, runtime=self.runtime, **keywords)
        with progress_of(of) as progress:
            return service(*arguments, runtime=self.runtime, progress=progress, **keywords)

    def output(self, *names: str) -> Any:
        """Return the output folder, or a path below it, in the services' form, while `running`."""
        place = place_of(self.options.output)
        for name in names:
            place /= name
        return place

    def location(self, location: str) -> str:
        """Return a place that an option names, in the services' form."""
        return location

    def folder(self, location: str) -> OutputFolder:
        """Return a folder that another run wrote."""
        return typed_place(location)

    def input_tables(self, inputs: Mapping[str, str]) -> Any:
        """Return the input tables.

        Args:
            inputs: place by table; empty for the tables in the remote folder that --input names.
        """
        from rebalance_core.checks.input_tables import read_input_tables

        folder = None if inputs else self.options.input
        return read_input_tables(folder, paths=inputs, input_format=self.options.input_format)

    def opened_tables(self, inputs: Mapping[str, str], state: str | None) -> Any:
        """Return the input tables with the opening state that a run left.

        Args:
            inputs: as in `input_tables`.
            state: the folder of the run, or None.
        """
        from rebalance_core.checks.opening_state import state_folder

        tables = self.input_tables(inputs)
        if state is None:
            return tables
        return self._with_state(tables, state_folder(self.folder(state)))

    def _with_state(self, tables: Any, folder: str) -> Any:
        from rebalance_core.checks.opening_state import with_state

        return with_state(tables, folder)

    def collection(self, location: str) -> Collection:
        """Return the collection at a place that an option names.

        Raises:
            InputRefused: as for `open_collection`.
        """
        from rebalance_core.ingest.collection import open_collection

        return open_collection(local_path(location) if is_local(location) else location)

    def continued(self, collection: Collection, state: str | None) -> Collection:
        """Return the collection as the continuation of the run that left a state.

        Args:
            collection: the collection of this run.
            state: the folder of that run, or None.
        """
        from rebalance_core.checks.opening_state import evidence_folder
        from rebalance_core.ingest.opening_evidence import OpeningEvidence, with_opening

        if state is None:
            collection.refuse_without_state()
            return collection
        folder = self.location(evidence_folder(self.folder(state)).url)
        files = self.runtime.reader(folder)(EVIDENCE_FILES.name)
        return with_opening(collection, OpeningEvidence.read(folder, state, files))

    def audit_inputs(self, folder: Any, *, ingested: bool = False) -> InputsOfAudit:
        """Return the tables of an audit in a folder, including extra ones if this run ingested
        them.
        """
        from rebalance_core.process.audit import read_ingested, read_inputs

        return read_ingested(folder) if ingested else read_inputs(folder)

    def unwritten_inputs(
        self, collection: Collection, assumed: Assumptions, kept: ExitStack
    ) -> InputsOfAudit:
        """Return the unwritten tables of a collection; ``kept`` releases them at the end."""
        from rebalance_core.process.audit import unwritten_inputs

        return unwritten_inputs(collection, assumed)

    def records(self, inputs: Mapping[str, str]) -> list[InputRecord]:
        """Return fingerprints of the inputs, for the run's record."""
        return [fingerprint(table, path, self.session) for table, path in self._all(inputs).items()]

    def _all(self, inputs: Mapping[str, str]) -> Mapping[str, str]:
        """Return the inputs, including those in the remote folder that --input names."""
        from rebalance_core.checks.table_files import tables_at

        if inputs:
            return inputs
        places = tables_at(self.options.input, INPUT_TABLES)
        return {name: str(place) for name, place in places.items()}

    @contextmanager
    def _reserved(self, folder: OutputFolder, tables: Iterable[str]) -> Iterator[OutputRun]:
        config = self.settings.as_dict()
        with OutputRun(folder, self.job, self.options, config, tables, self.name) as run:
            if run.broken is not None:
                say(f"broke the lock of a dead run: {run.broken}")
            yield run

    def _check_unlocked(self, folder: OutputFolder) -> None:
        """Raise `model.errors.OutputExists` if a run could not lock the folder now."""
        options = self.options
        refuse_own_input(folder, options)
        with output_run.output_errors(folder.url):
            dead = breakable_lock(folder, break_lock=options.break_lock)
            output_run.check_output(folder, overwrite=options.overwrite, dead=dead)
