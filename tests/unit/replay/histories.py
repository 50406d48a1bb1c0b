"""Small group histories: a few events, two brokers, one topic, and the ledger they make."""

from collections.abc import Sequence
from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy, parse_strategy

Row = dict[str, Any]
Tables = dict[str, list[Row]]

GROUP = "g"
RETRY = "%RETRY%g"


def strategy_for(key: StrategyKey) -> AllocationStrategy:
    """The strategy of a (text, client version)."""
    return parse_strategy(key[0], version=key[1])


def event(at_ms: int, event_type: str, client_id: str | None = None, **fields: Any) -> Event:
    """One event; `numbered` gives the sequence."""
    return Event(at_ms, 0, event_type, client_id, **fields)


def topic(at_ms: int, queues: int, name: str = "T", broker: str = "a", **fields: Any) -> Event:
    """A topic is created or scaled on one broker."""
    return event(
        at_ms, "TOPIC_CONFIG", topic=name, broker_name=broker, read_queue_nums=queues, **fields
    )


def join(at_ms: int, client_id: str, *topics: str, **fields: Any) -> Event:
    """A member joins; without topics it takes the group's."""
    return event(at_ms, "CONSUMER_JOIN", client_id, subscriptions=topics or None, **fields)


def leave(at_ms: int, client_id: str, **fields: Any) -> Event:
    """A member leaves gracefully."""
    return event(at_ms, "CONSUMER_LEAVE", client_id, **fields)


def numbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events with the order they are written in as their sequence."""
    return tuple(
        Event(**{name: getattr(e, name) for name in Event.__slots__} | {"sequence": i})
        for i, e in enumerate(events)
    )


def history(
    *events: Event,
    offsets: Sequence[QueueOffset] | None = None,
    commits: Sequence[CommittedOffset] | None = None,
    **settings: Any,
) -> GroupHistory:
    """A group whose members subscribe T unless they say otherwise."""
    return GroupHistory(
        "c",
        GROUP,
        GroupSettings(**{"subscriptions": ("T",)} | settings),
        numbered(events),
        None if offsets is None else tuple(offsets),
        None if commits is None else tuple(commits),
    )


def ledger(given: GroupHistory, *, retry: bool = False) -> Tables:
    """All rows of the group; retry topics only where a test is about them."""
    return replay_group(given, strategy_for, include_retry_topics=retry)


def replay(*events: Event, retry: bool = False, **settings: Any) -> Tables:
    """`ledger` of `history`."""
    return ledger(history(*events, **settings), retry=retry)


def queue(text: str) -> MessageQueue:
    """``"a0"`` is queue 0 of topic T on broker a; ``"U/a0"`` of topic U."""
    name, _, rest = text.rpartition("/")
    return MessageQueue(name or "T", rest[0], int(rest[1:]))


def short(row: Row) -> str:
    """The inverse of `queue`."""
    prefix = "" if row["topic"] == "T" else f"{row['topic']}/"
    return f"{prefix}{row['broker_name']}{row['queue_id']}"


def owners(tables: Tables, epoch: int = -1) -> dict[str, str]:
    """Queue -> owners in an epoch, ``-`` for nobody and ``x2`` for two processes of one id."""
    epoch = epoch % len(tables["epochs"])
    held: dict[str, list[str]] = {}
    for row in tables["ownership"]:
        if row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"]):
            times = f" x{row['holders']}" if row["holders"] > 1 else ""
            held.setdefault(short(row), []).append(f"{row['client_id'] or '-'}{times}")
    return {name: ", ".join(sorted(clients)) for name, clients in sorted(held.items())}


def reaches(tables: Tables, epoch: int = -1) -> dict[str, str]:
    """Client -> what it may take from in an epoch; ``a*`` for every queue of broker a."""
    epoch = epoch % len(tables["epochs"])
    reached: dict[str, list[str]] = {}
    for row in tables["pop_reach"]:
        if row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"]):
            entry = short(row).replace("-1", "*")
            reached.setdefault(row["client_id"], []).append(entry)
    return {client_id: " ".join(sorted(entries)) for client_id, entries in sorted(reached.items())}


def diffs(tables: Tables, epoch: int = -1) -> list[str]:
    """``"ADD a0 x < y FORCED"``: x adds queue a0, y is the other client."""
    epoch = epoch % len(tables["epochs"])
    lines = []
    for row in tables["diffs"]:
        if row["epoch"] == epoch:
            arrow = "<" if row["action"] == "ADD" else ">"
            other = f" {arrow} {row['other_client_id']}" if row["other_client_id"] else ""
            lines.append(f"{row['action']} {short(row)} {row['client_id']}{other} {row['kind']}")
    return lines


def windows(tables: Tables, epoch: int = -1) -> dict[str, int]:
    """Action and queue -> latest_ms - change_ms."""
    epoch = epoch % len(tables["epochs"])
    return {
        f"{row['action']} {short(row)}": row["latest_ms"] - row["change_ms"]
        for row in tables["diffs"]
        if row["epoch"] == epoch
    }


def seen(name: str, at_ms: int, low: int, high: int, cached: bool | None = None) -> QueueOffset:
    """An observation of a queue's offsets."""
    return QueueOffset(queue(name), at_ms, low, high, cached)


def commit(name: str, at_ms: int, offset: int, client_id: str | None = None) -> CommittedOffset:
    """An observation of a commit."""
    return CommittedOffset(queue(name), client_id, at_ms, offset)


def column(tables: Tables, name: str) -> list[object]:
    """Return one column of `epochs`."""
    return [row[name] for row in tables["epochs"]]
