"""Name servers that were down for a while: they log no stop, and what they knew is gone."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.timers import REGISTRATION_MS

HEARD_MS = 2 * REGISTRATION_MS
"""Every broker that lives has registered by then with a name server that started (60 s at most)."""
STARTS = "name_server_starting"


def silences(ordered: Sequence[Evidence]) -> dict[int, str]:
    """By number of a piece of evidence the name server of which it is the last before its start.

    Nothing tells how long it lived after that. While it did it logged each broker that it lost, so
    what another one lost since then it did not have either.

    Args:
        ordered: evidence on the cluster by time.
    """
    last: dict[str, int] = {}
    silent: dict[int, str] = {}
    for number, piece in enumerate(ordered):
        if piece.kind == STARTS and piece.place in last:
            silent[last[piece.place]] = piece.place
        last[piece.place] = number
    return silent
