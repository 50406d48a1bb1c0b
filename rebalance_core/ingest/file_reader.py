"""A file as read: its addressed facts, its refused parts, and how much was understood."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.ingest import collection
from rebalance_core.ingest.collection import CollectedFile
from rebalance_core.ingest.copied_names import may_be
from rebalance_core.ingest.evidence import (
    Evidence,
    Shown,
    asked,
    evidence_of,
    group_of_rows,
    is_fact_only,
    of_document,
)
from rebalance_core.ingest.fact import (
    STRAY_LINE,
    UNKNOWN_COMMAND,
    UNPARSABLE_DOCUMENT,
    UNPARSABLE_LINE,
    WRONG_FILE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    looks_like,
    storable,
    unread,
)
from rebalance_core.ingest.fact_subjects import answers, is_dating
from rebalance_core.ingest.group_names import renamed
from rebalance_core.ingest.log_block import HOUR_CHARACTERS, STEP_CHARACTERS, WORDS, LogBlock
from rebalance_core.ingest.parse import log_lines, zones
from rebalance_core.ingest.parse.broker_log import parse_broker_line
from rebalance_core.ingest.parse.broker_metrics import parse_broker_metrics
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.cluster_list import parse_cluster_list
from rebalance_core.ingest.parse.command_output import is_partial, parse_other, rejoined
from rebalance_core.ingest.parse.config_stores import (
    parse_message_request_mode_json,
    parse_proxy_config_json,
    parse_rocksdb_sign,
    parse_store_listing,
    parse_subscription_group_json,
    parse_topics_json,
)
from rebalance_core.ingest.parse.consumer_connection import parse_consumer_connection
from rebalance_core.ingest.parse.consumer_progress import parse_consumer_progress
from rebalance_core.ingest.parse.consumer_running_info import PROPERTIES
from rebalance_core.ingest.parse.consumer_status import client_of_output, parse_consumer_status
from rebalance_core.ingest.parse.dashboard_json import dashboard_answer
from rebalance_core.ingest.parse.lock_and_pop_logs import parse_lock_line, parse_pop_line
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock, ServerClock
from rebalance_core.ingest.parse.mqadmin_export import parse_export, parse_rocksdb_config
from rebalance_core.ingest.parse.offset_stores import (
    parse_consumer_offset_json,
    parse_consumer_order_info_json,
    parse_local_offset_json,
)
from rebalance_core.ingest.parse.server_config import parse_broker_config, parse_server_config
from rebalance_core.ingest.parse.server_logs import (
    ProxyClock,
    parse_namesrv_line,
    parse_proxy_line,
)
from rebalance_core.ingest.parse.topic_list import parse_topic_list
from rebalance_core.ingest.parse.topic_route import parse_topic_route
from rebalance_core.ingest.parse.topic_status import parse_topic_status
from rebalance_core.ingest.parse.wrapped_lines import LINE_ENDS, Unwrapper
from rebalance_core.ingest.parse.zones import ReadAt
from rebalance_core.ingest.store_copies import FILE_BITS, copied_store, printed_stores
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, is_retry_topic
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.times import MINUTE_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import DatingFact

LineParser = Callable[[str, str, Any], tuple[Fact | Unread, ...]]
DocumentParser = Callable[..., list[Fact | Unread]]
CarriedText = tuple[str, str, str, int]
"""A line that starts with RocketMQ's head, the line with its wrapping, its source and its position.
"""

LINE_PARSERS: dict[str, LineParser] = {
    collection.NAMESRV_LOG: parse_namesrv_line,
    collection.BROKER_LOG: parse_broker_line,
    collection.LOCK_LOG: parse_lock_line,
    collection.POP_LOG: parse_pop_line,
    collection.CLIENT_LOG: parse_client_line,
    collection.PROXY_LOG: parse_proxy_line,
}
STORE_PARSERS: dict[str, DocumentParser] = {
    collection.TOPICS: parse_topics_json,
    collection.GROUPS: parse_subscription_group_json,
    collection.OFFSETS: parse_consumer_offset_json,
    collection.MODES: parse_message_request_mode_json,
    collection.ORDER_INFO: parse_consumer_order_info_json,
    collection.PROXY_CONFIG: parse_proxy_config_json,
    collection.LOCAL_OFFSETS: parse_local_offset_json,
    collection.STORE_LISTING: parse_store_listing,
    collection.ROCKSDB_SIGN: parse_rocksdb_sign,
    collection.BROKER_METRICS: parse_broker_metrics,
}
CONTROLLER_COMMANDS = (
    "getBrokerEpoch", "getControllerConfig", "getControllerMetaData", "getSyncStateSet"
)  # fmt: skip
"""Commands that show which slaves are in sync, from which the roles in the brokers' logs result."""
ADMIN_PARSERS: dict[str, DocumentParser] = {
    "consumerConnection": parse_consumer_connection,
    "consumerProgress": parse_consumer_progress,
    "consumerStatus": parse_consumer_status,
    "topicRoute": parse_topic_route,
    "topicStatus": parse_topic_status,
    "topicList": parse_topic_list,
    "clusterList": parse_cluster_list,
    "exportMetadata": parse_export,
    "exportMetrics": parse_export,
    "exportConfigs": parse_export,
    "metadata": parse_export,
    "metrics": parse_export,
    "getBrokerConfig": parse_broker_config,
    "getNamesrvConfig": parse_server_config,
    "setConsumeMode": parse_other,
    "statsAll": parse_other,
    "updateBrokerConfig": parse_other,
    **dict.fromkeys(CONTROLLER_COMMANDS, parse_other),
    **dict.fromkeys(collection.STORE_COMMANDS, parse_rocksdb_config),
}
ZONED_COMMANDS = ("consumerProgress", "consumerStatus", "topicStatus")

LONGEST_COMMAND_MS = 10 * MINUTE_MS
"""A dump's time is when its command started, so it may show what happened during the run."""
CLOCK_SLACK_MS = 2_000
"""Lines from several threads may be slightly out of order; a larger step back means that a clock
was set.
"""
_GLUED = re.compile(r"\S\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{3})? (?:DEBUG|INFO|WARN|ERROR) ")
"""The head of a second line within a line: two threads wrote at once, or a copy lost line ends."""
SHORTEST_LINE = 30
"""Date, level and thread take as much; a colour may precede a line's own head."""
BROKEN = "\ufffd"
"""What stands for bytes that are not UTF-8; printable."""
BROKEN_TEXT = re.compile(f"[\x00-\x08\x0a-\x1f\x7f{BROKEN}]")
FIRST_LINE_LIMIT = 500
CHANGED = "changed"
JOIN, UP, BEGUN, SEEN, LATE = "join ", "up ", "begun ", "seen ", "late"
AT, CLOSED = "at ", "closed "
"""Marks: a member came, and a broker notified the others (in a client's log, with the broker's
address); a broker came; a client's log has its start; it first names the client; how much later a
broker's line is than the epoch time in it, in ms; an address of the broker; and the end there of
the connection of a client that did not unregister.
"""
MOST_MARKS = 200
MEMBER, LIST, SUBSCRIBED, COMMIT = "member ", "list ", "subscribed ", "commit "
VERSION, QUEUES, END, OF_GROUP = "version", "queues ", "end ", "of group "
OF_CLIENT, ANSWER = "of client ", "answer "
LISTED, ROUTED, NAMED = "listed ", "routed ", "named "
"""Facts that date a document and identify its host: a member came or went, or is listed, with its
group and client id; a list of members is complete, with its group and broker, and has a topic; an
offset was committed, with its group, topic, queue id and broker (for a store, its folder); a store
was changed; a topic received, has or had this many readable queues on a broker; a queue's messages
end there, with its topic, queue id and broker, and since when according to topicStatus; a dump
named after a group has the name or retry topic of a group, with both groups; a dump has the client
id of the client that answered; an answer as a whole, with the time at which its client last pulled
or popped, or a list of members; clusterList has a broker; a topicRoute has a broker with this many
queues; a group was created (1) or deleted (-1), has a member at a proxy (0), or is in a store (1).
"""
MOST_WITNESSES = 2_000

SETTINGS = ("broker_property", "name_server_property", "name_server_starting")
LEAST_PAUSE_MS, MOST_PAUSES = 20_000, 5
"""A continuously written log has few such pauses, if any; only the longest are kept."""
MOST_STEPS = 4
"""A log whose times go back more often was assembled out of order, because no clock is set this
often.
"""


Period = tuple[int, int]
"""The times of a log's first and last facts, in epoch ms."""


class ClockStep(NamedTuple):
    """A point at which the times of a log go back because its host's clock was set.

    Attributes:
        position: the position of the first line after it, as in evidence.
        before: the time of the last line before it, as written there.
        after: the time of the first line after it.
        period: the period of the lines since the previous step, as in `FileStats.period`.
        marks: the number of moments of each name marked before it.
        witnessed: the same for facts that date documents.
    """

    position: int
    before: str
    after: str
    period: "Period | None"
    marks: Mapping[str, int]
    witnessed: Mapping[str, int]

    @property
    def back_ms(self) -> int:
        """Return by how much the times go back."""
        return _apart_ms(self.after, self.before)


class Pause(NamedTuple):
    """A point at which a log has no lines for a while, or its host's clock was set forward.

    Attributes:
        position: the position of the first line after it, as in evidence.
        before: the time of the last line before it, as written there.
        after: the time of the first line after it.
        before_ms: the same as ``before``, in epoch ms.
        after_ms: the same as ``after``, in epoch ms.
    """

    position: int
    before: str
    after: str
    before_ms: int
    after_ms: int


def joined_period(first: Period | None, second: Period | None) -> Period | None:
    """Return the period from the first to the last moment in both."""
    times = [ms for period in (first, second) if period for ms in period]
    return (min(times), max(times)) if times else None


def _apart_ms(earlier: str, later: str) -> int:
    """Return how much later the second time is, both as one log writes them; 0 for text that is not
    a time.

    >>> _apart_ms("2026-11-22 15:04:45", "2026-11-22 15:05:15"), _apart_ms("2026-02-30", "")
    (30000, 0)
    """
    try:
        apart = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    except ValueError:
        return 0
    return round(1000 * apart.total_seconds())


class Edges(NamedTuple):
    """What a log's or split's first and last lines decide about steps next to them.

    If a single line is out of order, its thread wrote it late, and no clock was set. The lines
    around it, which may be in other blocks and splits, show that.

    Attributes:
        second: the time of the second line, as written there.
        last_but_one: the same for the last line but one.
        first_local: whether the first line has the time of the host's zone.
        last_local: the same for the last line.
        early: the position of a step for which the second line before it was not seen.
        open: the position of a step for which the second line was not seen.
    """

    second: str = ""
    last_but_one: str = ""
    first_local: bool = False
    last_local: bool = False
    early: int | None = None
    open: int | None = None


def _edges_after(edges: Edges, last: str, block: LogBlock) -> Edges:
    """Return the edges after another block; ``last`` is the time of the line before it, if any."""
    count = len(block.times)
    first, *rest = (time.as_py() for time in block.times[:2])
    second = first if last else "".join(rest)
    return Edges(
        second=edges.second or second,
        last_but_one=block.times[count - 2].as_py() if count > 1 else last,
        first_local=edges.first_local if last else bool(block.local[0].as_py()),
        last_local=bool(block.local[count - 1].as_py()),
        early=edges.early,
    )


def is_alone(before: str, after: str, earlier: str, later: str) -> bool:
    """Return whether only the line before or after a step back is out of order with the lines
    around it.

    Args:
        before: the time of the last line before the step.
        after: the time of the first line after it.
        earlier: the time of the line before `before`; empty if there is none.
        later: the time of the line after `after`; empty if there is none.
    """
    is_late = later and _apart_ms(later, before) <= CLOCK_SLACK_MS
    return bool(is_late or (earlier and _apart_ms(after, earlier) <= CLOCK_SLACK_MS))


@dataclass
class FileStats:
    """The extent to which a file or split was understood.

    ``understood`` counts lines with the log's head, except those that were refused, and the stack
    traces that follow them; for a document, it counts its facts.
    """

    name: str
    kind: str
    lines: int = 0
    understood: int = 0
    facts: int = 0
    rejected: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    jumps_back: int = 0
    worst_jump_ms: int = 0
    last_line: str = ""
    """The time of a log's last line with a head, even one without a fact, as written in the log."""
    unreadable: str = ""
    """The refusal's code if the file, or the rest of it, could not be read."""
    local_times: int = 0
    """The number of lines with facts whose times are in the time zone of the client's host."""
    line_bytes: int = field(default=0, compare=False)
    """For a log that is read in splits, the bytes of its lines including line ends."""
    codes: dict[str, int] = field(default_factory=dict)
    """Refused lines and the file's refusal, by code, with that of `partial` or `why` first."""
    why: str = ""
    """The message of the first refusal."""
    first_line: str = ""
    """The first line of a log, or the first refused line of a document."""
    looks_like: str = ""
    """The kind of file that the first line indicates instead, empty if unknown."""
    begins: int = field(default=0, compare=False)
    """The byte at which the split begins."""
    leading: int = field(default=0, compare=False)
    """Lines of a stack trace that come before any other line; the previous split determines whether
    they are understood.
    """
    below: bool | None = field(default=None, compare=False)
    """Whether a stack trace at the end would be understood, or None if no line decides it."""

    gap_low: int | None = None
    """The smallest difference between an epoch time in the file and the local time next to it."""
    gap_high: int | None = None
    """The largest such difference."""
    shift_ms: int = 0
    """The correction added to the times of a file in the wrong time zone."""
    first_line_at: str = ""
    """The time of a log's first line with a head, like `last_line`."""
    steps: dict[str, int] = field(default_factory=dict)
    """The number of a log's routine lines (below WARN) per 10 s, by the log's own times."""
    local_heads: bool = False
    """Whether a client's log has lines in the time zone of its host."""
    marks: dict[str, list[int]] = field(default_factory=dict)
    """The first moments that a broker and a client both log, by event."""
    partial: str = ""
    """Return why a document may contain more than was read; empty if it was read completely."""
    witnessed: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The first facts that date a document, as (time, value). For a log: the time of the event,
    with 1 or -1 for a member that came or went, or with a committed offset.
    """
    begun_at: str = ""
    """The time of a log's first line with a head, like `last_line`."""
    ended_at: str = ""
    """The same for the last one."""
    steps_back: list[ClockStep] = field(default_factory=list)
    """The points at which its times go back, in order; at most one more than `MOST_STEPS`."""
    edges: Edges = field(default_factory=Edges)
    period: Period | None = None
    """The state of the lines since the last of these steps."""
    pauses: list[Pause] = field(default_factory=list)
    """The longest times without a line, in order of position."""
    set_forward: tuple[int, ...] = field(default=(), compare=False)
    """The positions of the pauses in which the host's clock was set forward."""
    since: int = field(default=0, compare=False)
    """The position of the first line, if this is part of a log."""
    clock: Timeline[int] | None = field(default=None, compare=False)
    """The correction added to its times, by position, if it varies."""

    def __post_init__(self) -> None:
        """Restore values that were packed as JSON."""
        self.steps_back = [ClockStep(*step) for step in self.steps_back]
        self.edges = Edges(*self.edges)
        self.period = joined_period(self.period, None)
        self.pauses = [Pause(*pause) for pause in self.pauses]
        self.set_forward = tuple(self.set_forward)

    @property
    def code(self) -> str:
        """The code of `partial`, otherwise of `why`; empty if nothing was refused."""
        return next(iter(self.codes), "")

    def step_back(self, position: int, before: str, after: str) -> None:
        """Record that the times go back from a line on, if by more than threads explain."""
        if after >= before or _apart_ms(after, before) <= CLOCK_SLACK_MS:
            return
        if len(self.steps_back) <= MOST_STEPS:
            marks = {name: len(times) for name, times in self.marks.items()}
            witnessed = {name: len(moments) for name, moments in self.witnessed.items()}
            self.steps_back.append(
                ClockStep(position, before, after, self.period, marks, witnessed)
            )
            self.period = None

    def goes_on(self, later: str) -> None:
        """Undo a step at the end if the next line's time shows that only the step's line is out of
        order.
        """
        step = self.steps_back[-1] if self.steps_back else None
        if step is None or step.position != self.edges.open:
            return
        if is_alone(step.before, step.after, "", later):
            self.steps_back.pop()
            self.period = joined_period(step.period, self.period)

    def pause(self, pause: Pause) -> None:
        """Keep a pause if it is one of the longest."""
        self.pauses.append(pause)
        if len(self.pauses) > MOST_PAUSES:
            self.pauses.remove(min(self.pauses, key=lambda p: p.after_ms - p.before_ms))

    def parts(self) -> "list[FileStats]":
        """Return the parts of a log between steps of its clock, each as a file; in order.

        The counts of lines are those of the first part. A log whose times do not go back, or go
        back too often for a clock, is a single part unless its clock was set forward.
        """
        parts = self._between_steps()
        for pause in self.pauses if self.set_forward else ():
            if pause.position in self.set_forward:
                at = max(n for n, part in enumerate(parts) if part.since <= pause.position)
                parts[at : at + 1] = self._cut(parts[at], pause)
        return parts

    def _cut(self, part: "FileStats", pause: Pause) -> "list[FileStats]":
        """Return the parts before and after a pause, each with its share of the facts."""
        shift_ms = self.shift_ms + (self.clock.known_at(pause.position, 0) if self.clock else 0)
        step, cut_ms = pause.after[:STEP_CHARACTERS], pause.after_ms
        before = replace(
            part,
            last_ms=None if part.last_ms is None else pause.before_ms + part.shift_ms,
            last_line=pause.before,
            ended_at=pause.before,
            steps={name: lines for name, lines in part.steps.items() if name < step},
            marks=_dated(part.marks, lambda ms: ms < cut_ms),
            witnessed=_witnessed(part.witnessed, lambda ms: ms < cut_ms),
        )
        moved_ms = shift_ms - part.shift_ms
        after = replace(
            FileStats(self.name, self.kind),
            first_ms=None if part.first_ms is None else pause.after_ms + shift_ms,
            last_ms=None if part.last_ms is None else part.last_ms + moved_ms,
            first_line_at=pause.after,
            last_line=part.last_line,
            begun_at=pause.after,
            ended_at=part.ended_at,
            steps={name: lines for name, lines in part.steps.items() if name >= step},
            marks=_dated(part.marks, lambda ms: ms >= cut_ms),
            witnessed=_witnessed(part.witnessed, lambda ms: ms >= cut_ms),
            gap_low=self.gap_low,
            gap_high=self.gap_high,
            local_heads=self.local_heads,
            shift_ms=shift_ms,
            since=pause.position,
        )
        return [before, after]

    def _between_steps(self) -> "list[FileStats]":
        """Return the parts between steps back."""
        steps = self.steps_back
        if not steps or len(steps) > MOST_STEPS:
            moved_ms = self.clock.known_at(0, 0) if self.clock else 0
            return [self if not moved_ms else self._moved(moved_ms)]
        begins = [self.begun_at, *(step.after for step in steps)]
        ends = [*(step.before for step in steps), self.ended_at]
        periods = [*(step.period for step in steps), self.period]
        since = [0, *(step.position for step in steps)]
        counts = [None, *((step.marks, step.witnessed) for step in steps), None]
        parts = []
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            low, high = begin[:STEP_CHARACTERS], end[:STEP_CHARACTERS]
            before, after = counts[number] or ({}, {}), counts[number + 1] or (None, None)
            moved_ms = self.clock.known_at(since[number], 0) if self.clock else 0
            first_ms, last_ms = periods[number] or (None, None)
            shift_ms = self.shift_ms + moved_ms
            part = replace(
                FileStats(self.name, self.kind) if number else self,
                first_ms=None if first_ms is None else first_ms + shift_ms,
                last_ms=None if last_ms is None else last_ms + shift_ms,
                first_line_at=begin,
                last_line=end,
                steps={step: n for step, n in self.steps.items() if low <= step <= high},
                marks=_between(self.marks, before[0], after[0]),
                witnessed=_between(self.witnessed, before[1], after[1]),
                gap_low=self.gap_low,
                gap_high=self.gap_high,
                local_heads=self.local_heads,
                shift_ms=shift_ms,
                steps_back=[],
                since=since[number],
            )
            parts.append(part)
        return parts

    def _moved(self, by_ms: int) -> "FileStats":
        first_ms, last_ms = (
            None if ms is None else ms + by_ms for ms in (self.first_ms, self.last_ms)
        )
        shift_ms = self.shift_ms + by_ms
        return replace(self, first_ms=first_ms, last_ms=last_ms, shift_ms=shift_ms)

    def mark(self, name: str, at_ms: int) -> None:
        """Record a moment that another host also logs."""
        if name in self.marks or len(self.marks) < MOST_MARKS:
            times = self.marks.setdefault(name, [])
            if len(times) < MOST_MARKS:
                times.append(at_ms)

    def witness(self, name: str, at_ms: int, value: int) -> None:
        """Keep a value that may date a document; a commit only if it differs from the last one."""
        kept = self.witnessed.get(name)
        if kept is None:
            if len(self.witnessed) < MOST_WITNESSES:
                self.witnessed[name] = [(at_ms, value)]
        elif len(kept) < MOST_WITNESSES and not (kept[-1][1] == value and name.startswith(COMMIT)):
            kept.append((at_ms, value))

    def members(self) -> Iterator[tuple[str, str]]:
        """Yield the group and client id of members shown by a file, or only the first ones of a
        log.
        """
        for name in self.witnessed:
            if name.startswith(MEMBER):
                group, _, client_id = name.removeprefix(MEMBER).partition(" ")
                yield group, client_id

    def groups(self) -> Iterator[str]:
        """Yield the groups that a log or store names, or only the first ones."""
        yield from (group for group, _ in self.members())
        for name in self.witnessed:
            if name.startswith(NAMED):
                yield name.removeprefix(NAMED)
            elif name.startswith(COMMIT):
                yield name.removeprefix(COMMIT).partition(" ")[0]

    def count_gap(self, gap_ms: int) -> None:
        """Count an epoch time that appears next to a local time."""
        self.gap_low = gap_ms if self.gap_low is None else min(gap_ms, self.gap_low)
        self.gap_high = gap_ms if self.gap_high is None else max(gap_ms, self.gap_high)

    def count_block(self, block: LogBlock, refused: Sequence[int]) -> None:
        """Count the lines of a log.

        Args:
            block: the lines after those already counted.
            refused: the lines with a refused part.
        """
        understood = block.understood(refused)
        self.lines += len(understood)
        in_traces = pc.fill_null_forward(understood)
        leading = in_traces.null_count
        if self.below is None:
            self.leading += leading
        else:
            self.understood += leading * self.below
        self.understood += pc.sum(in_traces).as_py() or 0
        if leading < len(understood):
            self.below = in_traces[-1].as_py()
        if not len(block.times):
            return
        span: dict[str, str] = pc.min_max(block.times).as_py()
        self.last_line = max(self.last_line, span["max"])
        self.first_line_at = min(self.first_line_at or span["min"], span["min"])
        self.local_heads |= pc.any(block.local).as_py()
        for step, lines in block.steps().items():
            self.steps[step] = self.steps.get(step, 0) + lines

    def take_back(self, understood: int, goes_on: bool) -> None:
        """Uncount a line that turned out to be refused, with its stack trace.

        Args:
            understood: the number of counted lines to uncount.
            goes_on: whether its trace may continue in the following lines.
        """
        self.understood -= understood
        if goes_on:
            self.below = False

    @property
    def refused_whole(self) -> str:
        """The code for which all lines of a log or dump were refused; empty unless there are
        several lines.

        Such a file has a single row in ``rejected`` instead of a row per line.
        """
        parsed = self.kind == collection.ADMIN or self.kind in LINE_PARSERS
        if not parsed or self.understood or len(self.codes) != 1 or self.rejected < 2:
            return ""
        return next(iter(self.codes))


Moment = TypeVar("Moment")


def _between(
    moments: Mapping[str, list[Moment]], since: Mapping[str, int], until: Mapping[str, int] | None
) -> dict[str, list[Moment]]:
    """Return the moments of each name from one count to another, or to the end if ``until`` is
    None.
    """
    cut = {
        name: of[since.get(name, 0) : len(of) if until is None else until.get(name, 0)]
        for name, of in moments.items()
    }
    return {name: of for name, of in cut.items() if of}


def _dated(marks: Mapping[str, list[int]], is_in: Callable[[int], bool]) -> dict[str, list[int]]:
    """Return the moments that lie within, and all marks of how late lines are, which are not
    moments.
    """
    dated = {n: of if n == LATE else [ms for ms in of if is_in(ms)] for n, of in marks.items()}
    return {name: of for name, of in dated.items() if of}


def _witnessed(
    witnessed: Mapping[str, list[tuple[int, int]]], is_in: Callable[[int], bool]
) -> dict[str, list[tuple[int, int]]]:
    dated = {name: [pair for pair in of if is_in(pair[0])] for name, of in witnessed.items()}
    return {name: of for name, of in dated.items() if of}


@dataclass
class FileReader:
    """Reads the lines of a log in order, or a document, and keeps counts.

    Attributes:
        file: the file.
        zone: the time zone of lines with local time.
        brokers: known broker names.
        group_names: names of groups in logs, with those under which they are read.
    """

    file: CollectedFile
    zone: str
    brokers: Collection[str]
    group_names: Mapping[str, str] = field(default_factory=dict)
    stats: FileStats = field(init=False)
    _clock: Clock | ClientClock = field(init=False)
    _unwrapper: Unwrapper | None = field(init=False)
    _channels: dict[tuple[str, str], str] = field(init=False, default_factory=dict)
    """Client id by group and channel."""
    _shown: Shown = field(init=False, default_factory=Shown)
    _begun: tuple[int, bool] = field(init=False, default=(0, False))
    """`LogBlock.trace` of the line whose fact continues after the lines read."""

    def __post_init__(self) -> None:
        self.stats = FileStats(self.file.name, self.file.kind)
        if self.file.kind == collection.CLIENT_LOG:
            self._clock = ClientClock(Clock(zones.zone_named(self.zone)), self.file.group)
        else:
            self._clock = ProxyClock() if self.file.kind == collection.PROXY_LOG else ServerClock()
        self._unwrapper = None
        if self.file.wrapping:
            zone = Clock(zones.zone_named(self.zone))
            words, of_client = WORDS[self.file.kind], self.file.kind == collection.CLIENT_LOG
            self._unwrapper = Unwrapper(
                self.file.wrapping, words, of_client, zone.second_ms, self.file.group
            )

    def read_lines(
        self, lines: pa.StringArray, before: int, start: int = 0
    ) -> Iterator[Evidence | Unread]:
        """Read the statements of log lines; blank lines are not counted.

        A server on Windows, or a copy made there, ends lines with CR LF.

        Args:
            lines: consecutive lines of the file.
            before: the number of lines read before.
            start: the byte at which their split begins.

        Raises:
            Unreadable: a line belongs to another container than the earlier lines, which have been
                read.
        """
        name = self.file.name
        if self._unwrapper is None:
            own = pc.utf8_trim(lines, LINE_ENDS)

            def numbered(rows: Sequence[int]) -> Iterator[CarriedText]:
                for row, text in zip(
                    rows, own.take(pa.array(rows, pa.int64())).to_pylist(), strict=True
                ):
                    number = before + row + 1
                    source = f"{name}@{start}" if start else f"{name}:{number}"
                    yield text, text, source, start + number

            yield from self._read_own(own, numbered)
            return
        inner: list[CarriedText] = []
        try:
            for number, line in enumerate(lines.to_pylist(), before + 1):
                unwrapped = self._unwrapper.lines(line, f"{name}:{number}")
                inner += [(*carried, number) for carried in unwrapped]
        finally:
            yield from self._read_inner(inner)

    def read_rest(self, position: int) -> Iterator[Evidence | Unread]:
        """Read the lines that a carrier split and whose ends are not in the file."""
        rest = self._unwrapper.rest() if self._unwrapper else ()
        yield from self._read_inner([(*carried, position) for carried in rest])

    def _read_inner(self, inner: Sequence[CarriedText]) -> Iterator[Evidence | Unread]:
        """Read lines unwrapped from their carriers, where JSON may have left lone surrogates."""
        texts = pa.array(
            [text.encode("utf-8", "replace").decode() for text, *_ in inner], pa.string()
        )
        return self._read_own(texts, lambda rows: (inner[row] for row in rows))

    def _read_own(
        self, lines: pa.StringArray, lines_at: Callable[[Sequence[int]], Iterable[CarriedText]]
    ) -> Iterator[Evidence | Unread]:
        """Read lines with RocketMQ's head, whose text `lines_at` returns."""
        block, parser = LogBlock(lines, self.file.kind), LINE_PARSERS[self.file.kind]
        clock = self._clock
        of_proxy = clock if isinstance(clock, ProxyClock) else None
        if not self.stats.first_line and pc.any(block.written).as_py():
            (first,) = lines_at([pc.index(block.written, True).as_py()])
            self._note_first_line(first[1])
        rows = block.rows_to_read(clock.local.zone if isinstance(clock, ClientClock) else None)
        refused: list[int] = []
        begun: int | None = None  # the last line of this block whose fact continued
        steps = list(self._steps_back(block, lines_at))
        for row, (text, raw, source, position) in zip(rows, lines_at(rows), strict=True):
            while steps and steps[0][0] <= row:
                self.stats.step_back(*steps.pop(0)[1:])
            unfinished = of_proxy and of_proxy.unfinished
            results = parser(text, source, clock)
            if results or _runs_together(text):
                results = self._in_order(results, text, raw, source)
                for piece in results:
                    if not isinstance(piece, Unread):
                        continue
                    if not piece.earlier:
                        refused.append(row)
                    elif begun is not None:
                        refused.append(begun)
                    else:
                        self.stats.take_back(*self._begun)
                yield from self._addressed(results, position)
            if of_proxy and of_proxy.unfinished is not unfinished:
                begun = row
        for _, position, before, after in steps:
            self.stats.step_back(position, before, after)
        self.stats.count_block(block, refused)
        if of_proxy and of_proxy.unfinished is not None:
            self._note_begun(block, begun)

    def _note_begun(self, block: LogBlock, begun: int | None) -> None:
        """Record the counts of a line whose fact continues; `begun` is the last such line here."""
        understood, goes_on = self._begun
        if begun is not None:
            self._begun = block.trace(begun)
        elif goes_on:
            more, goes_on = block.trace(None)
            self._begun = understood + more, goes_on

    def _steps_back(
        self, block: LogBlock, lines_at: Callable[[Sequence[int]], Iterable[CarriedText]]
    ) -> Iterator[tuple[int, int, str, str]]:
        """Yield the line before which times go back, its position, and the times around that.

        Times in different zones, which the lines of a client's log may have, are not compared, nor
        are those in an hour that the zone repeats.
        """
        times, count = block.times, len(block.times)
        if not count:
            return
        first, last, edges = times[0].as_py(), self.stats.ended_at, self.stats.edges
        self.stats.goes_on(first)
        self.stats.edges = _edges_after(edges, last, block)
        self.stats.begun_at = self.stats.begun_at or first
        self.stats.ended_at = times[count - 1].as_py()
        if self.file.kind in collection.COMPARED_LOGS:
            self._note_pauses(block, last, edges, lines_at)
        falls = pc.indices_nonzero(pc.less(times.slice(1), times.slice(0, count - 1)))
        backs = [(last, 0)] if first < last else []
        backs += [(times[at].as_py(), at + 1) for at in falls.to_pylist()]
        if not backs or len(self.stats.steps_back) > MOST_STEPS:
            return
        heads, of_client = pc.indices_nonzero(block.headed), isinstance(self._clock, ClientClock)
        zoned = self._clock.local.zone if isinstance(self._clock, ClientClock) else None
        for before, at in backs:
            after = times[at].as_py()
            local_before = block.local[at - 1].as_py() if at else edges.last_local
            mixed = of_client and block.local[at].as_py() != local_before
            hours = {text[:HOUR_CHARACTERS] for text in (before, after)}
            earlier = times[at - 2].as_py() if at > 1 else last if at else edges.last_but_one
            later = times[at + 1].as_py() if at + 1 < count else ""
            if is_alone(before, after, earlier, later):
                continue
            if mixed or (zoned and any(zones.is_repeated(hour, zoned) for hour in hours)):
                continue
            row = heads[at].as_py()
            for *_, number in lines_at([row]):
                position = number + (self.file.turn << FILE_BITS)
                if not earlier:
                    self.stats.edges = self.stats.edges._replace(early=position)
                if not later:
                    self.stats.edges = self.stats.edges._replace(open=position)
                yield row, position, before, after

    def _note_pauses(
        self,
        block: LogBlock,
        last: str,
        edges: Edges,
        lines_at: Callable[[Sequence[int]], Iterable[CarriedText]],
    ) -> None:
        """Record times without a line; ``last`` and ``edges`` describe the lines before."""
        times = block.times
        tens = pc.utf8_slice_codeunits(times, 0, STEP_CHARACTERS)
        later = pc.greater(tens.slice(1), tens.slice(0, len(tens) - 1))
        begins = pc.indices_nonzero(later)
        behind = pc.add(begins, 1)
        befores, afters = times.take(begins).to_pylist(), times.take(behind).to_pylist()
        ends = behind.to_pylist()
        if last:
            ends, befores, afters = [0, *ends], [last, *befores], [times[0].as_py(), *afters]
        heads = None
        for at, before, after in zip(ends, befores, afters, strict=True):
            if _apart_ms(before, after) < LEAST_PAUSE_MS:
                continue
            zone: tzinfo = log_lines.SERVER_ZONE
            if isinstance(self._clock, ClientClock):
                local_before = block.local[at - 1].as_py() if at else edges.last_local
                if block.local[at].as_py() != local_before:
                    continue
                zone = self._clock.local.zone if block.local[at].as_py() else zone
            before_ms, after_ms = (Clock(zone).second_ms(text) for text in (before, after))
            if before_ms is None or after_ms is None:
                continue
            heads = pc.indices_nonzero(block.headed) if heads is None else heads
            for *_, number in lines_at([heads[at].as_py()]):
                position = number + (self.file.turn << FILE_BITS)
                self.stats.pause(Pause(position, before, after, before_ms, after_ms))

    def _in_order(
        self, results: tuple[Fact | Unread, ...], text: str, raw: str, source: str
    ) -> tuple[Fact | Unread, ...]:
        """Return a line's statement, or a refusal if it is broken; `raw` is the original line."""
        if raw != text:
            results = tuple(
                replace(piece, raw=storable(raw)) if _is_refusal(piece) else piece
                for piece in results
            )
        if self.file.kind == collection.CLIENT_LOG and text[
            log_lines.SECOND_CHARACTERS :
        ].startswith(log_lines.LOCAL_MARK):
            self.stats.local_times += 1
        if _runs_together(text):
            why = Unreadable(UNPARSABLE_LINE, "holds two lines that run together")
            return (unread(source, raw, why),)
        if (text.isprintable() and BROKEN not in text) or not BROKEN_TEXT.search(text):
            return results
        broken = Unreadable("BROKEN_TEXT", "holds control characters or is not UTF-8")
        return tuple(
            unread(source, raw, broken)
            if _is_refusal(piece) or (isinstance(piece, Stated) and _is_broken(piece.values))
            else piece
            for piece in results
        )

    def _note_first_line(self, text: str) -> None:
        """Record how the log begins."""
        self.stats.first_line = text[:FIRST_LINE_LIMIT]
        self.stats.looks_like = looks_like(text[:FIRST_LINE_LIMIT])

    def read_document(self, text: str) -> Iterator[Evidence | Unread]:
        """Read the facts in a store or dump, whose parser gives each fact its line."""
        name, parser = self.file.name, STORE_PARSERS.get(self.file.kind)
        zone: dict[str, tzinfo] = {}
        if parser is None:
            command = self.file.arguments[0]
            parser = ADMIN_PARSERS.get(command)
            if command in ZONED_COMMANDS:
                named_zone, at_ms = zones.zone_named(self.zone), self.file.written_ms
                read_at = (
                    named_zone if at_ms is None else ReadAt(named_zone, at_ms + LONGEST_COMMAND_MS)
                )
                zone = {"time_zone": read_at}
        if parser is None:
            why = Unreadable(
                UNKNOWN_COMMAND, "is the output of a command that ingest does not read"
            )
            results: list[Fact | Unread] = [unread(name, name, why)]
            yield from self._addressed(results, 0)
            yield from of_document(self.file, results, self.brokers)
            return
        of_admin = self.file.kind == collection.ADMIN
        answer = dashboard_answer(self.file.arguments[0], text, name) if of_admin else None
        results = parser(text, name, **zone) if answer is None else answer
        if of_admin and is_partial(results) and (wide := rejoined(text)) is not None:
            unwrapped = parser(wide, name, **zone)
            if not is_partial(unwrapped):
                results, text = unwrapped, wide
        if (answer or PROPERTIES in text) and self.file.arguments[0:1] == ("consumerStatus",):
            results = self._of_client(text, results)
        if of_admin:
            self._note_answer(text, results)
        self.stats.lines = len(results)
        self.stats.understood = sum(isinstance(piece, Stated) for piece in results)
        first = next((piece.raw for piece in results if isinstance(piece, Unread)), "")
        self.stats.first_line = first.strip().partition("\n")[0][:FIRST_LINE_LIMIT]
        refused = [p for p in results if isinstance(p, Unread) and p.code != STRAY_LINE]
        cut = [piece for piece in refused if piece.code == UNPARSABLE_DOCUMENT]
        for decisive in (cut or refused)[:1]:
            self.stats.partial = decisive.message
            self.stats.codes = {decisive.code: 0, **self.stats.codes}
        if self.file.kind == collection.ADMIN:
            self.stats.looks_like = looks_like(text)
        yield from self._addressed(results, 0)
        yield from of_document(self.file, results, self.brokers)
        yield from copied_store(self.file, results, text)
        yield from printed_stores(self.file, results, self.brokers)

    def _note_answer(self, text: str, results: list[Fact | Unread]) -> None:
        """Record a list of members, or a client's answer with the time of its last pull or pop."""
        active_ms = 0
        for fact in answers(results):
            if fact.kind == "client_queue":
                active_ms = max(fact.values["last_pull_ms"], active_ms)
            elif fact.kind == "client_pop_queue":
                active_ms = max(fact.values["last_pop_ms"], active_ms)
        if active_ms or self.file.arguments[:1] == (collection.MEMBERS,):
            digest = sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()
            self.stats.witness(f"{ANSWER}{digest}", active_ms, 0)

    def _of_client(self, text: str, results: list[Fact | Unread]) -> list[Fact | Unread]:
        """Return running info if its text, or otherwise the file's name, identifies the client."""
        command, group, *named = self.file.arguments
        client_id = client_of_output(text, results)
        if client_id is not None and (
            not named or "@" not in named[0] or may_be(named[0], client_id)
        ):
            self.file = replace(self.file, arguments=(command, group, client_id))
            return results
        if named and "@" in named[0]:
            return results
        why = (
            "is a client's own description but does not name the client: name the file after the "
            f"client, mqadmin/{self.file.written_ms}-{command}-{group}/<client id>.txt"
        )
        return [unread(self.file.name, self.file.name, Unreadable(WRONG_FILE, why))]

    def refuse(self, refusal: Unreadable) -> Unread:
        """Record that the file could not be read, as a whole or from this point on."""
        piece = unread(self.file.name, self.file.name, refusal)
        self.stats.unreadable = refusal.code
        self._note_refusal(piece)
        return piece

    def _addressed(
        self, results: Collection[Fact | Unread], position: int
    ) -> Iterator[Evidence | Unread]:
        position += self.file.turn << FILE_BITS
        is_log = self.file.is_log
        for number, piece in enumerate(results):
            if isinstance(piece, Unread):
                self._note_refusal(piece)
                yield piece
                continue
            if is_log and self.group_names:
                piece = replace(piece, values=renamed(piece.values, self.group_names))
            if is_dating(piece):
                if is_log:
                    self._note_mark(piece)
                else:
                    self._note_subject(piece)
                self._note_members(piece)
                self._note_groups(piece)
                self._note_numbers(piece)
                self._note_gap(piece)
            self.stats.facts += 1
            if is_log and piece.at_ms is not None and _begins_period(piece.kind):
                self._note_time(piece.at_ms)
            yield from evidence_of(self.file, piece, position + number, self.brokers, self._shown)

    def _note_refusal(self, piece: Unread) -> None:
        stats = self.stats
        stats.rejected += 1
        stats.codes[piece.code] = stats.codes.get(piece.code, 0) + 1
        stats.why = stats.why or piece.message

    def _note_gap(self, fact: "DatingFact") -> None:
        """Record a fact that shows whether the file's local times are right."""
        at_ms = fact.at_ms
        epoch_ms: int | None
        if fact.kind == "client_queue" and self.file.written_ms and fact.values["last_pull_ms"]:
            epoch_ms, at_ms = self.file.written_ms, fact.values["last_pull_ms"]
        elif fact.kind == "heartbeat" and fact.values["versions"]:
            epoch_ms = max(fact.values["versions"].values())
        elif fact.kind == "consumer_connected":
            epoch_ms = fact.values["beat_ms"]
        else:
            return
        if at_ms is not None and epoch_ms is not None:
            self.stats.count_gap(epoch_ms - at_ms)

    def _note_members(self, fact: "DatingFact") -> None:
        """Record when members join and leave in a log, or which members a dump lists."""
        at_ms = fact.at_ms or 0
        if fact.kind == "consumer_connected" and self.file.kind == collection.BROKER_LOG:
            joined = fact.values
            self._channels[joined["group"], joined["channel"]] = joined["client_id"]
            self.stats.witness(f"{MEMBER}{joined['group']} {joined['client_id']}", at_ms, 1)
        elif fact.kind in ("consumer_left", "consumer_closed", "consumer_expired"):
            group, channel = fact.values["group"], fact.values["channel"]
            client_id = fact.values.get("client_id") or self._channels.get((group, channel))
            if client_id is not None:
                self.stats.witness(f"{MEMBER}{group} {client_id}", at_ms, -1)
        elif fact.kind == "member":
            group, broker = self._asked(fact.values["subscriptions"])
            self.stats.witness(f"{MEMBER}{group} {fact.values['client_id']}", 0, 1)
            for topic, _ in fact.values["subscriptions"]:
                self.stats.witness(f"{SUBSCRIBED}{topic}", 0, 1)
                if broker or self.file.place:
                    self._note_group_of(topic, group)
        elif fact.kind == "group_connection":
            group, broker = self._asked(fact.values["subscriptions"])
            if broker:
                self.stats.witness(f"{LIST}{group} {broker}", 0, 1)

    def _note_groups(self, fact: "DatingFact") -> None:
        """Record which groups a log creates, deletes or has members of, or which a store has."""
        at_ms = fact.at_ms or 0
        if fact.kind in ("consumer_connected", "group_created", "group_deleted"):
            change = {"group_created": 1, "group_deleted": -1}.get(fact.kind, 0)
            if change or self.file.kind == collection.PROXY_LOG:
                self.stats.witness(f"{NAMED}{fact.values['group']}", at_ms, change)
        elif fact.kind == "subscription_group" and self.file.kind == collection.GROUPS:
            self.stats.witness(f"{NAMED}{fact.values['consumer_group']}", at_ms, 1)

    def _note_subject(self, fact: "DatingFact") -> None:
        """Record the group and client stated by an mqadmin answer."""
        if fact.kind == "client":
            client = fact.values
            if client["consumer_group"]:
                asked = self.file.arguments[1]
                self.stats.witness(f"{OF_GROUP}{asked} {client['consumer_group']}", 0, 1)
            if client["client_ip"] and client["instance_name"]:
                stated = f"{client['client_ip']}@{client['instance_name']}"
                self.stats.witness(f"{OF_CLIENT}{stated}", 0, 1)
        elif fact.kind == "no_members" and "offline_group" in fact.values:
            asked, broker = self._asked(())
            if broker:
                self.stats.witness(f"{OF_GROUP}{asked} {fact.values['offline_group']}", 0, 1)

    def _note_group_of(self, topic: str, asked_group: str) -> None:
        """Record the group of a retry topic in a dump that is named after a group."""
        if is_retry_topic(topic):
            stated = topic.removeprefix(RETRY_TOPIC_PREFIX)
            self.stats.witness(f"{OF_GROUP}{asked_group} {stated}", 0, 1)

    def _note_numbers(self, fact: "DatingFact") -> None:
        """Record offsets, topics' queues and versions, which date the copy of a store."""
        at_ms = fact.at_ms or 0
        if fact.kind == "committed" and fact.values["offset"] >= 0:
            v = fact.values
            queue = v["topic"], v["broker"], v["queue_id"]
            self._note_commit(v["group"], *queue, at_ms, v["offset"])
        elif fact.kind == "committed_offset" and self.file.kind == collection.OFFSETS:
            stored = fact.values
            queue = stored["topic"], self.file.place, stored["queue_id"]
            self._note_commit(stored["consumer_group"], *queue, 0, stored["committed_offset"])
        elif fact.kind == "queue_progress" and not fact.values["topic_truncated"]:
            row = fact.values
            group = group_of_rows(self.file.arguments[1], row["with_clients"], row["topic"])
            queue = row["topic"], row["broker_name"], row["queue_id"]
            self._note_group_of(row["topic"], group)
            self._note_commit(group, *queue, 0, row["consumer_offset"])
            self._note_end(*queue, row["broker_offset"])
        elif fact.kind == "queue_offsets" and not fact.values["broker_name_truncated"]:
            status, topic = fact.values, self.file.arguments[1]
            queue = topic, status["broker_name"], status["queue_id"]
            self._note_end(*queue, status["max_offset"], status["last_updated_ms"] or 0)
        elif fact.kind == "broker":
            self.stats.witness(f"{LISTED}{fact.values['broker_name']}", 0, 1)
        elif fact.kind == "route_queues":
            route = fact.values
            queues = max(route["read_queue_nums"], route["write_queue_nums"])
            self.stats.witness(f"{ROUTED}{route['broker_name']}", 0, queues)
        elif fact.kind == "topic_config":
            self._note_queues(fact.values["topic"], fact.values["read_queue_nums"], 0, 1)
        elif fact.kind == "topic_updated":
            topic, was, now = fact.values["topic"], fact.values["old"]["read"], fact.values["read"]
            if was != now:
                self._note_queues(topic, was, at_ms, -1)
                self._note_queues(topic, now, at_ms, 1)
        elif fact.kind == "data_version" and fact.values["timestamp_ms"]:
            self.stats.witness(VERSION, fact.values["timestamp_ms"], 0)

    def _note_queues(self, topic: str, queues: int, at_ms: int, change: int) -> None:
        self.stats.witness(f"{QUEUES}{topic} {queues}", at_ms, change)

    def _note_end(
        self, topic: str, broker: str, queue_id: int, offset: int, since_ms: int = 0
    ) -> None:
        self.stats.witness(f"{END}{topic} {queue_id} {broker}", since_ms, offset)

    def _note_commit(
        self, group: str, topic: str, broker: str, queue_id: int, at_ms: int, offset: int
    ) -> None:
        self.stats.witness(f"{COMMIT}{group} {topic} {queue_id} {broker}", at_ms, offset)

    def _asked(self, subscriptions: Iterable[tuple[str, str]]) -> tuple[str, str]:
        """Return the group and broker of a list of members."""
        if self.file.place:
            return self.file.arguments[1], ""
        return asked(self.file.arguments[1], subscriptions, self.brokers)

    def _note_mark(self, fact: "DatingFact") -> None:
        """Record a moment that both a broker and a client or name server log."""
        if fact.at_ms is None or self.file.kind not in (
            collection.BROKER_LOG,
            collection.CLIENT_LOG,
            collection.NAMESRV_LOG,
        ):
            return
        if fact.kind == "notified":
            self.stats.mark(f"{CHANGED} {fact.values['address']}", fact.at_ms)
        elif fact.kind == "consumer_closed":
            self.stats.mark(f"{CLOSED}{fact.values['client_id']}", fact.at_ms)
        elif fact.kind == "committed" and fact.values["client_id"]:
            if f"{SEEN}{fact.values['client_id']}" not in self.stats.marks:
                self.stats.mark(f"{SEEN}{fact.values['client_id']}", fact.at_ms)
        elif fact.kind == "client_created":
            self.stats.mark(f"{BEGUN}{fact.values['client_id']}", fact.at_ms)
        elif fact.kind == "heartbeat":
            self.stats.mark(f"{JOIN}{fact.values['client_id']}", fact.at_ms)
        elif fact.kind == "consumer_connected" and fact.values["beat_ms"]:
            self.stats.mark(f"{JOIN}{fact.values['client_id']}", fact.values["beat_ms"])
            self.stats.mark(CHANGED, fact.values["beat_ms"])
            if f"{AT}{fact.values.get('local')}" not in self.stats.marks:
                self.stats.mark(f"{AT}{fact.values.get('local')}", fact.values["beat_ms"])
            self.stats.mark(LATE, fact.at_ms - fact.values["beat_ms"])
        elif fact.kind in ("broker_booted", "broker_registered"):
            self.stats.mark(f"{UP}{fact.values['address']}", fact.at_ms)

    def _note_time(self, at_ms: int) -> None:
        stats = self.stats
        if stats.first_ms is None or stats.last_ms is None:
            stats.first_ms = stats.last_ms = at_ms
        elif at_ms > stats.last_ms:
            stats.last_ms = at_ms
        else:
            if at_ms < stats.last_ms - CLOCK_SLACK_MS:
                stats.jumps_back += 1
                stats.worst_jump_ms = max(stats.worst_jump_ms, stats.last_ms - at_ms)
            stats.first_ms = min(stats.first_ms, at_ms)
        first_ms, last_ms = stats.period or (at_ms, at_ms)
        stats.period = min(first_ms, at_ms), max(last_ms, at_ms)


def _is_refusal(piece: Fact | Unread) -> TypeGuard[Unread]:
    """Return True for a refusal of the line just read rather than an earlier one."""
    return isinstance(piece, Unread) and not piece.earlier


FREE_TEXT = ("message",)
"""Values that a logger in another charset may have written."""


def _is_broken(value: object) -> bool:
    """Return True if a name or number in a line contains broken characters."""
    if isinstance(value, str):
        return bool(BROKEN_TEXT.search(value))
    if isinstance(value, Mapping):
        kept = {name: part for name, part in value.items() if name not in FREE_TEXT}
        return any(_is_broken(part) for part in (*kept, *kept.values()))
    return isinstance(value, list | tuple | set | frozenset) and any(map(_is_broken, value))


def _runs_together(text: str) -> bool:
    """Return True if a second line begins within the line; nearly all have their year once."""
    return text.find(text[:5], SHORTEST_LINE) >= 0 and bool(_GLUED.search(text, SHORTEST_LINE))


def _begins_period(kind: str) -> bool:
    """Return True for a line from which its log has coverage; settings do not count.

    Name servers and brokers print them seconds before they serve any client.
    """
    return kind not in SETTINGS and not is_fact_only(kind)
