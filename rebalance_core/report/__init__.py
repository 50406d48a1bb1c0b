"""What people look at: the audit's HTML page, and pictures of plans.

``audit_report`` says what the page shows, ``page.page.render_page`` makes it; ``plots`` holds the
pictures, ``timeline`` what both draw of queues over time. Pictures need matplotlib (extra
``plots``), so they are imported when they are asked for:
``from rebalance_core.report import draw_moves``.

May import: `model`; jinja2 and markupsafe for the page, matplotlib, numpy and pandas for pictures.
Begin with `audit_report`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_core.report.plots.league import draw_league
    from rebalance_core.report.plots.load import draw_load
    from rebalance_core.report.plots.moves import draw_moves
    from rebalance_core.report.plots.ownership import draw_ownership
    from rebalance_core.report.plots.style import save_picture
    from rebalance_core.report.plots.what_if.what_if import draw_what_if

_PICTURES = {
    "draw_league": "league",
    "draw_load": "load",
    "draw_moves": "moves",
    "draw_ownership": "ownership",
    "draw_what_if": "what_if.what_if",
    "save_picture": "style",
}

__all__ = [
    "draw_league",
    "draw_load",
    "draw_moves",
    "draw_ownership",
    "draw_what_if",
    "save_picture",
]


def __getattr__(name: str) -> Any:
    if name not in _PICTURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.plots.{_PICTURES[name]}"), name)
