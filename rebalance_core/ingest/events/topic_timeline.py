"""A topic's events: its setup on each broker over time, by logs, stores and routes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeGuard

from rebalance_core.ingest.broker_history import StoreRead
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.lite_topics import lite_topic_findings
from rebalance_core.ingest.events.topic_settings import differing_settings
from rebalance_core.ingest.evidence import Evidence, is_on_topic
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.own_evidence import own_evidence
from rebalance_core.ingest.parse.inside_second import MIDDLE_MS
from rebalance_core.ingest.rows import ORDER, Event, Finding, Tables, event, finding
from rebalance_core.model.events import OBSERVED, TOPIC_CONFIG, TOPIC_DELETED
from rebalance_core.model.queue import is_retry_topic, is_system_topic
from rebalance_core.model.times import SECOND_MS
from rebalance_core.protocol.routes import DEFAULT_PERM

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import QueueOffsetsBegun
    from rebalance_core.ingest.evidence_types import (
        QueueProgressPiece,
        RouteQueuesPiece,
        TopicConfigPiece,
        TopicCreatedPiece,
        TopicCreatedValues,
        TopicDeletedPiece,
        TopicLoadedPiece,
        TopicRegisteredPiece,
        TopicRoutePiece,
        TopicsEvidence,
        TopicUpdatedPiece,
        TopicUpdatedValues,
    )

    _Logged: TypeAlias = (
        TopicCreatedPiece | TopicUpdatedPiece | TopicLoadedPiece | TopicDeletedPiece
    )


PERM_WRITE = 2
"""PermName.PERM_WRITE."""
ROUTE_SLACK_MS = 10_000
"""A dump is named after the time at which mqadmin was started; on a busy host, the query may be
sent this much later.
"""


class RoutePerms:
    """The perms of one topic as registered by its brokers, whatever a route without a master shows.

    When the master goes, a name server takes W from all queues of a broker whose slaves may act as
    master. It does not log this, but only the change back when the master returns.

    Args:
        stated: (broker, time, perm, True if a route states it) from all files, in chronological
            order.
        was_masterless: `ClusterContext.was_masterless`.
    """

    def __init__(
        self,
        stated: Iterable[tuple[str, int, int, bool]],
        was_masterless: Callable[[str, int, int], bool],
    ) -> None:
        self._was_masterless = was_masterless
        self._first: dict[str, int] = {}
        for broker, at_ms, perm, routed in stated:
            if not (routed and self._may_be_wiped(broker, at_ms, perm)):
                self._first.setdefault(broker, perm)

    def registered(self, broker: str, at_ms: int, routed: int, known_perm: int | None) -> int:
        """Return the topic's perm, with the W that a route may lack.

        Args:
            broker: the owner of the queues.
            at_ms: the time of the route.
            routed: the route's perm.
            known_perm: the perm known by then; if None, the next one stated by a file counts.
        """
        if not self._may_be_wiped(broker, at_ms, routed):
            return routed
        perm = self._first.get(broker, routed) if known_perm is None else known_perm
        return routed | perm & PERM_WRITE

    def _may_be_wiped(self, broker: str, at_ms: int, perm: int) -> bool:
        # logs have whole seconds, and dumps are named after the start of their command
        from_ms, to_ms = at_ms - SECOND_MS, at_ms + ROUTE_SLACK_MS
        return not perm & PERM_WRITE and self._was_masterless(broker, from_ms, to_ms)


SNAPSHOT_SLACK_MS = 10_000
"""A store is written every 5 to 10 s (rocketmq.md §10.6), so its state may be this old."""

REPLY_MARK = "_REPLY_TOPIC"
"""MixAll.REPLY_TOPIC_POSTFIX, which follows the cluster's name."""
LOGGED = ("topic_created", "topic_updated", "topic_loaded", "topic_deleted")
SNAPSHOTS = ("topic_config", "route_queues")
REGISTERED = ("topic_registered", "topic_route")
"""Registrations with a name server right after the broker logged the topic."""


def _is_logged(piece: TopicsEvidence) -> TypeGuard[_Logged]:
    return piece.kind in LOGGED


def _set_up(piece: TopicsEvidence) -> tuple[str, int | None] | None:
    """Return the broker on which it states the topic's setup, and the perm; None if it does not."""
    if piece.kind in ("topic_registered", "topic_route", "route_queues"):
        return piece.values["broker_name"] or piece.place, piece.values["perm"]
    if piece.kind in ("topic_created", "topic_updated", "topic_loaded", "topic_config"):
        return piece.place, piece.values["perm"]
    return (piece.place, None) if piece.kind == "topic_deleted" else None


class StoredConfig(NamedTuple):
    """The queues and perm of a topic on one broker, with the perm as the broker registers it."""

    read: int
    write: int
    perm: int


@dataclass
class _Broker:
    """The state of the topic on one broker up to now."""

    config: StoredConfig | None = None
    changed_ms: int | None = None
    mentioned: bool = False
    highest: int | None = None
    """Queue ids below this exist or existed; None if the log does not record the creation."""
    seen_ms: int = 0
    """When a file last showed the topic there."""
    dated_ms: int = 0
    """When it last changed, according to a file with a correct clock."""


@dataclass
class TopicTimeline:
    """Combines several files' facts about one topic."""

    topic: str
    context: ClusterContext
    events: list[Event] = field(default_factory=list)
    offsets: list[QueueOffsetsBegun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _perms: RoutePerms = field(init=False)
    _brokers: dict[str, _Broker] = field(default_factory=dict)
    _looks: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """For each broker, when dumps show its queues of the topic, with the lines."""
    _unstated: set[str] = field(default_factory=set)
    """Brokers for which no file shows the topic or a connection so far."""

    def take(self, pieces: Iterable[Evidence]) -> Tables:
        """Return the tables of the topic.

        For a retry topic, the simulator derives the queues on the brokers of the group's topics, as
        the brokers do (rocketmq.md §3.4). Its events state other brokers that have it, and brokers
        where it has several queues; if no file states it on a broker, a connection of its group
        there implies it.
        """
        ordered = sorted(pieces, key=lambda p: (self._latest(p), p.place, p.position, p.source))
        self._perms = RoutePerms(
            self._stated_perms(filter(is_on_topic, ordered)), self.context.was_masterless
        )
        own = list(filter(is_on_topic, ordered))
        stated = {set_up[0] for piece in own if (set_up := _set_up(piece)) is not None}
        # collection.toml may name a process of a broker whose own files are missing
        folders = {folder.broker_name for folder in self.context.folders.values()}
        named_by_files = folders | {*self.context.addresses.values()}
        asked_for = {*self.context.expected} - named_by_files
        self._unstated = {*self.context.brokers} - asked_for - stated
        routed: dict[str, set[str]] = {}
        for piece in own:
            if piece.kind == "route_queues" and not piece.values.get("partial"):
                routed.setdefault(file_of(piece.source), set()).add(piece.values["broker_name"])
        for piece in own:
            if piece.kind not in ("queue_progress", "queue_offsets"):
                continue
            if not piece.values["broker_name_truncated"]:
                looks = self._looks.setdefault(piece.values["broker_name"], [])
                looks.append((self._at(piece), piece.source))
        stores = self._stores_without(ordered)
        for piece in own:
            while stores and self._store_latest(stores[0]) <= self._latest(piece):
                self._not_in_store(*stores.pop(0))
            listed = routed.pop(file_of(piece.source), None) if piece.kind in SNAPSHOTS else None
            if listed is not None:
                self._left_behind(piece, listed)
            self._take_one(piece)
        for store in stores:
            self._not_in_store(*store)
        self._observed_offsets(own)
        if self._retry:
            self.findings = []
        for number, row in enumerate(self.events):
            row[ORDER] = number
        self.findings += lite_topic_findings(self.topic, ordered)
        self.findings += differing_settings(self.topic, ordered)
        return {
            "cluster_events": self.events,
            "queue_offsets": self.offsets,
            "findings": self.findings,
        }

    @property
    def _retry(self) -> bool:
        return is_retry_topic(self.topic)

    def _at(self, piece: Evidence) -> int:
        at_ms = self.context.time_of(piece)
        if piece.kind in REGISTERED:
            return at_ms + MIDDLE_MS + 1
        if piece.kind not in LOGGED or self._retry:
            return at_ms  # a member that joins in the same second finds the new retry topic
        # a new broker registers up to 10 s after its start, and has no routes before
        return max(at_ms, self.context.first_routes.get(piece.place, at_ms)) + MIDDLE_MS

    def _latest(self, piece: Evidence) -> int:
        """Return the latest time at which the evidence was true, given its clock's error."""
        return self._at(piece) + self.context.error_of(piece.source)

    def _store_latest(self, store: StoreRead) -> int:
        return store.at_ms + self.context.error_of(store.source)

    def _logged(self, piece: _Logged) -> None:
        state = self._brokers.setdefault(piece.place, _Broker())
        at_ms = self._at(piece)
        if piece.kind == "topic_deleted":
            self.events.append(
                event(TOPIC_DELETED, at_ms, piece.source, topic=self.topic, broker_name=piece.place)
            )
            self._brokers[piece.place] = _Broker(None, at_ms, True, dated_ms=at_ms)
            return
        config = self._config(piece.place, piece.values, at_ms)
        if piece.kind == "topic_created":
            if not state.mentioned or state.config is None:
                self._new_queues(piece, range(max(config.read, config.write)))
                state.highest = max(config.read, config.write)
        elif not state.mentioned:
            old = piece.values["old"] if piece.kind == "topic_updated" else piece.values
            self._observed(piece.place, self._config(piece.place, old, at_ms), piece.source)
        if piece.kind == "topic_updated" and state.highest is not None:
            # a shrunk topic keeps its queues' files; an earlier line may have been lost
            before = piece.values["old"]
            state.highest = max(state.highest, before["read"], before["write"])
            highest = max(state.highest, config.read, config.write)
            self._new_queues(piece, range(state.highest, highest))
            state.highest = highest
        self._set(piece.place, config, at_ms, piece.source)

    def _take_one(self, piece: TopicsEvidence) -> None:
        if _is_logged(piece):
            self._logged(piece)
        elif piece.kind in ("topic_config", "route_queues"):
            self._snapshot(piece)
        elif piece.kind in ("topic_registered", "topic_route"):
            self._registered(piece)
        elif piece.kind == "group_connected" and piece.place in self._unstated:
            self._unstated.discard(piece.place)
            self._created_by_heartbeat(piece)

    def _created_by_heartbeat(self, piece: Evidence) -> None:
        at_ms = self._at(piece)
        perm = self.context.effective_perm(piece.place, DEFAULT_PERM, at_ms)
        self._set(piece.place, StoredConfig(1, 1, perm), at_ms, piece.source)

    def _stated_perms(
        self, pieces: Iterable[TopicsEvidence]
    ) -> Iterator[tuple[str, int, int, bool]]:
        for piece in pieces:
            place, perm = _set_up(piece) or ("", None)
            if perm is not None:
                routed = piece.kind in (*REGISTERED, "route_queues")
                yield place, self._at(piece), perm, routed

    def _registered_perm(self, broker: str, routed: int, at_ms: int) -> int:
        config = self._brokers.setdefault(broker, _Broker()).config
        return self._perms.registered(broker, at_ms, routed, config.perm if config else None)

    def _registered(self, piece: TopicRegisteredPiece | TopicRoutePiece) -> None:
        """Record a change that is missing from the broker's own log or whose log was not
        collected.
        """
        values, at_ms = piece.values, self._at(piece)
        place = values["broker_name"]
        state = self._brokers.setdefault(place, _Broker())
        perm = self._registered_perm(place, values["perm"], at_ms)
        config = StoredConfig(values["read"], values["write"], perm)
        if not state.mentioned and piece.kind == "topic_route":
            old = piece.values["old"]
            perm = self._registered_perm(place, old["perm"], at_ms)
            self._observed(place, StoredConfig(old["read"], old["write"], perm), piece.source)
        self._set(place, config, at_ms, piece.source)

    def _snapshot(self, piece: TopicConfigPiece | RouteQueuesPiece) -> None:
        values = piece.values
        routed = piece.values["broker_name"] if piece.kind == "route_queues" else ""
        place = routed or piece.place
        at_ms = self._at(piece)
        config = StoredConfig(values["read_queue_nums"], values["write_queue_nums"], values["perm"])
        if piece.kind == "topic_config":
            perm = self.context.effective_perm(place, config.perm, at_ms)
            config = config._replace(perm=perm)
        else:
            config = config._replace(perm=self._registered_perm(place, config.perm, at_ms))
        state = self._brokers.setdefault(place, _Broker())
        error_ms = self.context.error_of(piece.source)
        slack_ms = SNAPSHOT_SLACK_MS + error_ms
        since_ms = max(state.seen_ms - slack_ms, state.dated_ms)
        is_older = at_ms - state.dated_ms <= slack_ms
        is_older |= at_ms - (state.changed_ms or 0) <= SNAPSHOT_SLACK_MS
        state.seen_ms = max(state.seen_ms, at_ms)
        if not state.mentioned and self._should_be_logged(place, at_ms):
            self._first_shown(piece, place, config, at_ms)
        elif not state.mentioned:
            self._observed(place, config, piece.source)
        elif config != state.config and not is_older:
            self.findings.append(
                finding(
                    "INGEST_TOPIC_CHANGE_NOT_LOGGED",
                    f"{self.topic} on {place} has read={config.read}, write={config.write} and "
                    f"perm={config.perm} in {piece.source}, but no log shows since when: the "
                    "change is dated to that file.",
                    "Collect broker.log for the whole period; brokers may drop INFO lines under "
                    "load.",
                    topic=self.topic,
                    broker_name=place,
                    first_ms=since_ms,
                    last_ms=at_ms + error_ms,
                    evidence={"source": piece.source},
                )
            )
            self._set(place, config, at_ms, piece.source)

    def _stores_without(self, pieces: Iterable[Evidence]) -> list[StoreRead]:
        """Return each topics.json without the topic, with the time of its export."""
        having = {piece.source for piece in pieces if piece.kind == "topic_config"}
        having = {file_of(source) for source in having} | having
        context = self.context
        without = [
            StoreRead(broker, context.exported.get(source) or at_ms, source)
            for broker, at_ms, source in context.topic_stores
            if source not in having and context.exported.get(source, at_ms) is not None
        ]
        return sorted(without, key=self._store_latest) if context.errors_ms else without

    def _not_in_store(self, broker: str, at_ms: int, source: str) -> None:
        """Record that a store lacks the topic, which the broker had before."""
        state = self._brokers.get(broker)
        if state is not None and state.config is not None:
            self._gone(broker, at_ms, source, by_file=True)

    def _left_behind(self, piece: Evidence, listed: set[str]) -> None:
        """Record that a route lacks a running broker that had the topic before."""
        at_ms = self._at(piece)
        for broker, state in list(self._brokers.items()):
            if broker not in listed and state.config is not None:
                self._gone(broker, at_ms, piece.source, by_file=self._runs(broker, at_ms))

    def _gone(self, broker: str, at_ms: int, source: str, by_file: bool) -> None:
        """Record that a file shows the topic gone from the broker, if the file is not too old.

        If its master has changed since a file had it, the new master never had the topic, and the
        end is dated to that moment. Otherwise, if ``by_file``, it is dated to the file, as the
        topic went at some time since.
        """
        state, error_ms = self._brokers[broker], self.context.error_of(source)
        late_ms = at_ms - SNAPSHOT_SLACK_MS - error_ms
        up_ms = self.context.became_master(broker, at_ms)
        if up_ms is not None and state.seen_ms < up_ms <= late_ms:
            gone_ms, since_ms = up_ms, up_ms
            why = "the replica that was promoted to master before that does not have the topic"
        elif by_file and max(state.seen_ms, state.changed_ms or 0) < late_ms:
            gone_ms, since_ms = at_ms, max(state.seen_ms, state.changed_ms or 0) - error_ms
            why = "the broker is running, and no log shows since when it has lacked the topic"
        else:
            return
        self.events.append(
            event(TOPIC_DELETED, gone_ms, source, topic=self.topic, broker_name=broker)
        )
        dated_ms = 0 if error_ms else gone_ms
        self._brokers[broker] = _Broker(None, gone_ms, True, seen_ms=at_ms, dated_ms=dated_ms)
        self.findings.append(
            finding(
                "INGEST_TOPIC_CHANGE_NOT_LOGGED",
                f"{self.topic} is not on {broker} in {source}: {why}. Its removal is dated to "
                f"that {'moment' if gone_ms == up_ms else 'file'}.",
                "Create the topic there again, with the number of queues it had.",
                topic=self.topic,
                broker_name=broker,
                first_ms=since_ms,
                last_ms=at_ms + error_ms,
                evidence={"source": source},
            )
        )

    def _runs(self, broker: str, at_ms: int) -> bool:
        """Return True if the broker's log continues without a recent start or stop of the
        broker.
        """
        context = self.context
        if broker not in context.logged or context.log_had_ended(broker, at_ms):
            return False
        if context.is_masterless(broker, at_ms):
            return False
        ends = [ms for ms, _ in context.ends.get(broker, ()) if ms <= at_ms + ROUTE_SLACK_MS]
        starts = [ms for ms, _ in context.starts.get(broker, ()) if ms <= at_ms]
        settled_ms = at_ms - ROUTE_SLACK_MS
        if any(ms > settled_ms for ms in starts):
            return False
        return not ends or any(ms > max(ends) for ms in starts)

    def _should_be_logged(self, broker: str, at_ms: int) -> bool:
        """Return True if the broker's log has its start before that time, and should therefore have
        the topic.

        A broker that starts logs every topic in its store, and each one that it creates later, but
        not those that it creates for itself when it starts for the first time.
        """
        context = self.context
        system = is_system_topic(self.topic) or self.topic in (*context.brokers, context.cluster)
        reply = self.topic.endswith(REPLY_MARK)
        started = any(ms <= at_ms for ms, _ in context.starts.get(broker, ()))
        return started and broker not in context.in_rocksdb and not (system or reply)

    def _first_shown(
        self,
        piece: TopicConfigPiece | RouteQueuesPiece,
        broker: str,
        config: StoredConfig,
        at_ms: int,
    ) -> None:
        """Record a topic that the broker's log should have and that documents alone show.

        If they show it only after the log had ended, it has been created since; otherwise the log
        lacks lines, and the topic was created or changed at some time before the document with its
        setup.
        """
        shown_ms, source = min([(at_ms, piece.source), *self._looks.get(broker, [])])
        ended = self.context.log_had_ended(broker, shown_ms)
        if ended:
            since_ms, until_ms = self.context.logged[broker], shown_ms
            why = (
                f"{self.topic} on {broker} is first seen in {source}, after broker.log had ended. "
                "The log contains the broker's start but not this topic, so the topic was created "
                "later; its creation is dated to that file."
            )
            remedy = "Copy the logs after the dumps, up to their last line."
        else:
            since_ms, until_ms = self.context.start_ms, at_ms
            why = (
                f"{self.topic} on {broker} is first seen in {source}. broker.log contains the "
                "broker's start but not this topic, so lines are missing: the topic is taken to "
                f"exist since the beginning as {piece.source} shows it, and may have been created "
                "or changed at any time before."
            )
            remedy = "Collect all of broker.log; brokers may drop INFO lines under load."
        self.findings.append(
            finding(
                "INGEST_TOPIC_CHANGE_NOT_LOGGED",
                why,
                remedy,
                topic=self.topic,
                broker_name=broker,
                first_ms=since_ms,
                last_ms=until_ms,
                evidence={"source": source},
            )
        )
        if ended:
            self._set(broker, config, shown_ms, source)
        else:
            self._observed(broker, config, piece.source)

    def _config(
        self, broker: str, values: TopicCreatedValues | TopicUpdatedValues, at_ms: int
    ) -> StoredConfig:
        perm = self.context.effective_perm(broker, values["perm"], at_ms)
        return StoredConfig(values["read"], values["write"], perm)

    def _observed(self, broker: str, config: StoredConfig, source: str) -> None:
        self._set(broker, config, self.context.start_ms, source, OBSERVED)

    def _set(
        self, broker: str, config: StoredConfig, at_ms: int, source: str, detail: str | None = None
    ) -> None:
        state = self._brokers.setdefault(broker, _Broker())
        if state.config != config:
            self.events.append(
                event(
                    TOPIC_CONFIG,
                    at_ms,
                    source,
                    topic=self.topic,
                    broker_name=broker,
                    read_queue_nums=config.read,
                    write_queue_nums=config.write,
                    perm=config.perm,
                    detail=detail,
                )
            )
            state.changed_ms = at_ms
            if not self.context.error_of(source):
                state.dated_ms = at_ms
        state.config, state.mentioned = config, True
        if detail is None:
            state.seen_ms = max(state.seen_ms, at_ms)

    def _new_queues(self, piece: Evidence, queue_ids: range) -> None:
        """Add newly created queues as empty; the simulator knows those of a retry topic itself."""
        at_ms = self.context.time_of(piece) + MIDDLE_MS
        if not self._retry:
            self.offsets += [
                self._offset(piece.place, queue_id, at_ms, 0, 0) for queue_id in queue_ids
            ]

    def _offset(
        self, broker: str, queue_id: int, at_ms: int, low: int, high: int
    ) -> QueueOffsetsBegun:
        uncached = high > 0 and self._is_uncached(broker, at_ms)
        return {
            "topic": self.topic,
            "broker_name": broker,
            "queue_id": queue_id,
            "observed_ms": at_ms,
            "min_offset": low,
            "max_offset": high,
            "head_cached": False if uncached else None,
        }

    def _is_uncached(self, broker: str, at_ms: int) -> bool:
        spans = self.context.uncached.get(broker, ())
        return any(since_ms <= at_ms < until_ms for since_ms, until_ms in spans)

    def _observed_offsets(self, ordered: list[TopicsEvidence]) -> None:
        """Add offsets from ``topicStatus``, and from ``consumerProgress`` while the minimum stays.

        ``consumerProgress`` does not show the minimum. It only grows, so between two observations
        of the same value it has that value.
        """
        for piece in ordered:
            if piece.kind == "queue_offsets" and not piece.values["broker_name_truncated"]:
                v = piece.values
                self.offsets.append(
                    self._offset(
                        v["broker_name"],
                        v["queue_id"],
                        self._at(piece),
                        v["min_offset"],
                        v["max_offset"],
                    )
                )
        minima: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for row in sorted(self.offsets, key=lambda row: row["observed_ms"]):
            observations = minima.setdefault((row["broker_name"], row["queue_id"]), [])
            observations.append((row["observed_ms"], row["min_offset"]))
        for piece in ordered:
            if piece.kind == "queue_progress":
                self._from_progress(piece, minima)

    def _from_progress(
        self, piece: QueueProgressPiece, minima: dict[tuple[str, int], list[tuple[int, int]]]
    ) -> None:
        v = piece.values
        observations = minima.get((v["broker_name"], v["queue_id"]), [])
        at_ms = self._at(piece)
        index = bisect_right(observations, (at_ms, 2**63))
        if 0 < index < len(observations) and observations[index - 1][1] == observations[index][1]:
            low, high = observations[index][1], v["broker_offset"]
            if high >= low:
                self.offsets.append(self._offset(v["broker_name"], v["queue_id"], at_ms, low, high))


def topic_tables(topic: str, pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Return the events, offsets and findings of a topic; nothing for a static topic."""
    if topic in context.static_topics:
        return {}
    return TopicTimeline(topic, context).take(own_evidence(pieces, context))
