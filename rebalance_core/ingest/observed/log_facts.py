"""Rows of ``observed_facts`` from logs: one reader a kind of evidence on a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.observed.document_facts import queue_row
from rebalance_core.ingest.observed.fact_rows import Details, FactRows
from rebalance_core.model.queue import is_retry_topic

MOST_HOSTS = 5
"""Hosts named in one row of OFFSET_WENT_BACK."""


class Clients:
    """Whom a line is about: by its process, or by its address at the broker that logs it."""

    def __init__(self, pieces: Iterable[Evidence], names: ProcessNames) -> None:
        self._names = names
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


LogReader = Callable[[FactRows, Evidence, int, Clients], None]


def _created(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    details = {"by": piece.values["by"]}
    rows.add("GROUP_CREATED", at_ms, piece.source, details, broker_name=piece.place)


def _deleted(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    rows.add("GROUP_DELETED", at_ms, piece.source, broker_name=piece.place)


def _topics(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients) -> None:
    client_id = clients.of(piece)
    if client_id is None:
        return
    for topic, expression in sorted(piece.values["expressions"].items()):
        if not is_retry_topic(topic):
            details, where = {"expression": expression}, {"topic": topic, "client_id": client_id}
            rows.add("CLIENT_TOPIC", at_ms, piece.source, details, **where)


def _changed(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    v = piece.values
    if "version" in v and "old" not in v:
        return  # a version alone: queues changed, or another member subscribes the topic
    kind = "TAGS_CHANGED" if "old" in v else "TOPIC_DROPPED"
    details = {name: v[name] for name in ("old", "new") if name in v}
    where = {"topic": v["topic"], "broker_name": piece.place}
    rows.add(kind, at_ms, piece.source, details, **where)


def _no_subscription(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    where = {"topic": piece.values["topic"], "broker_name": piece.place}
    rows.add("NO_SUBSCRIPTION", at_ms, piece.source, **where)


def _lock_refused(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    v = piece.values
    queue_row(rows, "LOCK_REFUSED", piece, at_ms, {"owner": v["owner"]}, v["client_id"])


def _went_back(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
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


def _of_client(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients) -> None:
    """NO_MEMBER_LIST and BROADCAST_REFUSED, whose lines name no client."""
    rows.add(
        piece.kind.upper(),
        at_ms,
        piece.source,
        {"log": piece.place},
        topic=piece.values.get("topic"),
        broker_name=piece.values.get("broker_name"),
        client_id=clients.of(piece),
    )


def _not_listed(rows: FactRows, piece: Evidence, at_ms: int, clients: Clients) -> None:
    rows.add(
        "NOT_IN_MEMBER_LIST",
        at_ms,
        piece.source,
        {"listed": piece.values["listed"], "log": piece.place},
        client_id=clients.of(piece),
        merge=lambda first, _: first,
    )


def _allocation_failed(rows: FactRows, piece: Evidence, at_ms: int, _: Clients) -> None:
    v = piece.values
    details = {"strategy": v["strategy"], "message": v["message"], "log": "", "pid": ""}
    where = {"topic": v["topic"], "broker_name": piece.place}
    rows.add("ALLOCATION_FAILED", at_ms, piece.source, details, **where)


LOG_READERS: dict[str, LogReader] = {
    "group_created": _created,
    "group_deleted": _deleted,
    "heartbeat": _topics,
    "consumer_data": _topics,
    "subscription_changed": _changed,
    "no_subscription": _no_subscription,
    "lock_refused": _lock_refused,
    "offset_went_back": _went_back,
    "broadcast_refused": _of_client,
    "no_member_list": _of_client,
    "not_in_member_list": _not_listed,
    "broker_allocation_failed": _allocation_failed,
}
