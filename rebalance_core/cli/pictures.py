"""Draws the figures that a job writes next to its tables."""

from collections.abc import Callable

from rebalance_core.cli.terminal import missing_package, warn


def picture(name: str, draw: Callable[[], str]) -> dict[str, str]:
    """Return a figure keyed by its file name; without matplotlib, warn and return an empty dict.

    Args:
        name: the file name.
        draw: draws the SVG with functions of `rebalance_core.report`.
    """
    try:
        return {name: draw()}
    except ModuleNotFoundError as error:
        reason = missing_package(error)
        if reason is None:
            raise
        warn(f"no {name}: {reason}")
        return {}
