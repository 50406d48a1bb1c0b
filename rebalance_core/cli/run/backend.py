"""The place where a run executes: this process or Spark."""

from collections.abc import Iterable
from typing import Any

from rebalance_core.cli.options import AUTO, PROCESS, SPARK
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import is_larger
from rebalance_core.cli.run.spark_failure import connect_address, under_spark_submit
from rebalance_core.cli.settings import Settings
from rebalance_core.storage.place import is_reachable, place_of


def run_on_of(
    options: Any,
    settings: Settings,
    places: Iterable[str | None],
    others: Iterable[str | None] = (),
) -> str:
    """Return `PROCESS` or `SPARK`, by the rule for ``auto`` if neither is chosen.

    Spark is used under spark-submit, with --master or SPARK_REMOTE, for tables in a catalog, if an
    input is not local or only Spark can reach the output, or if the input is larger than
    ``limits.process_bytes``.

    Args:
        options: the run's options; its ``run_on`` and ``master``.
        settings: the run's settings.
        places: paths and URIs of the inputs; None stands for no input.
        others: other places that a process must reach, regardless of size, such as the output.

    Raises:
        UsageError: a place cannot be reached with --run-on process, or an address is wrong.
    """
    inputs = [place for place in places if place is not None]
    named = [*inputs, *(place for place in others if place is not None)]
    not_reached = [place for place in named if not is_reachable(place)]
    if options.run_on == PROCESS and not_reached:
        place_of(not_reached[0])  # raises with the reason
    if options.run_on != AUTO:
        return str(options.run_on)
    started_for_it = under_spark_submit() or options.master or connect_address(None)
    of_catalog = getattr(options, "input_tables", None) is not None
    if started_for_it or not_reached or of_catalog:
        return SPARK
    try:
        large = is_larger(inputs, settings.limits.process_bytes)
    except OSError:
        return SPARK  # which may have other keys for the store
    return SPARK if large else PROCESS


def backend_of(
    job: str,
    options: Any,
    settings: Settings,
    places: Iterable[str | None] = (),
    others: Iterable[str | None] = (),
    *,
    large: bool = False,
) -> Backend:
    """Return the backend of the run.

    Args:
        job: its name.
        options: the run's options.
        settings: the run's settings.
        places: paths and URIs of the inputs, as for `run_on_of`.
        others: further places that a process must reach, besides the output.
        large: whether the work is too large for a process under ``auto``, regardless of the input
            size.
    """
    run_on = SPARK
    if not (large and options.run_on == AUTO):
        run_on = run_on_of(options, settings, places, [options.output, *others])
    if run_on == PROCESS:
        return Backend(job, options, settings)
    from rebalance_core.cli.run.on_spark import OnSpark  # pyspark takes a second to import

    return OnSpark(job, options, settings)
