"""A broker's metrics as its exporter prints them: OpenMetrics or Prometheus text (5.1 on)."""

import re

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.java_numbers import INT_MAX
from rebalance_core.ingest.parse.java_text import MS_MAX, whole

LATENCY = "rocketmq_pop_revive_latency"
WAITING = "rocketmq_pop_revive_lag"
"""PopMetricsConstant.GAUGE_POP_REVIVE_LATENCY and GAUGE_POP_REVIVE_LAG. The exporter may append a
unit, which is wrong for the second, a number of messages (5.5.0)."""
_SAMPLE = re.compile(
    r"^(?P<name>rocketmq_pop_revive_(?:latency|lag))(?:_milliseconds)?\{(?P<labels>[^{}]*)\}"
    r" +(?P<value>\S+)"
)
_QUEUE_LABEL = re.compile(r'(?:^|,)queue_id="(?P<queue>[^"]*)"')
_ANY = re.compile(r"^(?:# (?:HELP|TYPE|UNIT) |[A-Za-z_]\w*(?:\{| [-+\dNI]))", re.MULTILINE)


def parse_broker_metrics(text: str, source: str) -> list[Fact | Unread]:
    """Read the state of the revive queues; all other metrics state nothing relevant here.

    Never raises; linear in the text.

    Facts:
        revive_metrics: a revive queue: revive_queue, late_ms (how long ago its first checkpoint was
            due), waiting (entries that are not read yet; None: not printed)
    """
    if _ANY.search(text) is None:
        why = Unreadable(fact.WRONG_FILE, "it holds no metric in OpenMetrics or Prometheus text")
        return [fact.unread(source, text, why)]
    results: list[Fact | Unread] = []
    late: dict[int, tuple[int, str]] = {}
    waiting: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith((LATENCY, WAITING)):
            continue
        sample = _SAMPLE.match(line)
        label = None if sample is None else _QUEUE_LABEL.search(sample["labels"])
        queue = None if label is None else whole(label["queue"], INT_MAX)
        value = None if sample is None else _number(sample["value"])
        where = f"{source}:{number}"
        if sample is None or queue is None or value is None:
            why = Unreadable(fact.UNPARSABLE_LINE, "it has no queue_id or no number that fits")
            results.append(fact.unread(where, line, why))
        elif sample["name"] == LATENCY:
            late[queue] = value, where
        else:
            waiting[queue] = value
    for queue, (late_ms, where) in late.items():
        values = {"revive_queue": queue, "late_ms": late_ms, "waiting": waiting.get(queue)}
        results.append(Fact("revive_metrics", None, values, where))
    return results


def _number(text: str) -> int | None:
    """Return a number of the text, as an integer; None: it is none, or too large."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if 0 <= number <= MS_MAX else None
