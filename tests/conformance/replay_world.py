"""One scenario of the replay vectors as it goes on: processes that live from epoch to epoch."""

from collections.abc import Callable, Iterable
from typing import Any

from rebalance_core.client.broker_answers import (
    BrokerAnswers,
    BrokerRefusedError,
    BrokerUnreachableError,
    QueueAnswers,
)
from rebalance_core.client.pass_record import PassView
from rebalance_core.client.process import ClientProcess, start_process
from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.registry import make_strategy

Json = dict[str, Any]

QUERY_FAULTS: dict[str, Callable[[str], RebalanceError]] = {
    "query_busy": BrokerRefusedError,
    "query_timeout": BrokerUnreachableError,
}
MAX_ERROR = "max_error"
JOINS = ("join", "join_duplicate_client_id")
THRESHOLDS = (
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "pull_threshold_for_topic",
    "pull_threshold_size_for_topic",
)


class ReplayWorld:
    """The processes of one scenario; everything else comes with each epoch."""

    def __init__(self, scenario: Json) -> None:
        self._version: str = scenario["version"]
        self._configs: dict[str, Json] = {c["key"]: c for c in scenario["config"]["consumers"]}
        self._subscriptions = {key: set(c["subscriptions"]) for key, c in self._configs.items()}
        self._files: dict[str, dict[MessageQueue, int]] = {}
        self.processes: dict[str, ClientProcess] = {}
        joining = {
            event["key"]
            for epoch in scenario["epochs"]
            for event in epoch["events"]
            if event["type"] in JOINS
        }
        for key in self._configs:
            if key not in joining:
                self._start(key)

    def begin_epoch(self, epoch: Json) -> BrokerAnswers:
        """Applies the epoch's events to the processes; returns the brokers of the epoch."""
        for process in self.processes.values():
            for state in process.table.values():
                state.listener_busy = False
        for event in epoch["events"]:
            self._apply(event)
        for key, topics in epoch.get("local_offsets", {}).items():
            file = self._file(self._configs[key]["client_id"])
            file.clear()
            file.update(
                (MessageQueue(topic, broker, queue_id), offset)
                for topic, rows in topics.items()
                for broker, queue_id, offset in rows
            )
        return brokers_of(epoch)

    def view(self, key: str, epoch: Json, topics: Iterable[str]) -> PassView:
        """What one client sees; ``topics`` are its subscribed topics in the order of the pass."""
        members = epoch.get("member_views", {}).get(key, epoch["members"])
        routes = epoch["queues"] | epoch.get("queue_views", {}).get(key, {})
        queues = {}
        for topic in topics:
            rows = routes.get(topic)
            queues[topic] = None if rows is None else tuple(MessageQueue(topic, *r) for r in rows)
        seen = None if members is None else tuple(members)
        return PassView(queues, dict.fromkeys(queues, seen))

    def subscriptions(self, key: str) -> set[str]:
        """The topics a process subscribes now."""
        return self._subscriptions[key]

    def end_epoch(self, epoch: Json, brokers: BrokerAnswers) -> None:
        """``after``: consumption goes on; persistAll, whose commits the next epoch brings."""
        ends = {queue: row[4] for queue, row in _offset_rows(epoch)}
        advance: int = epoch["after"]["advance"]
        for process in self.processes.values():
            for queue, state in process.table.items():
                if not state.dropped:
                    end = max(state.offset, ends.get(queue, 0))
                    state.offset = min(end, state.offset + advance)
                    process.store.update(queue, state.offset)
            if epoch["after"]["persist_all"]:
                process.store.forget_unused(process.table.keys())

    def _start(self, key: str) -> None:
        config = self._configs[key]
        settings = GroupSettings(
            consumer_type=config["consumer"].upper(),
            message_model=config["message_model"],
            consume_from_where=config["consume_from_where"],
            ordered=config["ordered"],
            client_version=self._version,
            **{name: config[name] for name in THRESHOLDS if name in config},
        )
        strategy = make_strategy(config["strategy"], config["params"], self._version)
        client_id = config["client_id"]
        file = self._file(client_id)
        self.processes[key] = start_process(client_id, settings, strategy, file)

    def _file(self, client_id: str) -> dict[MessageQueue, int]:
        return self._files.setdefault(client_id, {})

    def _apply(self, event: Json) -> None:
        """Events of routes, members, brokers and offsets show in the epoch's own fields."""
        kind = event["type"]
        if kind in JOINS:
            self._start(event["key"])
        elif kind in ("leave", "crash"):
            del self.processes[event["key"]]
        elif kind == "subscribe":
            self._subscriptions[event["key"]].add(event["topic"])
        elif kind == "unsubscribe":
            self._subscriptions[event["key"]].discard(event["topic"])
        elif kind in ("pull_expired", "messages_cached", "listener_busy"):
            self._apply_to_queues(event)

    def _apply_to_queues(self, event: Json) -> None:
        table = self.processes[event["key"]].table
        for row in event["queues"]:
            state = table.get(MessageQueue(*row))
            if state is None:
                continue  # only possible after a mismatch that was reported already
            if event["type"] == "pull_expired":
                state.pull_expired = True
            elif event["type"] == "messages_cached":
                state.holds_messages = True
            else:
                state.listener_busy = True
                # A scenario renews no lock, so the age never falls; 0 leaves it as it is.
                state.lock_age_ms = max(state.lock_age_ms, event["last_lock_age_ms"])


def brokers_of(epoch: Json) -> BrokerAnswers:
    """The brokers of one epoch."""
    return BrokerAnswers(
        answers={queue: _answers(row) for queue, row in _offset_rows(epoch)},
        locks={
            MessageQueue(topic, broker, queue_id): client_id
            for topic, broker, queue_id, client_id in epoch.get("locks", [])
        },
        brokers_down=frozenset(epoch.get("brokers_down", [])),
        masters_down=frozenset(epoch.get("masters_down", [])),
    )


def _offset_rows(epoch: Json) -> Iterable[tuple[MessageQueue, list[Any]]]:
    for topic, rows in epoch["offsets"].items():
        for row in rows:
            yield MessageQueue(topic, row[0], row[1]), row


def _answers(row: list[Any]) -> QueueAnswers:
    _broker, _queue_id, committed, _minimum, maximum, by_timestamp, *faults = row
    fault = faults[0] if faults else None
    if fault == MAX_ERROR:
        return QueueAnswers(committed, None, None)
    failure = QUERY_FAULTS[fault] if fault is not None else None
    return QueueAnswers(committed, maximum, by_timestamp, failure)
