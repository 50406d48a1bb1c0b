"""Brokers and topics of one cluster under a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.model import events
from rebalance_core.planning.scenario.edited_rows import SHARED, Row, RowLog, Timeline
from rebalance_core.protocol.routes import DEFAULT_PERM

TOPIC_COLUMNS = ("read_queue_nums", "write_queue_nums", "perm")

TopicSettings = dict[str, Any]
ConfigRule = Callable[[str, str, TopicSettings], TopicSettings]
"""(topic, broker name, settings) -> settings."""


@dataclass(slots=True)
class Absence:
    """Whether something is away as the log has it, and how many edits hold it away."""

    recorded: bool = False
    held: int = 0

    @property
    def is_over(self) -> bool:
        """It is there again."""
        return self.held == 0 and not self.recorded


@dataclass(slots=True)
class Broker:
    """A broker without a replica left, or without its master."""

    down: Absence = field(default_factory=Absence)
    masterless: Absence = field(default_factory=Absence)
    version: str | None = None


@dataclass(slots=True)
class ClusterNames:
    """Everything that a glob of a scenario can match in one cluster."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    brokers: set[str] = field(default_factory=set)


class ClusterLife(Timeline):
    """The brokers and topics of one cluster from event to event.

    Recorded ups and downs of a broker, or of its master, that an edit holds down are dropped; it
    comes back as the log has it then. A recorded TOPIC_CONFIG after an edit of the topic is changed
    as the edit says.
    """

    def __init__(self, cluster: str, *, end_ms: int) -> None:
        super().__init__(RowLog(cluster, SHARED), end_ms)
        self.cluster = cluster
        self.brokers: dict[str, Broker] = {}
        self.configs: dict[str, dict[str, TopicSettings]] = {}
        self.config_rules: list[ConfigRule] = []

    def lose(self, name: str, detail: str, back_after_ms: int | None, source: str) -> None:
        """The broker is lost now, and back after that time if there is one."""
        if self._hold(self.brokers[name].down, events.BROKER_DOWN, name, detail, source):
            self.log.warn(f"{source}: broker {name} is down already")
        if back_after_ms is not None:
            self.after(back_after_ms, self._come_back, name, source)

    def lose_master(self, name: str, detail: str, back_after_ms: int | None, source: str) -> None:
        """The broker's master is lost now, and back after that time; its slaves live."""
        broker = self.brokers[name]
        if not broker.down.is_over:
            self.log.warn(f"{source}: broker {name} is down already")
        if self._hold(broker.masterless, events.MASTER_DOWN, name, detail, source):
            self.log.warn(f"{source}: broker {name} has no master already")
        if back_after_ms is not None:
            self.after(back_after_ms, self._master_back, name, source)

    def _hold(self, away: Absence, event_type: str, name: str, detail: str, source: str) -> bool:
        """One more edit holds it away; true if the log has it away as it is."""
        was_away = away.recorded and not away.held
        if away.is_over:
            self.log.add(self.now_ms, event_type, source, broker_name=name, detail=detail)
        away.held += 1
        return was_away

    def configure(self, topic: str, broker: str, settings: TopicSettings, source: str) -> None:
        """The topic is created or changed on a broker now."""
        self.configs.setdefault(topic, {})[broker] = settings
        self.log.add(
            self.now_ms, events.TOPIC_CONFIG, source, topic=topic, broker_name=broker, **settings
        )

    def recorded(self, row: Row) -> None:
        """A recorded row about a broker or a topic."""
        name = row["broker_name"]
        if row["event_type"] in events.BROKER_EVENTS:
            self._recorded_broker(row, name)
        elif row["event_type"] in events.MASTER_EVENTS:
            self._recorded_master(row, name)
        elif row["event_type"] == events.TOPIC_CONFIG:
            self._recorded_config(row)
        else:
            if name is None:
                self.configs.pop(row["topic"], None)
            else:
                self.configs.get(row["topic"], {}).pop(name, None)
            self.log.keep(row)

    def _recorded_broker(self, row: Row, name: str) -> None:
        broker = self.brokers.setdefault(name, Broker())
        broker.down.recorded = row["event_type"] == events.BROKER_DOWN
        broker.version = row["version"] or broker.version
        self._keep_unless(broker.down.held, row)

    def _recorded_master(self, row: Row, name: str) -> None:
        masterless = self.brokers.setdefault(name, Broker()).masterless
        masterless.recorded = row["event_type"] == events.MASTER_DOWN
        self._keep_unless(masterless.held, row)

    def _keep_unless(self, held: int, row: Row) -> None:
        if held:
            self.log.drop(row)
        else:
            self.log.keep(row)

    def _recorded_config(self, row: Row) -> None:
        topic, name = row["topic"], row["broker_name"]
        self.brokers.setdefault(name, Broker())
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


def topic_settings(read: int, write: int, perm: int = DEFAULT_PERM) -> TopicSettings:
    """The columns of a TOPIC_CONFIG."""
    return {"read_queue_nums": read, "write_queue_nums": write, "perm": perm}
