"""Files bundled with the package: example scenarios and producer models, the demo, the
collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def bundled(kind: str) -> dict[str, Traversable]:
    """Return the bundled files of a kind by name, without ``.toml``, in order.

    Args:
        kind: a folder of ``rebalance_core/bundled``: scenarios, rollouts or producers.
    """
    from importlib.resources import files  # slow, and not needed for --help

    entries = (files("rebalance_core") / "bundled" / kind).iterdir()
    return {
        entry.name.removesuffix(".toml"): entry for entry in sorted(entries, key=lambda f: f.name)
    }
