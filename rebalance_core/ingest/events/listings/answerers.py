"""Whose connections a dump of a broker lists: while its master is gone, those of a slave.

It is asked in the master's place, whether it acts as master or not (rocketmq.md §15).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence


def at_answerers(pieces: Iterable[Evidence], context: ClusterContext) -> list[Evidence]:
    """The pieces, those of kind ``member`` with the place of the process that answered.

    It is the slave whose log has the connection, else, while the master is gone, the only slave
    whose files were collected. Where nothing tells it, the piece is left out.
    """
    pieces = list(pieces)
    announced = {(p.place, p.values["channel"]) for p in pieces if p.kind == "consumer_connected"}
    slaves: dict[str, list[str]] = {}
    for folder in context.folders.values():
        if folder.place != folder.broker_name:
            slaves.setdefault(folder.broker_name, []).append(folder.place)
    found = []
    for piece in pieces:
        if piece.kind != "member":
            found.append(piece)
            continue
        own = sorted(slaves.get(piece.place, ()))
        channel = piece.values["client_addr"]
        logged = [place for place in own if (place, channel) in announced]
        if logged and (piece.place, channel) not in announced:
            found.append(replace(piece, place=logged[0]))
        elif not context.is_masterless(piece.place, context.time_of(piece)):
            found.append(piece)
        elif len(own) == 1:
            found.append(replace(piece, place=own[0]))
    return found
