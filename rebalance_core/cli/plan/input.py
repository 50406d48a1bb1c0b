"""Where the input of `plan` is, checked before Spark starts."""

from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.input_files import check_readable, tables_in
from rebalance_core.contracts.paths import is_local, local_path


def plan_inputs(options: PlanOptions) -> dict[str, str]:
    """Path by input table; those of a remote folder are for the reader to find."""
    if options.queue_rates is not None:
        check_readable("--queue-rates", options.queue_rates, options.input_format)
    if not is_local(options.input):
        return {}
    paths = tables_in(local_path(options.input), options.input_format)
    return {table: str(path) for table, path in paths.items()}
