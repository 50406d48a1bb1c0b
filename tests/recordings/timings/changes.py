"""What happened to each group of a recording: changes, each with a window, in two halves."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from tests.recordings.tables import Row

TOGETHER_MS = 600
"""Events of one kind this close to each other are one change: a deployment, two brokers' topics."""
CALLED_BEFORE_MS = TOGETHER_MS
"""``start()`` was called up to this long before it returned, which is when a join is noted."""

KINDS = {
    "CONSUMER_JOIN": "join",
    "CONSUMER_LEAVE": "leave",
    "CONSUMER_LOST": "kill",
    "BROKER_UP": "broker up",
    "BROKER_DOWN": "broker down",
    "MASTER_UP": "master up",
    "MASTER_DOWN": "master down",
    "TOPIC_CONFIG": "queues",
    "TOPIC_DELETED": "topic deleted",
    "SUBSCRIBE": "subscribe",
    "UNSUBSCRIBE": "unsubscribe",
    "CONSUMER_SUSPEND": "suspend",
    "CONSUMER_RESUME": "resume",
}


@dataclass(frozen=True)
class Change:
    """Events of one kind, at one time, that concern one group.

    Attributes:
        recording: its name.
        number: `sequence` of its first event in the recording's cluster_events.
        group: the consumer group.
        kind: one of `KINDS`, or `expiry`, `broker expiry`, `topic created`, with `, orderly` after
            it for a group whose queues are locked.
        event_ms: of its last event; latencies count from it.
        begin_ms: actions from here on are its own.
        until_ms: and before this, where the group's next change begins.
        clients: names of the clients that it is about; empty for brokers and topics.
    """

    recording: str
    number: int
    group: str
    kind: str
    event_ms: int
    begin_ms: int
    until_ms: int
    clients: frozenset[str]

    @property
    def ends_processes(self) -> bool:
        """True if its clients leave or are lost."""
        return self.kind.split(",")[0] in ("leave", "kill", "expiry")

    @property
    def calibrates(self) -> bool:
        """True if the small delays may be taken from it; the other half is only compared.

        Neither half is chosen: the parity of a hash of recording and number decides.
        """
        return sha256(f"{self.recording}/{self.number}".encode()).digest()[0] % 2 == 0


def changes_of(
    recording: str, tables: dict[str, list[Row]], end_ms: int, before_ms: int = 0
) -> list[Change]:
    """Every change of every group of a recording after its first member joined.

    Args:
        recording: its name.
        tables: its cluster_events and consumer_groups.
        end_ms: end of the recording.
        before_ms: by how much its clock may be late; 0 for the recorder's own events.
    """
    found = []
    for row in tables["consumer_groups"]:
        group = row["consumer_group"]
        parts = list(_together(_of_group(tables["cluster_events"], row)))
        ordered = ", orderly" if row.get("ordered") else ""
        begins = [_begin_ms(part) - before_ms for part in parts]
        for part, begin, until in zip(parts, begins, [*begins[1:], end_ms], strict=True):
            clients = frozenset(_client(one) for one in part if one.get("channel_id"))
            found.append(
                Change(
                    recording,
                    part[0]["sequence"],
                    group,
                    part[0]["kind"] + ordered,
                    part[-1]["event_ms"],
                    begin,
                    until,
                    clients,
                )
            )
    return found


def _client(event: Row) -> str:
    return str(event["channel_id"]).split("/")[0]


def _of_group(events: list[Row], settings: Row) -> Iterator[Row]:
    """Its own events, and those of brokers and of its topics once it has a member."""
    group = settings["consumer_group"]
    topics: set[str] = set()
    known: set[str] = set()
    for event in events:
        if event.get("consumer_group") == group:
            topics.update(event.get("subscriptions") or settings.get("subscriptions") or ())
            if event.get("topic"):
                topics.add(event["topic"])
            yield event | {"kind": _kind(event, known)}
        elif topics and not event.get("consumer_group") and event.get("topic") in (None, *topics):
            yield event | {"kind": _kind(event, known)}
        if event["event_type"] == "TOPIC_CONFIG":
            known.add(event["topic"])


def _kind(event: Row, known: set[str]) -> str:
    kind = KINDS[event["event_type"]]
    if event.get("detail") == "EXPIRED":
        return {"kill": "expiry", "broker down": "broker expiry"}[kind]
    return "topic created" if kind == "queues" and event["topic"] not in known else kind


def _together(events: Iterator[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    for event in events:
        if part and (
            event["event_type"] != part[-1]["event_type"]
            or event["event_ms"] - part[-1]["event_ms"] > TOGETHER_MS
        ):
            yield part
            part = []
        part.append(event)
    if part:
        yield part


def _begin_ms(part: list[Row]) -> int:
    first = part[0]
    return int(first["event_ms"]) - (CALLED_BEFORE_MS if first["kind"] == "join" else 0)
