"""Rows of ``observed_facts`` from the lines of logs, as `LOG_FACTS` declares them.

A fact whose rows are more than its fields has a reader of its own in `READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rebalance_core.contracts.fact_declaration import BROKER, CLIENT, LOCK, LOG_FOLDER
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.observed.fact_rows import Details, FactRows
from rebalance_core.model.queue import is_retry_topic

MOST_HOSTS = 5
"""Hosts named in one row of OFFSET_WENT_BACK."""


class Clients:
    """Which client a line is about: by its process, or its address at the broker that logs it.

    Args:
        pieces: all evidence on the group.
        names: who the lines of a client's log are about.
        brokers: broker name by address.
    """

    def __init__(
        self,
        pieces: Iterable[Evidence],
        names: ProcessNames,
        brokers: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names
        self.brokers = brokers or {}
        self._channels: dict[tuple[str, str], str] = {}
        for piece in pieces:
            v = piece.values
            if piece.kind in ("consumer_connected", "member"):
                address = v["channel"] if piece.kind == "consumer_connected" else v["client_addr"]
                self._channels[piece.place, address] = v["client_id"]

    def of(self, piece: Evidence) -> str | None:
        """The client id, None if no file tells it."""
        v = piece.values
        if "channel" in v:
            return v.get("client_id") or self._channels.get((piece.place, v["channel"]))
        return v.get("client_id") or self._names.client_of(piece)


Reader = Callable[[FactRows, Evidence, int, Clients | None], None]


def add_log_rows(
    rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None = None
) -> None:
    """The rows that a line of a log makes; most make none.

    Args:
        rows: of the group, or of the cluster.
        piece: what the line states.
        at_ms: when it was true.
        clients: of the group; None for the cluster, whose lines name no client.
    """
    fact = LOG_FACTS.get(piece.kind)
    if fact is not None and fact.rows:
        READERS.get(piece.kind, _declared)(rows, piece, at_ms, clients)


def _declared(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None) -> None:
    """One row of the kind declared, with the fact's fields in the columns of their names.

    Where the line of a broker names no broker it is its own; the client that a client's line is
    about is found by its process.
    """
    fact, v = LOG_FACTS[piece.kind], piece.values
    own_broker = piece.place if fact.log in (BROKER, LOCK) else None
    of_client = fact.log == CLIENT
    fields = {**v, LOG_FOLDER: piece.place if of_client else None}
    rows.add(
        fact.rows[0].name,
        at_ms,
        piece.source,
        {name: fields.get(name) for name in fact.details},
        topic=v.get("topic"),
        broker_name=v.get("broker_name", own_broker),
        queue_id=v.get("queue_id"),
        client_id=clients.of(piece) if of_client and clients else v.get("client_id"),
    )


def _topics(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None) -> None:
    client_id = clients.of(piece) if clients else None
    if client_id is None:
        return
    for topic, expression in sorted(piece.values["expressions"].items()):
        if not is_retry_topic(topic):
            details, where = {"expression": expression}, {"topic": topic, "client_id": client_id}
            rows.add("CLIENT_TOPIC", at_ms, piece.source, details, **where)


def _changed(rows: FactRows, piece: Evidence, at_ms: int, _: Clients | None) -> None:
    v = piece.values
    if "version" in v and "old" not in v:
        return  # a version alone: queues changed, or another member subscribes the topic
    kind = "TAGS_CHANGED" if "old" in v else "TOPIC_DROPPED"
    details = {name: v[name] for name in ("old", "new") if name in v}
    where = {"topic": v["topic"], "broker_name": piece.place}
    rows.add(kind, at_ms, piece.source, details, **where)


def _went_back(rows: FactRows, piece: Evidence, at_ms: int, _: Clients | None) -> None:
    v = piece.values
    rows.add(
        "OFFSET_WENT_BACK",
        at_ms,
        piece.source,
        {"client_host": v["host"], "highest_stored": v["stored"], "lowest_asked": v["asked"]},
        topic=v["topic"],
        broker_name=piece.place,
        queue_id=v["queue_id"],
        merge=_both_went_back,
    )


def _both_went_back(one: Details, other: Details) -> Details:
    hosts = one["client_host"].split(", ")
    if other["client_host"] not in hosts and len(hosts) < MOST_HOSTS:
        hosts.append(other["client_host"])
    return {
        "client_host": ", ".join(hosts),
        "highest_stored": str(max(int(one["highest_stored"]), int(other["highest_stored"]))),
        "lowest_asked": str(min(int(one["lowest_asked"]), int(other["lowest_asked"]))),
    }


def _not_listed(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None) -> None:
    rows.add(
        "NOT_IN_MEMBER_LIST",
        at_ms,
        piece.source,
        {"listed": piece.values["listed"], "log": piece.place},
        client_id=clients.of(piece) if clients else None,
        merge=lambda first, _: first,
    )


def _notified(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients | None) -> None:
    """Of any member: a job keeps one line a second for all of them."""
    address = piece.values["address"]
    broker = clients.brokers.get(address) if clients else None
    rows.add("NOTIFIED", at_ms, piece.source, {"address": address}, broker_name=broker)


READERS: dict[str, Reader] = {
    "heartbeat": _topics,
    "consumer_data": _topics,
    "subscription_changed": _changed,
    "offset_went_back": _went_back,
    "not_in_member_list": _not_listed,
    "notified": _notified,
}
