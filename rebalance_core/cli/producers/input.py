"""Where the recorded results are, checked before Spark starts."""

from pathlib import Path

from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.run.input_files import tables_in
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.contracts.producers import SEND_RESULTS

READ = {
    SEND_RESULTS.name: SEND_RESULTS,
    "cluster_events": INPUT_TABLES["cluster_events"],
}
_REQUIRED = (SEND_RESULTS.name,)


def results_inputs(options: ProducersOptions) -> dict[str, str]:
    """Path by table of a folder; a remote one has tables at its own names.

    Raises:
        InputRefused: No such folder, or it has no ``send_results``.
    """
    if options.input is None:
        return {}
    if not is_local(options.input):
        return {SEND_RESULTS.name: f"{options.input.rstrip('/')}/{SEND_RESULTS.name}"}
    folder: Path = local_path(options.input)
    found = tables_in(folder, options.input_format, READ, _REQUIRED)
    return {table: str(path) for table, path in found.items()}
