"""What stores and clients say of the request mode of a group's topics (rocketmq.md §14)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.group_settings import (
    PULL_MODE,
    RequestMode,
    can_be_popped,
    parse_request_mode,
)

DIFFER_MS = 120_000
"""PULL between two answers of POP, all within this time: two brokers differ, the mode did not
change. A client asks one of them at random, every 1 s to 20 s."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a broker's store, or a client, says of the mode of one topic."""

    at_ms: int
    source: str
    mode: RequestMode | None
    """None: POP, with a share that the client does not tell."""
    broker: str | None = None
    client_id: str | None = None
    whole_brokers: bool | None = None
    """The client was given whole brokers; None: not told, or not popped."""


def statements_by_topic(
    pieces: Iterable[Evidence], context: ClusterContext
) -> dict[str, list[Statement]]:
    """Statements of stores' entries and of clients by topic, in the order of the evidence."""
    by_topic: dict[str, list[Statement]] = {}
    for piece in pieces:
        statement = _statement(piece, context.time_of(piece))
        if statement is not None and can_be_popped(piece.values["topic"]):
            by_topic.setdefault(piece.values["topic"], []).append(statement)
    return by_topic


def _statement(piece: Evidence, at_ms: int) -> Statement | None:
    v = piece.values
    if piece.kind == "request_mode":
        return Statement(at_ms, piece.source, parse_request_mode(v["mode"]), broker=piece.place)
    if piece.kind == "broker_allocated" and v["mode"] is not None:
        mode = PULL_MODE if v["mode"] == "PULL" else None
        whole = None if mode else v["whole_brokers"]
        return Statement(at_ms, piece.source, mode, client_id=v["client_id"], whole_brokers=whole)
    if piece.kind == "client_pop_queue" and not v["dropped"]:
        return Statement(at_ms, piece.source, None, client_id=v.get("client_file"))
    return None


def absences(statements: Iterable[Statement], context: ClusterContext) -> list[Statement]:
    """Stores without an entry for the topic: it is pulled."""
    stated = {(one.broker, one.at_ms) for one in statements}
    return [
        Statement(at_ms, source, PULL_MODE, broker=broker)
        for broker, at_ms, source in context.mode_stores
        if (broker, at_ms) not in stated
    ]


def without_differing(statements: Sequence[Statement]) -> tuple[list[Statement], int]:
    """The statements without the PULL that brokers tell which differ from others, and how many.

    While one broker says POP and another PULL, clients are told now this, now that. Then the topic
    counts as popped.

    Args:
        statements: of one topic, by time.
    """
    popped = sorted(
        one.at_ms for one in statements if one.client_id is not None and one.mode is None
    )
    kept = [one for one in statements if not _differs(one, popped)]
    return kept, len(statements) - len(kept)


def _differs(one: Statement, popped: Sequence[int]) -> bool:
    """A client is told PULL, and some client POP both shortly before and shortly after."""
    if one.client_id is None or one.mode != PULL_MODE:
        return False
    after = bisect_right(popped, one.at_ms)
    return 0 < after < len(popped) and popped[after] - popped[after - 1] <= DIFFER_MS
