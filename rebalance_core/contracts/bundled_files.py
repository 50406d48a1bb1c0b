"""Files bundled with the package: example scenarios and producer models, the demo, the
collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def bundled(kind: str) -> dict[str, Traversable]:
    """Return the bundled files of a kind by name, ``.toml`` left out; in order.

    Args:
        kind: a folder of ``rebalance_core/bundled``: scenarios, rollouts or producers.
    """
    from importlib.resources import files  # takes a while, and --help needs none

    entries = (files("rebalance_core") / "bundled" / kind).iterdir()
    return {
        entry.name.removesuffix(".toml"): entry for entry in sorted(entries, key=lambda f: f.name)
    }
