"""The rows that a scenario adds, changes and drops, and its actions among the recorded rows."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused

# A row of a scenario has ``sequence`` = 2^62 + entity x 2^16 + n: ``entity`` is 46 bits of a hash
# of the group's name (0 for rows of brokers and topics), n counts the entity's new rows at the same
# instant. So a new row comes after everything recorded at that instant, rows of brokers and topics
# come before those of groups, and each group's numbers are independent of other groups. In a
# cluster of 100,000 groups, the probability that two of them share their 46 bits is 7 in 100,000. A
# recorded row that is changed keeps its key.
Row = dict[str, Any]
"""Every column of cluster_events; null is None."""

EVENT_COLUMNS = INPUT_TABLES["cluster_events"].column_names

FIRST_SEQUENCE = 1 << 62
ROWS_AN_INSTANT = 1 << 16
_ENTITY_BITS = 46
SHARED = 0
"""The entity of rows about brokers and topics."""


def entity_of(consumer_group: str) -> int:
    """Return the number of a group, 1 to 2^46 - 1."""
    digest = blake2b(consumer_group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % ((1 << _ENTITY_BITS) - 1) + 1


@dataclass(frozen=True, slots=True)
class EditedRows:
    """The rows of an entity after an edit.

    Attributes:
        kept: recorded rows, unchanged.
        dropped: recorded rows that no longer apply.
        added: new rows, and changed rows under the key of their recorded row.
        warnings: descriptions of parts that an edit could not apply.
    """

    kept: tuple[Row, ...]
    dropped: tuple[Row, ...]
    added: tuple[Row, ...]
    warnings: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """The history under the scenario, in order."""
        return sorted((*self.kept, *self.added), key=order_of)


def order_of(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return the key that orders the rows of a cluster."""
    return row["event_ms"], row["sequence"]


def whole_row(row: Mapping[str, Any]) -> Row:
    """Return the row with exactly the columns of the contract."""
    return {name: row.get(name) for name in EVENT_COLUMNS}


def recorded_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the rows in order, without repeats.

    Raises:
        InputRefused: A sequence is in the range of scenarios.
    """
    by_key: dict[tuple[int, int], Row] = {}
    for row in rows:
        if row["sequence"] >= FIRST_SEQUENCE:
            raise InputRefused(
                f"cluster_events: sequence {row['sequence']} is not below 2^62, where a "
                "scenario's rows begin; give the events of the history lower numbers"
            )
        by_key.setdefault(order_of(row), whole_row(row))
    return [by_key[key] for key in sorted(by_key)]


@dataclass(slots=True)
class RowLog:
    """A log of the edits to an entity's rows, in order."""

    cluster: str
    entity: int
    consumer_group: str | None = None
    kept: list[Row] = field(default_factory=list)
    dropped: list[Row] = field(default_factory=list)
    added: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _counts: dict[int, int] = field(default_factory=dict)

    def keep(self, row: Row) -> None:
        """Keep a recorded row."""
        self.kept.append(row)

    def drop(self, row: Row) -> None:
        """Drop a recorded row that no longer applies."""
        self.dropped.append(row)

    def change(self, row: Row, **values: Any) -> None:
        """Change a recorded row under its own key."""
        self.dropped.append(row)
        self.added.append(row | values)

    def add(self, event_ms: int, event_type: str, source: str, **values: Any) -> None:
        """Add a new row; ``values`` are the remaining columns."""
        number = self._counts.get(event_ms, 0)
        if number >= ROWS_AN_INSTANT:
            raise InputRefused(
                f"{source}: more than {ROWS_AN_INSTANT:,} new events of "
                f"{self.consumer_group} at one instant; spread them with the key every"
            )
        self._counts[event_ms] = number + 1
        row = whole_row(values)
        row["cluster"], row["consumer_group"] = self.cluster, self.consumer_group
        row["event_ms"], row["event_type"], row["source"] = event_ms, event_type, source
        row["sequence"] = FIRST_SEQUENCE + self.entity * ROWS_AN_INSTANT + number
        self.added.append(row)

    def warn(self, text: str) -> None:
        """Record a warning about a failed action, once per text."""
        if text not in self.warnings:
            self.warnings.append(text)

    def result(self) -> EditedRows:
        """Return the collected rows."""
        return EditedRows(
            tuple(self.kept), tuple(self.dropped), tuple(self.added), tuple(self.warnings)
        )


Action = Callable[..., object]


class Timeline(ABC):
    """A replay of an entity's rows; edits schedule actions before and while it runs.

    At each instant, everything recorded precedes all actions, and actions follow the order of their
    edits.

    Attributes:
        now_ms: the instant being played.
        end_ms: the time of the last event in the cluster's history, to which moments such as
            ``+10m`` refer.
        log: the resulting rows.
    """

    def __init__(self, log: RowLog, end_ms: int) -> None:
        self.log = log
        self.end_ms = end_ms
        self.now_ms = 0
        self._agenda: list[tuple[int, int, int, Action, tuple[Any, ...]]] = []
        self._planned = 0
        self._edit = 0

    def planning(self, edit: int) -> None:
        """Attribute actions scheduled from now on to this edit."""
        self._edit = edit

    def at(self, at_ms: int, action: Action, *arguments: Any) -> None:
        """Schedule an action."""
        self._planned += 1
        entry = (max(at_ms, self.now_ms), self._edit, self._planned, action, arguments)
        heappush(self._agenda, entry)

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Schedule an action ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def play(self, rows: Iterable[Row]) -> None:
        """Play the rows, which must be in order, and everything scheduled."""
        for row in rows:
            self._act_before(row["event_ms"])
            self.now_ms = row["event_ms"]
            self.recorded(row)
        self._act_before(None)

    @abstractmethod
    def recorded(self, row: Row) -> None:
        """Keep, change or drop a recorded row."""

    def _act_before(self, until_ms: int | None) -> None:
        while self._agenda and (until_ms is None or self._agenda[0][0] < until_ms):
            self.now_ms, self._edit, _, action, arguments = heappop(self._agenda)
            action(*arguments)


TOPIC_COLUMNS = ("read_queue_nums", "write_queue_nums", "perm")

TopicSettings = dict[str, Any]
ConfigRule = Callable[[str, str, TopicSettings], TopicSettings]
"""(topic, broker name, settings) -> settings."""


@dataclass(slots=True)
class Absence:
    """The absence of an object, in the log or because of a number of edits."""

    recorded: bool = False
    held: int = 0

    @property
    def is_over(self) -> bool:
        """Return True if the object is present again."""
        return self.held == 0 and not self.recorded


@dataclass(slots=True)
class EditedBroker:
    """A broker that has lost all replicas, or its master."""

    down: Absence = field(default_factory=Absence)
    masterless: Absence = field(default_factory=Absence)
    version: str | None = None


@dataclass(slots=True)
class ClusterNames:
    """All names in a cluster that a scenario's glob can match."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    brokers: set[str] = field(default_factory=set)
    proxies: set[str] = field(default_factory=set)
    """The proxies from whose logs rows come."""


PROXY_SOURCE = r"proxy/(?P<proxy>[^/]+)/.+"
"""The prefix of ``source`` in rows from a proxy's log; joins of a proxy's own clients come from its
log, because it knows them first.
"""
_PROXY_SOURCE = re.compile(PROXY_SOURCE)


def proxy_of_source(source: str | None) -> str | None:
    """Return the proxy whose log a row comes from, or None.

    >>> proxy_of_source("proxy/proxy-1/broker.log:58"), proxy_of_source("brokers/a/broker.log:1")
    ('proxy-1', None)
    """
    found = _PROXY_SOURCE.fullmatch(source or "")
    return found["proxy"] if found else None


class ClusterLife(Timeline):
    """The brokers and topics of a cluster, from event to event.

    If an edit keeps a broker or its master down, recorded ups and downs are dropped; it returns in
    the state that the log then shows. A recorded TOPIC_CONFIG after an edit of the topic is changed
    as the edit requires.
    """

    def __init__(self, cluster: str, *, end_ms: int) -> None:
        super().__init__(RowLog(cluster, SHARED), end_ms)
        self.cluster = cluster
        self.brokers: dict[str, EditedBroker] = {}
        self.configs: dict[str, dict[str, TopicSettings]] = {}
        self.config_rules: list[ConfigRule] = []

    def lose(self, name: str, detail: str, back_after_ms: int | None, source: str) -> None:
        """Lose the broker now, for the given time, if any."""
        if self._hold(self.brokers[name].down, events.BROKER_DOWN, name, detail, source):
            self.log.warn(f"{source}: broker {name} is already down")
        if back_after_ms is not None:
            self.after(back_after_ms, self._come_back, name, source)

    def raise_broker(self, name: str, version: str | None, source: str) -> None:
        """Register a broker that the cluster lacks."""
        self.brokers[name] = EditedBroker(version=version)
        self.log.add(self.now_ms, events.BROKER_UP, source, broker_name=name, version=version)

    def rescale(self, rule: ConfigRule, source: str) -> None:
        """Change the topics on brokers as a rule requires: the current ones and any later ones."""
        self.config_rules.append(rule)
        for topic in sorted(self.configs):
            for broker, settings in sorted(self.configs[topic].items()):
                changed = rule(topic, broker, settings)
                if changed != settings:
                    self.configure(topic, broker, changed, source)

    def lose_master(self, name: str, detail: str, back_after_ms: int | None, source: str) -> None:
        """Lose the broker's master for the given time; its slaves keep running."""
        broker = self.brokers[name]
        if not broker.down.is_over:
            self.log.warn(f"{source}: broker {name} is already down")
        if self._hold(broker.masterless, events.MASTER_DOWN, name, detail, source):
            self.log.warn(f"{source}: broker {name} already has no master")
        if back_after_ms is not None:
            self.after(back_after_ms, self._master_back, name, source)

    def _hold(self, away: Absence, event_type: str, name: str, detail: str, source: str) -> bool:
        """Count another edit that keeps it absent; return True if the log already shows it as
        absent.
        """
        was_away = away.recorded and not away.held
        if away.is_over:
            self.log.add(self.now_ms, event_type, source, broker_name=name, detail=detail)
        away.held += 1
        return was_away

    def configure(self, topic: str, broker: str, settings: TopicSettings, source: str) -> None:
        """Create or change the topic on a broker now."""
        self.configs.setdefault(topic, {})[broker] = settings
        self.log.add(
            self.now_ms, events.TOPIC_CONFIG, source, topic=topic, broker_name=broker, **settings
        )

    def recorded(self, row: Row) -> None:
        """Handle a recorded row about a broker or a topic."""
        name = row["broker_name"]
        if row["event_type"] in events.BROKER_EVENTS:
            self._recorded_broker(row, name)
        elif row["event_type"] in events.MASTER_EVENTS:
            self._recorded_master(row, name)
        elif row["event_type"] == events.NOTICES:
            self.log.keep(row)
        elif row["event_type"] == events.TOPIC_CONFIG:
            self._recorded_config(row)
        else:
            if name is None:
                self.configs.pop(row["topic"], None)
            else:
                self.configs.get(row["topic"], {}).pop(name, None)
            self.log.keep(row)

    def _recorded_broker(self, row: Row, name: str) -> None:
        broker = self.brokers.setdefault(name, EditedBroker())
        broker.down.recorded = row["event_type"] == events.BROKER_DOWN
        broker.version = row["version"] or broker.version
        self._keep_unless(broker.down.held, row)

    def _recorded_master(self, row: Row, name: str) -> None:
        masterless = self.brokers.setdefault(name, EditedBroker()).masterless
        masterless.recorded = row["event_type"] == events.MASTER_DOWN
        self._keep_unless(masterless.held, row)

    def _keep_unless(self, held: int, row: Row) -> None:
        (self.log.drop if held else self.log.keep)(row)

    def _recorded_config(self, row: Row) -> None:
        topic, name = row["topic"], row["broker_name"]
        self.brokers.setdefault(name, EditedBroker())
        stated = {column: row[column] for column in TOPIC_COLUMNS}
        settings = stated
        for rule in self.config_rules:
            settings = rule(topic, name, settings)
        self.configs.setdefault(topic, {})[name] = settings
        if settings == stated:
            self.log.keep(row)
        else:
            self.log.change(row, **settings)

    def _come_back(self, name: str, source: str) -> None:
        broker = self.brokers[name]
        broker.down.held -= 1
        if broker.down.is_over:
            self.log.add(
                self.now_ms, events.BROKER_UP, source, broker_name=name, version=broker.version
            )

    def _master_back(self, name: str, source: str) -> None:
        masterless = self.brokers[name].masterless
        masterless.held -= 1
        if masterless.is_over:
            self.log.add(self.now_ms, events.MASTER_UP, source, broker_name=name)
