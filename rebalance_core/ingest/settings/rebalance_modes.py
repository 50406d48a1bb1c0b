"""Who divides the queues for each member: it itself, or the broker that it asks
(rocketmq.md §2.8).
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.group_settings import BROKER_REBALANCE, CLIENT_REBALANCE


def rebalance_modes(pieces: Iterable[Evidence]) -> dict[str, str]:
    """CLIENT or BROKER by client id, for members of which any file tells.

    ``clientRebalance`` is the member's own setting. A member that got an assignment, or pops, asks
    the broker; one that divided itself may ask, too, and be orderly.
    """
    modes: dict[str, str] = {}
    divided: dict[str, str] = {}
    for piece in pieces:
        v = piece.values
        if piece.kind == "client" and v["client_rebalance"] is not None and v.get("client_file"):
            own = v["client_rebalance"]
            modes[v["client_file"]] = CLIENT_REBALANCE if own else BROKER_REBALANCE
        elif piece.kind == "client_pop_queue" and v.get("client_file"):
            modes[v["client_file"]] = BROKER_REBALANCE
        elif piece.kind == "broker_allocated":
            modes[v["client_id"]] = BROKER_REBALANCE
        elif piece.kind == "allocated":
            divided[v["client_id"]] = CLIENT_REBALANCE
    return divided | modes
