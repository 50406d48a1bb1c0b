"""A broker's metrics as printed by its exporter: OpenMetrics or Prometheus text (from 5.1 on)."""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.java_numbers import INT_MAX
from rebalance_core.ingest.parse.java_text import MS_MAX, whole
from rebalance_core.model.queue import POP_RETRY_MARKS, retry_topic

LATENCY = "rocketmq_pop_revive_latency"
WAITING = "rocketmq_pop_revive_lag"
WRITTEN = "rocketmq_pop_revive_in_message_total"
PUT_BACK = "rocketmq_pop_revive_retry_messages_total"
"""``PopMetricsConstant``, equal from 5.1.4 to 5.5.0. ``rocketmq_pop_revive_out_message_total`` is
not read, because it counts an entry again in each pass that reads it (5.5.0: 30 for 6
acknowledgements).
"""
GIVEN = "rocketmq_messages_out_total"
IN_FLIGHT = "rocketmq_consumer_inflight_messages"
"""``BrokerMetricsConstant``; in the first, only pops have the label `is_retry`."""
_LABELS = {
    LATENCY: ("queue_id",),
    WAITING: ("queue_id",),
    WRITTEN: ("consumer_group", "topic", "revive_message_type", "put_status"),
    PUT_BACK: ("consumer_group", "topic", "put_status"),
    GIVEN: ("consumer_group", "topic"),
    IN_FLIGHT: ("consumer_group", "topic", "is_retry"),
}
"""The metrics that are read, and the labels that each one needs."""
_UNIT = "_milliseconds"
"""The exporter may append this suffix, even to `WAITING`, which is a number of messages (5.5.0)."""
_CHECKPOINT, _ACKNOWLEDGEMENT = "CK", "ACK"
"""``PopReviveMessageType``."""
_STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""``PutMessageStatus`` values of stored messages (``AckMessageProcessor``)."""
_NAME = re.compile(r"(?:# (?:HELP|TYPE|UNIT) )?([A-Za-z_:][\w:]*)(?=[{ ]|$)")
"""A line without a complete name belongs to the metric before it."""
_SAMPLE = re.compile(r"[\w:]+\{(?P<labels>[^{}]*)\} +(?P<value>\S+)(?: +\S+)?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ANY = re.compile(r"^(?:# (?:HELP|TYPE|UNIT) |[A-Za-z_]\w*(?:\{| [-+\dNI]))", re.MULTILINE)
_END = "# EOF"
_OF_BROKER, _OF_PROXY = 'node_type="broker"', 'node_type="proxy"'
_NO_METRIC = "no metric in OpenMetrics or Prometheus text"


class Sample(NamedTuple):
    """A line for a revive queue or a group.

    Attributes:
        labels: its labels; `node_id` is the broker's name, which its slaves share.
        value: its number.
        where: ``file:line``.
    """

    labels: dict[str, str]
    value: int
    where: str


Metrics: TypeAlias = dict[str, list[Sample]]
"""The samples of each metric that has any, by the metric's name without a unit."""


def parse_broker_metrics(text: str, source: str) -> list[Fact | Unread]:
    """Read the metrics of revive queues and of groups that pop, and ignore all others.

    If a series appears twice, the last line counts. Never raises; linear in the length of the text.

    Facts:
        revive_metrics: a revive queue: revive_queue, late_ms (how long ago its first checkpoint was
            due), waiting (entries not read yet; None if not printed), node (the broker in its
            labels)
        pop_counts: a group and a topic, including its retries: consumer_group, topic, node and the
            details of POP_COUNTS (None if the text lacks that metric or its end, or a sample of it
            is refused)
    """
    if _ANY.search(text) is None or (_OF_PROXY in text and _OF_BROKER not in text):
        what = "only a proxy's metrics" if _OF_PROXY in text else _NO_METRIC
        return [fact.unread(source, text, Unreadable(fact.WRONG_FILE, f"it holds {what}"))]
    results: list[Fact | Unread] = []
    found: dict[str, dict[tuple[tuple[str, str], ...], Sample]] = {}
    ended, refused, last = set[str](), set[str](), ""
    lines = text.splitlines()
    cut_at = 0 if text.endswith(("\n", "\r", _END)) else len(lines)
    for number, line in enumerate(lines, 1):
        where = f"{source}:{number}"
        if number == cut_at:
            why = Unreadable(fact.UNPARSABLE_LINE, f"{fact.CUT_OFF}before the end of its last line")
            results.append(fact.unread(where, line, why))
            continue
        named = _NAME.match(line)
        name = named[1].removesuffix(_UNIT) if named else _END if line.startswith(_END) else last
        if name != last:
            ended.add(last)
            last = name
        if name in _LABELS and not line.startswith("#"):
            read = _sample(line, where, _LABELS[name])
            if isinstance(read, Sample):
                found.setdefault(name, {})[tuple(sorted(read.labels.items()))] = read
            else:
                refused.add(name)
                results.append(fact.unread(where, line, read))
    metrics = {name: list(samples.values()) for name, samples in found.items()}
    return [*results, *_of_queues(metrics), *_of_groups(metrics, ended - refused)]


def _sample(line: str, where: str, needed: tuple[str, ...]) -> Sample | Unreadable:
    """Return the sample in a line, or why it has none."""
    match = _SAMPLE.fullmatch(line.rstrip())
    labels: dict[str, str] = dict(_LABEL.findall(match["labels"])) if match else {}
    lacking = next((label for label in needed if not labels.get(label)), None)
    if lacking is not None:
        return Unreadable(fact.UNPARSABLE_LINE, f"it has no label {lacking}")
    number = _number(match["value"]) if match else None
    if number is None or whole(labels.get("queue_id", "0"), INT_MAX) is None:
        return Unreadable(fact.UNPARSABLE_LINE, "it has no number that fits")
    return Sample(labels, number, where)


def _of_queues(metrics: Metrics) -> Iterator[Fact]:
    """Yield a fact for each revive queue whose lateness is printed."""
    waiting = {_queue(sample): sample.value for sample in metrics.get(WAITING, ())}
    for sample in metrics.get(LATENCY, ()):
        node, queue = _queue(sample)
        values = {
            "revive_queue": queue,
            "late_ms": sample.value,
            "waiting": waiting.get((node, queue)),
            "node": node,
        }
        yield Fact("revive_metrics", None, values, sample.where)


def _queue(sample: Sample) -> tuple[str | None, int]:
    return sample.labels.get("node_id"), int(sample.labels["queue_id"])


def _of_groups(metrics: Metrics, whole: set[str]) -> Iterator[Fact]:
    """Yield a fact for each broker, group and topic that the revive metrics name.

    Args:
        metrics: the samples.
        whole: metrics of which the text contains all samples, even if there are none.
    """
    counts = _Counts(metrics, whole)
    first: dict[_OfGroup, str] = {}
    for name in (WRITTEN, PUT_BACK):
        for sample in metrics.get(name, ()):
            first.setdefault(_of_group(sample), sample.where)
    for of, where in first.items():
        node, group, topic = of
        stored = {"put_status": _STORED}
        values = {
            "consumer_group": group,
            "topic": topic,
            "node": node,
            "checkpoints": counts.of(WRITTEN, of, revive_message_type=(_CHECKPOINT,), **stored),
            "acknowledgements": counts.of(
                WRITTEN, of, revive_message_type=(_ACKNOWLEDGEMENT,), **stored
            ),
            "put_back": counts.of(PUT_BACK, of, **stored),
            "failed": counts.failed(of),
            "given": counts.of(GIVEN, of, is_retry=("false",)),
            "given_again": counts.of(GIVEN, of, is_retry=("true",)),
            "in_flight": counts.in_flight(of),
        }
        yield Fact("pop_counts", None, values, where)


_OfGroup: TypeAlias = tuple[str | None, str, str]
"""A broker, a group and a topic."""


def _of_group(sample: Sample) -> _OfGroup:
    """Return the key of a sample; a POP retry topic counts as its topic."""
    group, topic = sample.labels["consumer_group"], sample.labels["topic"]
    for mark in POP_RETRY_MARKS:
        topic = topic.removeprefix(f"{retry_topic(group)}{mark}")
    return sample.labels.get("node_id"), group, topic


class _Counts:
    """Sums of samples; an incomplete metric has none, so that no count is too low."""

    def __init__(self, metrics: Metrics, whole: set[str]) -> None:
        self._whole = whole
        self._samples: dict[tuple[str, _OfGroup], list[Sample]] = {}
        for name in (WRITTEN, PUT_BACK, GIVEN, IN_FLIGHT):
            for sample in metrics.get(name, ()):
                self._samples.setdefault((name, _of_group(sample)), []).append(sample)

    def of(self, name: str, of: _OfGroup, **labels: tuple[str, ...]) -> int | None:
        """Return the sum of the samples with these labels, or None if the metric is incomplete."""
        if name not in self._whole:
            return None
        samples = self._samples.get((name, of), ())
        return sum(
            sample.value
            for sample in samples
            if all(sample.labels.get(label) in values for label, values in labels.items())
        )

    def in_flight(self, of: _OfGroup) -> int | None:
        """Return the number of popped messages; None for a group that the broker considers to be
        pulling.

        It does so for remoting push consumers that pop (``ConsumerLagCalculator.isPop``), and
        prints no series for their retries.
        """
        samples = self._samples.get((IN_FLIGHT, of), ())
        pops = any(sample.labels["is_retry"] == "true" for sample in samples)
        return self.of(IN_FLIGHT, of) if pops else None

    def failed(self, of: _OfGroup) -> int | None:
        """Return the number of checkpoints and acknowledgements that the store refused to write."""
        tried, kept = self.of(WRITTEN, of), self.of(WRITTEN, of, put_status=_STORED)
        return None if tried is None or kept is None else tried - kept


def _number(text: str) -> int | None:
    """Return the text as an integer, or None if it is not a number or too large."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if 0 <= number <= MS_MAX else None
