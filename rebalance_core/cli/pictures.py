"""The pictures that a job writes beside its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rebalance_core.cli.terminal import missing_package, warn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(name: str, draw: Callable[[], Figure]) -> dict[str, str]:
    """Return a picture as SVG by the name of its file; without matplotlib, warn and return nothing.

    Args:
        name: the name of the file.
        draw: draws the picture with a function of `rebalance_core.report`.
    """
    try:
        from rebalance_core.report import svg_text

        return {name: svg_text(draw())}
    except ModuleNotFoundError as error:
        reason = missing_package(error)
        if reason is None:
            raise
        warn(f"no {name}: {reason}")
        return {}
