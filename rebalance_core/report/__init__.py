"""Output for human readers: the audit's HTML page, and figures of plans.

`audit_report` derives the values on the page from rows of tables, and `page.render_page` renders
them. `plots` has the figures; `timeline_rows` has the queue histories that both draw. Figures need
matplotlib (extra ``plots``), so they are imported lazily: ``from rebalance_core.report import
draw_moves``.

May import: `model`; jinja2 and markupsafe for the page; matplotlib, numpy and pandas for figures.
Begin with `audit_report`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_core.report.plots.fidelity import draw_fidelity
    from rebalance_core.report.plots.futures import draw_convergence, draw_worst_future
    from rebalance_core.report.plots.load import draw_load
    from rebalance_core.report.plots.moves import draw_moves
    from rebalance_core.report.plots.owners_over_time import draw_ownership
    from rebalance_core.report.plots.producers import draw_producers
    from rebalance_core.report.plots.rollouts import draw_rollouts
    from rebalance_core.report.plots.scaling import draw_scaling
    from rebalance_core.report.plots.strategy_points import draw_league
    from rebalance_core.report.plots.style import save_picture, svg_text
    from rebalance_core.report.plots.what_if import draw_what_if

_PICTURES = {
    "draw_convergence": "futures",
    "draw_fidelity": "fidelity",
    "draw_league": "strategy_points",
    "draw_load": "load",
    "draw_moves": "moves",
    "draw_ownership": "owners_over_time",
    "draw_producers": "producers",
    "draw_rollouts": "rollouts",
    "draw_scaling": "scaling",
    "draw_what_if": "what_if",
    "draw_worst_future": "futures",
    "save_picture": "style",
    "svg_text": "style",
}

__all__ = [
    "draw_convergence",
    "draw_fidelity",
    "draw_league",
    "draw_load",
    "draw_moves",
    "draw_ownership",
    "draw_producers",
    "draw_rollouts",
    "draw_scaling",
    "draw_what_if",
    "draw_worst_future",
    "save_picture",
    "svg_text",
]


def __getattr__(name: str) -> Any:
    if name not in _PICTURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.plots.{_PICTURES[name]}"), name)
