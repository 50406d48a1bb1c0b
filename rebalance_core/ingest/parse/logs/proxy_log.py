"""broker.log and proxy.log of a proxy: its members, in the brokers' words (rocketmq.md §14)."""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.logs import broker_log
from rebalance_core.ingest.parse.logs.broker_group_log import TEMPLATES as GROUP_TEMPLATES
from rebalance_core.ingest.parse.text.log_lines import (
    NOT_OURS,
    NOTHING,
    Fields,
    LogLine,
    Reader,
    ServerClock,
    Template,
    not_read,
    read_message,
    server_line,
)
from rebalance_core.model.times import MINUTE_MS

_MODE = '"proxyMode":"'
_OPEN = ", extendAttribute="
_CLOSE = ", lastUpdateTimestamp="
"""What follows the attribute of a `RemoteChannel`, whose JSON may have lines of its own."""
_CLOSING_LINE = "}}, clientId="
_MEMBERS = ("consumer_connected", "consumer_left", "consumer_closed", "consumer_expired")
_GROUPS = ("group_topic", "group_emptied")


class ProxyClock(ServerClock):
    """The clock of a proxy's log.

    Attributes:
        unfinished: a line whose JSON goes on in the next lines, with its text and source.
        last_ms: time of the last line that has one.
        alive_minute: of the last `proxy_alive`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unfinished: tuple[LogLine, str, str] | None = None
        self.last_ms: int | None = None
        self.alive_minute: int | None = None


def _proxied(read: Reader) -> Reader:
    """The same line of a connection that is no proxy's is of the broker around it."""

    def member(message: str) -> Fields:
        fields = read(message)
        return NOTHING if fields and "local" in fields and "protocol" not in fields else fields

    return member


def _changed(read: Reader) -> Reader:
    """Proxies tell each other of every heartbeat, so a version alone is noise."""

    def change(message: str) -> Fields:
        fields = read(message)
        return NOTHING if fields and "version" in fields and "old" not in fields else fields

    return change


_STARTING = (
    "Current configuration: {",
    "Try to start service thread:RebalanceService started:false",
)
TEMPLATES: tuple[Template, ...] = (
    *((k, words, _proxied(r)) for k, words, r in broker_log.TEMPLATES if k in _MEMBERS),
    *((k, words, r) for k, words, r in GROUP_TEMPLATES if k in _GROUPS),
    *((k, words, _changed(r)) for k, words, r in GROUP_TEMPLATES if k == "subscription_changed"),
    *(("proxy_starting", words, lambda message: {}) for words in _STARTING),
)
_BEGINNINGS = tuple(words for _, words, _ in TEMPLATES)
WORDS = (*_BEGINNINGS, _MODE, _CLOSING_LINE)


def parse_proxy_line(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    """What one line of a proxy's log states; a line that goes on states it at its last line."""
    line = server_line(text, clock)
    if line is None:
        return _continued(text, source, clock)
    clock.last_ms = line.at_ms
    lost = _lost(clock)
    if not line.message.startswith(_BEGINNINGS):
        return lost
    alive = _alive(line, source, clock)
    if _OPEN in line.message and _CLOSE not in line.message:
        clock.unfinished = (line, text, source)
        return lost + alive
    return lost + alive + read_message(TEMPLATES, line, text, source)


def _alive(line: LogLine, source: str, clock: ProxyClock) -> tuple[Fact, ...]:
    minute = line.at_ms // MINUTE_MS
    if minute == clock.alive_minute:
        return ()
    clock.alive_minute = minute
    return (Fact("proxy_alive", line.at_ms, {}, source),)


def _continued(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    if clock.unfinished is None:
        return _mode(text, source, clock)
    if _CLOSE not in text:
        return NOT_OURS
    line, begun, where = clock.unfinished
    clock.unfinished = None
    whole = LogLine(line.at_ms, line.message + text.strip())
    return read_message(TEMPLATES, whole, begun + text, where)


def _lost(clock: ProxyClock) -> tuple[Unread, ...]:
    """A line that had to go on and did not."""
    if clock.unfinished is None:
        return ()
    _, text, source = clock.unfinished
    clock.unfinished = None
    return (not_read(text, source, _OPEN, "the lines that follow do not end it"),)


def _mode(text: str, source: str, clock: ProxyClock) -> tuple[Fact | Unread, ...]:
    """``"proxyMode":"CLUSTER",`` of the configuration that proxy.log prints at the start."""
    mode = text.strip().removeprefix(_MODE).partition('"')[0]
    if not text.strip().startswith(_MODE) or not mode or clock.last_ms is None:
        return NOT_OURS
    return (Fact("proxy_mode", clock.last_ms, {"mode": mode}, source),)
