"""Who divides the queues for each member: it itself, the broker that it asks, or nobody, as every
gRPC client reaches every queue through its proxy (rocketmq.md §2.8, §14).
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.parse.channels.proxied_channel import GRPC
from rebalance_core.ingest.settings.given_up import divide_all
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    PROXY_REBALANCE,
)


def rebalance_modes(pieces: Iterable[Evidence]) -> dict[str, str]:
    """CLIENT, BROKER or PROXY by client id, for members of which any file tells.

    ``clientRebalance`` is the member's own setting. A member that got an assignment, or pops, asks
    the broker; one that divided itself may be set to ask, too, and be orderly. If it is not, it has
    given up asking; where it did for some topics only, it counts as one that asks.
    """
    pieces = list(pieces)
    modes: dict[str, str] = {}
    divided: dict[str, str] = {}
    proxied: dict[str, str] = {}
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
        elif piece.kind == "consumer_connected" and v.get("protocol") == GRPC:
            proxied[v["client_id"]] = PROXY_REBALANCE
    gave_up = dict.fromkeys(divide_all(pieces) - proxied.keys(), CLIENT_REBALANCE)
    return divided | modes | gave_up | proxied
