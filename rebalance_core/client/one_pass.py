"""A client's pass, computed from plain values step by step in the order of RocketMQ's code."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rebalance_core.client.broker_answers import BrokerAnswers, QueueAnswers
from rebalance_core.client.pass_record import PassRecord, PassView, Step
from rebalance_core.client.process import ClientProcess, ProcessQueue, start_process
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import as_strategy

QueueName = MessageQueue | tuple[str, str, int] | str
"""A queue: ``orders/broker-a/3`` or its three parts."""
OffsetAnswers = QueueAnswers | tuple[int | None, int | None, int | None] | int | None
"""The broker's answers for a queue: the committed offset, the max offset and the timestamp search.
A number is the committed offset; None means that nothing is committed.
"""


@dataclass(frozen=True, slots=True)
class RebalancePass:
    """A pass that has run.

    Attributes:
        client_id: the client.
        process: the client after the pass: its process queue table, offsets and thresholds.
        record: what the pass did.
        brokers: the brokers after the pass: commits and order locks.
        at_ms: the time, epoch ms, which is the subVersion of every topic that changed; None if
            unknown.
    """

    client_id: str
    process: ClientProcess
    record: PassRecord
    brokers: BrokerAnswers
    at_ms: int | None

    @property
    def steps(self) -> list[Step]:
        """All steps, in the order of the code."""
        return self.record.steps or []

    @property
    def sub_versions(self) -> dict[str, int | None]:
        """Return, by topic, the subVersion in the heartbeat; only push consumers set it."""
        changed = self.record.changed if self.process.is_push else {}
        return dict.fromkeys(changed, self.at_ms)

    def __str__(self) -> str:
        return "\n".join(pass_lines(self))

    def facts(self) -> dict[str, object]:
        """Return everything as lists, strings and numbers, for JSON."""
        process, record = self.process, self.record
        return {
            "client_id": self.client_id,
            "at_ms": self.at_ms,
            "steps": [
                {
                    "method": s.method,
                    "step": s.what,
                    "topic": s.topic,
                    "queue": _text(s.queue),
                    "text": sentence(s),
                    **{name: _plain(value) for name, value in s.values.items()},
                }
                for s in self.steps
            ],
            "added": {_text(queue): offset for queue, offset in record.added.items()},
            "removed": [_text(queue) for queue in record.removed],
            "removal_failed": [_text(queue) for queue in record.removal_failed],
            "truncated": [_text(queue) for queue in record.truncated],
            "persisted": {_text(queue): offset for queue, offset in record.persisted.items()},
            "locks": {_text(queue): granted for queue, granted in record.locks},
            "delayed_unlocks": {_text(q): ms for q, ms in record.delayed_unlocks.items()},
            "sub_versions": self.sub_versions,
            "heartbeats": record.heartbeats,
            "rebalance_later_ms": record.rebalance_later_ms,
            "first_pull_delay_ms": record.first_pull_delay_ms,
            "pull_threshold_for_queue": process.threshold_for_queue if process.is_push else None,
            "pull_threshold_size_for_queue": process.threshold_size_for_queue
            if process.is_push
            else None,
            "balanced": record.balanced,
            "table": [
                {"queue": _text(queue), "offset": state.offset, "dropped": state.dropped}
                for queue, state in sorted(process.table.items())
            ],
        }


def rebalance_pass(
    client_id: str,
    *,
    queues: Mapping[str, Iterable[tuple[str, int]] | None],
    members: Iterable[str] | Mapping[str, Iterable[str] | None] | None,
    strategy: Any = "AVG",
    settings: GroupSettings | None = None,
    table: Mapping[Any, ProcessQueue | int] | None = None,
    memory: Mapping[Any, int] | None = None,
    local_file: Mapping[Any, int] | None = None,
    offsets: Mapping[Any, OffsetAnswers] | None = None,
    locks: Mapping[Any, str] | None = None,
    brokers_down: Iterable[str] = (),
    masters_down: Iterable[str] = (),
    thresholds: tuple[int, int] | None = None,
    at_ms: int | None = None,
) -> RebalancePass:
    """Run one pass: ``doRebalance``, as in the released client classes (rocketmq.md §3, §4).

    The arguments are not changed.

    Args:
        client_id: the client's client id.
        queues: its subscription, and the mqAll of each topic in the order of the pass, as (broker
            name, queue id); None if it knows no route.
        members: cidAll as a broker returns it, unsorted, with one entry per process; None if there
            is no answer. By topic if topics differ.
        strategy: a string, a result of `make_strategy`, or your own object (`register_strategy`).
        settings: the client's type, message model, versions and thresholds; None for RocketMQ's
            defaults.
        table: its process queue table, with an offset or a `ProcessQueue` for each queue.
        memory: the offsets held in memory by its offset store; None for those in the table.
        local_file: the content of its offset file (BROADCASTING).
        offsets: the brokers' answers for each queue; a query for a queue without an entry fails.
            None: nothing is committed and every queue is empty.
        locks: the client id that holds the order lock of each queue.
        brokers_down: brokers of which no process answers.
        masters_down: brokers of which only slaves answer.
        thresholds: (messages, MiB) per queue currently in force; None for those in the settings.
        at_ms: the time of the pass, epoch ms.

    Raises:
        UsageError: a queue, a strategy text or a version cannot be parsed.

    >>> done = rebalance_pass(
    ...     "b", queues={"T": [("x", 0), ("x", 1)]}, members=["b", "a"], table={"T/x/0": 5}
    ... )
    >>> facts = done.facts()
    >>> facts["removed"], facts["persisted"], facts["added"], facts["balanced"]
    (['T/x/0'], {'T/x/0': 5}, {'T/x/1': 0}, True)
    """
    settings = settings or GroupSettings()
    file = None if local_file is None else _by_queue(local_file)
    process = start_process(
        client_id, settings, as_strategy(strategy, settings.client_version), file
    )
    held = {
        q: replace(s) if isinstance(s, ProcessQueue) else ProcessQueue(s)
        for q, s in _by_queue(table or {}).items()
    }
    process.table.update(held)
    for queue, offset in _by_queue(_offsets_of(held) if memory is None else memory).items():
        process.store.update(queue, offset)
    if thresholds is not None:
        process.threshold_for_queue, process.threshold_size_for_queue = thresholds
    view = _view(queues, members)
    brokers = _brokers(view, held, offsets, locks, brokers_down, masters_down)
    record = run_pass(process, view, brokers, steps=True)
    return RebalancePass(client_id, process, record, brokers, at_ms)


def _view(
    queues: Mapping[str, Iterable[tuple[str, int]] | None],
    members: Iterable[str] | Mapping[str, Iterable[str] | None] | None,
) -> PassView:
    routes = {
        topic: None if numbers is None else tuple(MessageQueue(topic, *queue) for queue in numbers)
        for topic, numbers in queues.items()
    }
    by_topic: Mapping[str, Iterable[str] | None]
    if isinstance(members, Mapping):
        by_topic = members
    else:
        by_topic = dict.fromkeys(routes, None if members is None else tuple(members))
    lists = {t: None if (ids := by_topic.get(t)) is None else tuple(ids) for t in routes}
    return PassView(routes, lists)


def _brokers(
    view: PassView,
    held: Iterable[MessageQueue],
    offsets: Mapping[Any, OffsetAnswers] | None,
    locks: Mapping[Any, str] | None,
    brokers_down: Iterable[str],
    masters_down: Iterable[str],
) -> BrokerAnswers:
    if offsets is None:
        queues = {
            queue for topic_queues in view.queues.values() for queue in topic_queues or ()
        }.union(held)
        answers = dict.fromkeys(queues, QueueAnswers(None, 0, 0))
    else:
        answers = {queue: _answers(answer) for queue, answer in _by_queue(offsets).items()}
    return BrokerAnswers(
        answers,
        locks=_by_queue(locks or {}),
        brokers_down=frozenset(brokers_down),
        masters_down=frozenset(masters_down),
    )


def _answers(answers: OffsetAnswers) -> QueueAnswers:
    if isinstance(answers, QueueAnswers):
        return answers
    return (
        QueueAnswers(*answers) if isinstance(answers, tuple) else QueueAnswers(answers, None, None)
    )


def _offsets_of(table: Mapping[MessageQueue, ProcessQueue]) -> dict[MessageQueue, int]:
    return {queue: state.offset for queue, state in table.items()}


def _by_queue(values: Mapping[Any, Any]) -> dict[MessageQueue, Any]:
    return {_queue(name): value for name, value in values.items()}


def _queue(name: QueueName) -> MessageQueue:
    parts = name.rsplit("/", 2) if isinstance(name, str) else name
    try:
        topic, broker, queue_id = parts
        return MessageQueue(str(topic), str(broker), int(queue_id))
    except (ValueError, TypeError):
        raise UsageError(f"{name!r} is not a queue; valid: TOPIC/BROKER/ID or its parts") from None


_SENTENCES = {
    "no route": "mqSet is null: the client knows no route; it keeps the queues that it holds",
    "no members": "cidAll is null: the broker answered without members; the client keeps the "
    "queues that it holds",
    "all of them": "BROADCASTING: all {queues} queues are its own",
    "sorted": "mqAll sorted: {mq_all}; cidAll sorted: {cid_all}",
    "threw": "{strategy} threw: {error}",
    "allocated": "{strategy} gives it {result}",
    "not mine": "drop {queue}: it is not in mqSet",
    "expired": "drop {queue}: no pull for 120 s (isPullExpired)",
    "persisted": "commit {offset} of {queue} to its broker",
    "not persisted": "no offset of {queue} goes to a broker",
    "unlocked": "give the order lock of {queue} back",
    "forced": "give the order lock of {queue} back by force: its last renewal is over 20 s old",
    "unlock later": "give the order lock of {queue} back in {delay_ms} ms: messages are cached",
    "busy": "wait {waited_ms} ms for the consume lock of {queue}: the listener has it",
    "zombie": "{queue} stays in the table, dropped: it cannot be added again until it is removed",
    "removed": "remove {queue} from processQueueTable",
    "locked": "lock {queue}: granted",
    "lock refused": "lock {queue}: refused; it is not added in this pass",
    "start": "{queue} starts at {offset} ({rule}; stored {stored_offset}, max {max_offset})",
    "no start": "{queue} has no start offset: it is not added in this pass",
    "added": "put {queue} into processQueueTable, nextOffset {offset}",
    "later": "ask for another pass in {delay_ms} ms: a lock was refused",
    "pull": "pull requests, after {delay_ms} ms: {requests}",
    "listener": "notify the listener; a pull consumer sends no request",
    "push": "subVersion becomes now; {process_queues} process queues: thresholds "
    "{pull_threshold_for_queue} messages and {pull_threshold_size_for_queue} MiB a queue; "
    "heartbeat to all brokers",
    "truncated": "remove {queue}: its topic is not subscribed; nothing is committed or unlocked",
    "end": "balanced: {balanced}",
}
"""Sentences, by `Step.what`."""


def sentence(step: Step) -> str:
    """Return a step in words."""
    values = {name: _shown(value) for name, value in step.values.items()}
    return _SENTENCES[step.what].format(queue=_text(step.queue), **values)


def pass_lines(done: RebalancePass) -> Iterator[str]:
    """Yield the pass as text, one line per step, with the names of RocketMQ's methods."""
    yield f"One pass of {done.client_id}"
    under: tuple[str, str | None] | None = None
    for step in done.steps:
        place = step.method, step.topic
        if place != under:
            yield f"  {step.method}" + (f" {step.topic}" if step.topic else "")
        under = place
        yield f"    {sentence(step)}"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and not isinstance(value, MessageQueue):
        return ", ".join(map(_item, value)) or "nothing"
    return "not returned (4.9)" if value is None else str(value)


def _item(value: Any) -> str:
    if isinstance(value, tuple) and not isinstance(value, MessageQueue):
        return f"{_text(value[0])} from {value[1]}"
    return _text(value) if isinstance(value, MessageQueue) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, MessageQueue):
        return _text(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _text(queue: MessageQueue | None) -> str:
    return "" if queue is None else "/".join(map(str, queue))
