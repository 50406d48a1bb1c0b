"""Compares our rules with what RocketMQ's own unit tests assert: one assertion, one fact.

The file is JSON lines in UTF-8. The first line is its head: ``format`` (`FORMAT`),
``format_version``, ``source`` and ``not_modelled`` (tests left out, and why). Every other line
holds inputs and expected values of one test, or of one turn of its loops: ``test``
(class#method), ``versions`` (each is compared) and ``rule`` with its fields:

* ``allocate``: ``strategy``, ``params``, ``shares`` {client id: {``queue_ids`` in order} or
  {``size``} or {``error``: [class, message; null: any]}}.
* ``ring``: CONSISTENT_HASH with ``virtual_nodes``. Every queue is allocated; without ``removed``
  each queue of the others stays where it is, and so it does when ``added`` joins, save what that
  takes.
* ``rooms``: MACHINE_ROOM_NEARBY around ``strategy``, room = text before the first ``-``. Every
  queue goes to exactly one member; each room with members gets its own queues whole;
  ``own_room_only``: and nobody gets any other.
* ``pop_share``: ``asks`` gets at least and at most ``sizes[n]`` queues under popShareQueueNum n.
* ``start_offset``: arguments of compute_pull_from_where and the ``offset``.
* ``threshold``: ``for_queue`` to begin with; ``expected`` after each of ``steps`` [for topic,
  queues].
* ``timestamp_search``: messages ``stored_ms``; ``found`` [[timestamp, offset]]: inside the bounds.
* ``offset_store``: a ``local`` or ``remote`` ``store``; ``steps`` on one queue: update, persist,
  remove, read_memory, read_store (with what is read), broker (how it answers from then on).
* ``broker_offsets``: ``commits`` and ``queries`` [topic, queue id, offset; null: none].
* ``broker_reply``: arguments of broker_offset_reply and the ``reply``.
* ``order_lock``: queue ids ``held`` by client; ``lock`` and which of them are ``granted``, or
  ``unlock`` and how many locks are ``left``.
* ``default_strategy``: its ``name``.

``queues`` are [topic, broker name, first id, end of ids]; ``clients`` are ids, or [prefix, count]
for prefix0, prefix1, … Both go to the strategy in this order, as in the tests.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rebalance_core.model.errors import AllocationError, RebalanceError
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
from rebalance_core.protocol.pull_threshold import pull_threshold_per_queue
from rebalance_core.protocol.start_offset import compute_pull_from_where
from rebalance_core.protocol.timestamp_search import timestamp_search_bounds
from rebalance_core.strategies.pop import allocate_for_pop
from rebalance_core.strategies.registry import make_strategy
from rebalance_core.strategies.spi import AllocationStrategy
from tests.conformance.upstream_brokers import broker_offsets, offset_store, order_lock

FORMAT = "upstream-assertions"
FORMAT_VERSION = 1

Json = dict[str, Any]
Fact = tuple[str, Any, Any]  # of what, expected, actual
Shares = dict[str, list[MessageQueue]]


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of a file of upstream assertions.

    A line that cannot be read or computed is one mismatch; a file of another format or of a newer
    version raises ValueError.
    """
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        head = json.loads(next(lines, "null"))
        if not is_head(head):
            raise ValueError(f"{path}: not {FORMAT} of version {FORMAT_VERSION}")
        for number, line in enumerate(lines, start=2):
            where = f"{path.name}:{number}"
            try:
                row = json.loads(line)
                for version in row["versions"]:
                    for what, expected, actual in RULES[row["rule"]](row, version):
                        facts += 1
                        if expected != actual:
                            mismatches.append(
                                f"{where}: {row['test']} {version} {what}: "
                                f"expected {expected!r}, got {actual!r}"
                            )
            except (RebalanceError, LookupError, ValueError, TypeError, AttributeError) as error:
                problem = f"cannot be compared: {type(error).__name__}: {error}"
                facts += 1
                mismatches.append(f"{where}: {problem}")
    return facts, mismatches


def is_head(head: Any) -> bool:
    """True for the first line of such a file."""
    if not isinstance(head, dict):
        return False
    return (head.get("format"), head.get("format_version")) == (FORMAT, FORMAT_VERSION)


def _queues(row: Json) -> list[MessageQueue]:
    return [
        MessageQueue(topic, broker_name, queue_id)
        for topic, broker_name, first, end in row["queues"]
        for queue_id in range(first, end)
    ]


def _clients(row: Json) -> list[str]:
    client_ids: list[str] = []
    for item in row["clients"]:
        client_ids += [item] if isinstance(item, str) else [f"{item[0]}{i}" for i in range(item[1])]
    return client_ids


def _shares(
    strategy: AllocationStrategy, queues: list[MessageQueue], client_ids: list[str]
) -> Shares:
    return {client_id: strategy.allocate(client_id, queues, client_ids) for client_id in client_ids}


def _owners(shares: Shares) -> dict[MessageQueue, str]:
    return {queue: client_id for client_id, share in shares.items() for queue in share}


def _allocate(row: Json, version: str) -> Iterator[Fact]:
    strategy = make_strategy(row["strategy"], row["params"], version)
    queues, client_ids = _queues(row), _clients(row)
    for client_id, expected in row["shares"].items():
        try:
            share = strategy.allocate(client_id, queues, client_ids)
        except AllocationError as error:
            java_class, message = expected.get("error", (None, None))
            seen = None if message is None else error.java_message
            yield client_id, (java_class, message), (error.java_class, seen)
            continue
        actual: Json = {"size": len(share), "queue_ids": [queue.queue_id for queue in share]}
        yield client_id, expected, {name: actual.get(name) for name in expected}


def _ring(row: Json, version: str) -> Iterator[Fact]:
    strategy = make_strategy("CONSISTENT_HASH", {"virtual_nodes": row["virtual_nodes"]}, version)
    queues, first = _queues(row), _clients(row)
    without = [client_id for client_id in first if client_id != row["removed"]]
    owners = _owners(_shares(strategy, queues, first))
    yield "every queue", set(queues), set(owners)
    left = _owners(_shares(strategy, queues, without))
    yield "every queue after one left", set(queues) if without else set(), set(left)
    for queue in queues:
        if owners[queue] != row["removed"]:
            yield f"{queue} after one left", owners[queue], left[queue]
    joined = _owners(_shares(strategy, queues, [*without, row["added"]]))
    yield "every queue after one joined", set(queues), set(joined)
    for queue in queues:
        if joined[queue] != row["added"]:
            yield f"{queue} after one joined", left[queue], joined[queue]


def _rooms(row: Json, version: str) -> Iterator[Fact]:
    strategy = make_strategy(f"MACHINE_ROOM_NEARBY-{row['strategy']}", {}, version)
    queues, client_ids = _queues(row), _clients(row)
    shares = _shares(strategy, queues, client_ids)
    given = [queue for share in shares.values() for queue in share]
    yield "every queue once", sorted(queues) if client_ids else [], sorted(given)
    if row["own_room_only"]:
        for client_id, share in shares.items():
            for queue in share:
                yield f"{queue} of {client_id}", _room(client_id), _room(queue.broker_name)
        return
    for room in {_room(client_id) for client_id in client_ids}:
        own = {queue for queue in queues if _room(queue.broker_name) == room}
        received = {queue for c, share in shares.items() if _room(c) == room for queue in share}
        yield f"queues of {room} outside", set(), own - received


def _room(name: str) -> str:
    return name.partition("-")[0]


def _pop_share(row: Json, version: str) -> Iterator[Fact]:
    inner = make_strategy(row["strategy"], version=version)
    queues, client_ids = _queues(row), _clients(row)
    for share, (least, most) in enumerate(row["sizes"]):
        size = len(allocate_for_pop(inner, row["asks"], queues, client_ids, share))
        what = f"{len(queues)} queues, {len(client_ids)} clients, share {share}"
        yield what, min(max(size, least), most), size


def _start_offset(row: Json, version: str) -> Iterator[Fact]:
    names = ("consumer_type", "consume_from_where", "topic", "stored_offset")
    asked = {name: row[name] for name in (*names, "max_offset", "timestamp_offset")}
    yield str(asked), row["offset"], compute_pull_from_where(**asked, version=version)


def _threshold(row: Json, version: str) -> Iterator[Fact]:
    current = row["for_queue"]
    for (for_topic, queues), expected in zip(row["steps"], row["expected"], strict=True):
        current = pull_threshold_per_queue(
            for_topic=for_topic, current=current, process_queues=queues
        )
        yield f"{for_topic} over {queues} queues", expected, current


def _timestamp_search(row: Json, version: str) -> Iterator[Fact]:
    stored = row["stored_ms"]
    observations = [(stored[0] - 1, 0, 0)]
    observations += [(at, 0, count) for count, at in enumerate(stored, start=1)]
    for timestamp_ms, offset in row["found"]:
        low, high = timestamp_search_bounds(
            observations, timestamp_ms, searched_ms=stored[-1] + 1, version=version
        )
        within = low <= offset and (high is None or offset <= high)
        yield f"{offset} at {timestamp_ms} in {low}..{high}", True, within


def _broker_reply(row: Json, version: str) -> Iterator[Fact]:
    names = ("committed_offset", "min_offset", "max_offset", "head_cached")
    asked = {name: row[name] for name in (*names, "set_zero_if_not_found")}
    yield str(asked), row["reply"], broker_offset_reply(**asked, version=version)


def _default_strategy(row: Json, version: str) -> Iterator[Fact]:
    yield "default strategy", row["name"], GroupSettings().strategy


RULES: dict[str, Callable[[Json, str], Iterator[Fact]]] = {
    "allocate": _allocate,
    "ring": _ring,
    "rooms": _rooms,
    "pop_share": _pop_share,
    "start_offset": _start_offset,
    "threshold": _threshold,
    "timestamp_search": _timestamp_search,
    "offset_store": offset_store,
    "broker_offsets": broker_offsets,
    "broker_reply": _broker_reply,
    "order_lock": order_lock,
    "default_strategy": _default_strategy,
}
