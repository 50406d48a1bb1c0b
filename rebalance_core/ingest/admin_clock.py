"""The clocks of the machines that make dumps and copy stores.

The names of their files contain these clocks' times, which only the contents can confirm: members
and commits dated by logs, and clients' recent pulls. Each of these allows a range of offsets; the
clock is off if most of them exclude an offset of zero and agree on another.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from rebalance_core.ingest.broker_folders import BrokerFolder
from rebalance_core.ingest.clock_zones import PULLED_MS, nearest_zone
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    STORE_KINDS,
    CollectedFile,
)
from rebalance_core.ingest.file_reader import (
    COMMIT,
    END,
    LIST,
    MEMBER,
    QUEUES,
    UP,
    VERSION,
    FileStats,
)
from rebalance_core.ingest.log_parts import Host, LogPart, log_parts
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.times import (
    HOUR_MS,
    MINUTE_MS,
    OFFSET_FLUSH_MS,
    OFFSET_PERSIST_MS,
    SECOND_MS,
)

NEVER_MS, EVER_MS = -(1 << 62), 1 << 62
LINE_MS = 2 * SECOND_MS
"""Servers log whole seconds, and brokers learn of a change one after another."""
ANSWERED_MS = 10 * SECOND_MS
"""The maximum time from the start of the command, which dates the dump, to the arrival of the
answer.
"""
SENT_MS = OFFSET_PERSIST_MS + SECOND_MS
"""Pulls also carry commits, before the client logs these."""
WAITED_MS = 20 * SECOND_MS
"""The broker holds a pull without messages for at most 15 s, and the next pull follows."""
MOST_WIDE_MS = MINUTE_MS
"""If the possible corrections span more than this, their midpoint would be too far off, so the
smallest is used.
"""
MOST_OFF_MS = 14 * HOUR_MS
"""A clock can be off by at most a wrong time zone; files from another day are old, whatever their
contents.
"""
STRAY = 100
"""One statement in this many may be wrong: a broker that is stopping answers later than others."""
LEAST = 2
"""The minimum number of statements that must contradict a clock before it counts as wrong."""
CLEARLY = 4
"""A different offset is accepted only if this many times fewer statements contradict it."""

Spans = list[tuple[int, int]]
"""Times or clock offsets that a statement allows, disjoint and in order."""
_Statement: TypeAlias = tuple[str, Spans]
"""The document that makes a statement, and the clock offsets that it allows."""
DUMPS, STORES = "dumps", "stores"


@dataclass(frozen=True, slots=True)
class ClockOff:
    """The error, or possible error, of the clock of a machine whose time is in files' names.

    Attributes:
        behind_ms: how far it is behind the others, which is the correction to its times.
        error_ms: the possible error of a corrected time; None if the files agree on no offset, so
            that no time is corrected.
        compared: whether other files date anything that these files show.
        contradicted_by: the only file that contradicts the clock, if it may be old instead.
    """

    behind_ms: int
    error_ms: int | None
    compared: bool = True
    contradicted_by: str = ""

    @property
    def off_by_ms(self) -> int:
        """Return how far off a time in its file names may be; 0 for a clock that was not
        compared.
        """
        if self.error_ms is not None:
            return self.error_ms
        return MOST_OFF_MS if self.compared else 0


@dataclass(frozen=True)
class LogClocks:
    """Clock corrections for logs.

    Attributes:
        heads: corrections to the times of log lines, by file.
        beats: corrections to the times that a broker prints within its lines, by file.
        clients: how far clients' clocks are behind, by client id.
        unsure: hosts whose clocks differ without evidence of which one is right.
        folders: the owner of the files in each broker folder.
    """

    heads: Mapping[str, Timeline[int]]
    beats: Mapping[str, Timeline[int]]
    clients: Mapping[str, int]
    unsure: frozenset[Host]
    folders: Mapping[str, BrokerFolder] = field(default_factory=dict)


@dataclass
class _Timelines:
    """Members, queue numbers and commits in the logs, by broker."""

    members: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    periods: dict[str, tuple[int, int]] = field(default_factory=dict)
    starts: dict[str, list[int]] = field(default_factory=dict)
    beats: dict[str, set[int]] = field(default_factory=dict)
    """How far each broker's clock is behind at any time; uncertain clocks are omitted."""
    commits: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def clocks_off(
    files: Iterable[CollectedFile],
    stats: Iterable[FileStats],
    clocks: LogClocks,
) -> dict[str, ClockOff]:
    """Return the clocks that are off or not compared: of `DUMPS`, of `STORES`, or of both.

    Args:
        files: the collection's files.
        stats: the stats of each file, with wrong time zones corrected.
        clocks: the clocks of the hosts with logs.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    files = list(files)
    lines = _timelines(files, counted, clocks)
    dumps = [f for f in files if f.kind == ADMIN and f.written_ms is not None]
    stores = [f for f in files if f.kind in STORE_KINDS and f.written_ms is not None]
    allowed = {
        DUMPS: [
            *_of_lists(dumps, counted, lines, clocks.folders),
            *_of_commits(dumps, counted, lines),
            *_of_ends(dumps, counted, lines),
        ],
        STORES: [*_of_commits(stores, counted, lines, clocks.folders)],
    }
    allowed[STORES] += _of_versions(stores, counted, lines)
    allowed[STORES] += _of_queues(stores, counted, lines, clocks.folders)
    pulls, exact = _of_pulls(dumps, counted, clocks.clients)
    allowed[DUMPS] += pulls
    dumped = _difference(allowed[DUMPS], exact)
    copied = _difference(allowed[STORES], ())
    if (
        dumped is not None
        and dumped.error_ms is not None
        and not dumped.contradicted_by
        and (copied is None or copied.error_ms)
    ):
        as_dumped, alone = (
            sum(not _allows(spans, ms) for _, spans in allowed[STORES])
            for ms in (dumped.behind_ms, 0)
        )
        if as_dumped < alone:
            copied = dumped
        elif as_dumped == alone and copied is None and stores:
            copied = ClockOff(0, abs(dumped.behind_ms) + dumped.error_ms)  # one machine may do both
    if dumps and not allowed[DUMPS]:
        dumped = ClockOff(0, None, compared=False)
    if stores and not allowed[STORES] and copied is None:
        copied = ClockOff(0, None, compared=False)
    by_kind = {DUMPS: dumped, STORES: copied}
    return {what: off for what, off in by_kind.items() if off is not None}


def _timelines(
    files: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    clocks: LogClocks,
) -> _Timelines:
    lines = _Timelines()
    for part in log_parts(files, counted):
        kind, place = part.file.kind, part.host.place
        if kind not in (BROKER_LOG, CLIENT_LOG) or part.host in clocks.unsure:
            continue
        stats, folder = part.stats, clocks.folders.get(place)
        broker = place if folder is None else folder.place
        head_ms = _added(clocks.heads, part)
        shift = stats.shift_ms + head_ms
        for witness, moments in stats.witnessed.items():
            moved = [(ms + shift, value) for ms, value in moments]
            if witness.startswith((MEMBER, QUEUES)):
                lines.members.setdefault((broker, witness), []).extend(moved)
            else:
                lines.commits.setdefault(witness, []).extend(moved)
        if kind != BROKER_LOG:
            continue
        lines.beats.setdefault(place, set()).add(_added(clocks.beats, part))
        ups = (ms for mark, times in stats.marks.items() if mark.startswith(UP) for ms in times)
        lines.starts.setdefault(broker, []).extend(ms + shift for ms in ups)
        if stats.first_ms is not None and stats.last_ms is not None:
            # its times already match the zone, but not its clock
            first, last = stats.first_ms + head_ms, stats.last_ms + head_ms
            if folder is not None and folder.turns:
                first = max(first, folder.turns[-1][0])  # slaves are not queried for lists
            period = lines.periods.get(broker, (first, last))
            lines.periods[broker] = (min(first, period[0]), max(last, period[1]))
    for moments in (*lines.members.values(), *lines.commits.values()):
        moments.sort()
    return lines


def _added(clocks: Mapping[str, Timeline[int]], part: LogPart) -> int:
    clock = clocks.get(part.file.name)
    return clock.known_at(part.since, 0) if clock else 0


def _of_lists(
    dumps: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    lines: _Timelines,
    folders: Mapping[str, BrokerFolder],
) -> Iterator[_Statement]:
    """Yield the times allowed by member lists, at which the broker's log has exactly the listed
    members.

    Before the log begins and after it ends, any member may have been present. A queried slave has
    its own list.
    """
    by_group: dict[tuple[str, str], list[str]] = {}
    for place, name in (witness for witness in lines.members if witness[1].startswith(MEMBER)):
        by_group.setdefault((place, name.split(" ")[1]), []).append(name)
    for file in dumps:
        shown, at_ms = counted[file.name].witnessed, file.written_ms or 0
        for listed in [name for name in shown if name.startswith(LIST)]:
            _, group, asked = listed.split(" ")
            broker = folders[asked].place if asked in folders else asked
            begin, end = lines.periods.get(broker, (0, 0))
            for name in by_group.get((broker, group), ()):
                there = _presence(lines.members[broker, name], lines.starts.get(broker, ()))
                spans = _within(there if name in shown else _others(there), begin, end)
                apart = _differences(spans, at_ms, LINE_MS, LINE_MS + ANSWERED_MS)
                yield file.name, apart


def _within(spans: Spans, begin: int, end: int) -> Spans:
    """Return the times that a log allows from its start to its end, and all times outside."""
    clipped = ((max(low, begin), min(high, end)) for low, high in spans)
    return [(NEVER_MS, begin), *(span for span in clipped if span[0] <= span[1]), (end, EVER_MS)]


def _presence(changes: list[tuple[int, int]], starts: Iterable[int]) -> Spans:
    """Return when the member was present, given (time, 1 or -1) for each of its connections.

    A broker that starts has no connections.
    """
    count = -min(0, changes[0][1])
    spans, since = [], NEVER_MS
    for at_ms, change in sorted([*changes, *((ms, NEVER_MS) for ms in starts)]):
        before, count = count, max(0, count + change)
        if before and not count:
            spans.append((since, at_ms))
        elif count and not before:
            since = at_ms
    return [*spans, (since, EVER_MS)] if count else spans


def _others(spans: Spans) -> Spans:
    """Return all times outside the spans."""
    ends = [NEVER_MS, *(ms for span in spans for ms in span), EVER_MS]
    return [(low, high) for low, high in list(pairwise(ends))[::2] if low < high]


def _of_commits(
    documents: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    lines: _Timelines,
    folders: Mapping[str, BrokerFolder] | None = None,
) -> Iterator[_Statement]:
    """Yield the times allowed by committed offsets: after the previous commit and before the next.

    A commit in a pull by a client that was then killed may be logged much later. A slave's offsets
    are older than its copy.
    """
    for file in documents:
        at_ms = file.written_ms or 0
        late_ms = ANSWERED_MS if file.kind == ADMIN else OFFSET_FLUSH_MS + ANSWERED_MS
        folder = folders.get(file.place) if folders else None
        if folder is not None and not folder.is_authoritative(at_ms):
            continue
        for name, shown in counted[file.name].witnessed.items():
            if folder is not None:
                name = name.removesuffix(file.place) + folder.broker_name
            commits = lines.commits.get(name, ())
            offsets = [offset for _, offset in commits]
            if not name.startswith(COMMIT) or len(set(offsets)) < 2 or offsets != sorted(offsets):
                continue  # it may be another process's commit, or a constant one
            for _, offset in shown:
                reached, passed = bisect_left(offsets, offset), bisect_right(offsets, offset)
                low = commits[reached - 1][0] if reached else NEVER_MS
                high = commits[passed][0] if passed < len(commits) else EVER_MS
                yield file.name, _differences([(low, high)], at_ms, SENT_MS, late_ms)


def _of_ends(
    dumps: Iterable[CollectedFile], counted: Mapping[str, FileStats], lines: _Timelines
) -> Iterator[_Statement]:
    """Yield the times allowed by ends of queues: not after a group's first commit above the end.

    A commit that has always been above an end is a fault of the group. Ends fall when a broker
    loses part of its store or a topic is recreated; a broker for which a dump shows a commit above
    the end next to it proves nothing, nor do commits from more than `MOST_WIDE_MS` before.
    """
    dumps = list(dumps)
    fallen = {broker for file in dumps for broker in _brokers_above_end(counted[file.name])}
    by_queue: dict[str, list[tuple[list[int], list[int]]]] = {}
    for name, commits in lines.commits.items():
        queue = name.removeprefix(COMMIT).partition(" ")[2]
        times, offsets = map(list, zip(*commits, strict=True))
        if queue.rpartition(" ")[2] not in fallen and offsets == sorted(offsets):
            by_queue.setdefault(queue, []).append((offsets, times))
    for file in dumps:
        at_ms = file.written_ms or 0
        for name, shown in counted[file.name].witnessed.items():
            if not name.startswith(END):
                continue
            (_, end), *_ = shown
            above = [
                times[place]
                for offsets, times in by_queue.get(name.removeprefix(END), ())
                if 0 < (place := bisect_right(offsets, end)) < len(offsets)
            ]
            first_ms = min(above, default=NEVER_MS)
            if first_ms + MOST_WIDE_MS >= at_ms:
                yield file.name, _differences([(NEVER_MS, first_ms)], at_ms, 0, SECOND_MS)


def _brokers_above_end(shown: FileStats) -> Iterator[str]:
    """Yield the brokers of queues that have a commit above their end in the same answer."""
    for name, ((_, offset), *_) in shown.witnessed.items():
        if name.startswith(COMMIT):
            queue = name.removeprefix(COMMIT).partition(" ")[2]
            ((_, end), *_) = shown.witnessed.get(f"{END}{queue}", [(0, offset)])
            if offset > end:
                yield queue.rpartition(" ")[2]


def _of_queues(
    stores: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    lines: _Timelines,
    folders: Mapping[str, BrokerFolder],
) -> Iterator[_Statement]:
    """Yield the times allowed by stores' queue numbers: the topic had that many by the broker's own
    log.
    """
    for file in stores:
        broker = folders[file.place].place if file.place in folders else file.place
        for name in counted[file.name].witnessed:
            changes = lines.members.get((broker, name)) if name.startswith(QUEUES) else None
            if changes:
                spans = _within(_presence(changes, ()), *lines.periods.get(broker, (0, 0)))
                at_ms = file.written_ms or 0
                apart = _differences(spans, at_ms, LINE_MS, LINE_MS + ANSWERED_MS)
                yield file.name, apart


def _of_versions(
    stores: Iterable[CollectedFile], counted: Mapping[str, FileStats], lines: _Timelines
) -> Iterator[_Statement]:
    """Yield the times allowed by the last changes in stores, which a copy cannot predate."""
    for file in stores:
        behind = lines.beats.get(file.place)
        for changed_ms, _ in counted[file.name].witnessed.get(VERSION, ()):
            if behind:
                changed = [(changed_ms + min(behind), EVER_MS)]
                yield file.name, _differences(changed, file.written_ms or 0, LINE_MS, 0)


def _of_pulls(
    dumps: Iterable[CollectedFile], counted: Mapping[str, FileStats], clients: Mapping[str, int]
) -> tuple[list[_Statement], list[int]]:
    """Return the times allowed by clients' last pulls, and the offset if the pulls were just then.

    A running client has pulled in the last 30 s, whatever happens to its messages; of several in
    one dump, none has pulled after it except those queried later. Offsets of whole zones belong to
    the local times.
    """
    gaps: dict[tuple[int, str], list[int]] = {}
    for file in dumps:
        gap = counted[file.name].gap_low
        if file.arguments[0] == "consumerStatus" and gap is not None:
            gap -= clients.get(file.arguments[2] if len(file.arguments) > 2 else "", 0)
            gaps.setdefault((file.written_ms or 0, file.arguments[1]), []).append(gap)
    allowed, exact = [], []
    for (at_ms, group), of_dump in gaps.items():
        for gap in of_dump:
            zone = nearest_zone(gap - PULLED_MS // 2, PULLED_MS)
            spans = {(-max(of_dump) + z - ANSWERED_MS, -gap + z + PULLED_MS) for z in (0, zone)}
            allowed.append((f"mqadmin/{at_ms}-consumerStatus-{group}", sorted(spans)))
            exact.append(-gap)
    return allowed, exact


def _differences(times: Spans, at_ms: int, early_ms: int, late_ms: int) -> Spans:
    """Return the range of clock offsets that explain one of the times."""
    apart = [
        (
            NEVER_MS if low == NEVER_MS else low - at_ms - early_ms,
            EVER_MS if high == EVER_MS else high - at_ms + late_ms,
        )
        for low, high in times
    ]
    joined: Spans = []
    for low, high in sorted(apart):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _difference(stated: Iterable[_Statement], exact: Iterable[int]) -> ClockOff | None:
    """Return how far a clock is off; no correction if only one of several documents contradicts the
    clock, which may be right then, and the document old.
    """
    stated = list(stated)
    clock = _usual_difference([spans for _, spans in stated], exact)
    excluding = {source for source, spans in stated if not _allows(spans, 0)}
    alone = len(excluding) == 1 < len({source for source, _ in stated})
    if clock is None or clock.error_ms is None or not alone:
        return clock
    error_ms = abs(clock.behind_ms) + clock.error_ms
    return ClockOff(0, error_ms, contradicted_by=excluding.pop())


def _usual_difference(statements: Sequence[Spans], exact: Iterable[int]) -> ClockOff | None:
    """Return the difference allowed by nearly all statements, if too many exclude 0."""
    without = sum(not _allows(spans, 0) for spans in statements)
    if without < LEAST:
        return None
    lows = sorted(low for spans in statements for low, _ in spans)
    highs = sorted(high for spans in statements for _, high in spans)
    ends = sorted({ms for ms in (*lows, *highs) if NEVER_MS < ms < EVER_MS})
    excluded = {
        end: len(statements) - bisect_right(lows, end) + bisect_left(highs, end) for end in ends
    }
    fewest = min(excluded.values(), default=without)
    if CLEARLY * fewest > without:
        return None if 2 * without < len(statements) else ClockOff(0, None)
    nearest = min((end for end in ends if excluded[end] == fewest), key=abs)
    most = fewest + len(statements) // STRAY

    def between(below: int, above: int) -> int:
        """Return, for each interval between neighbouring ends, the number of statements that
        exclude it.
        """
        return len(statements) - bisect_right(lows, below) + bisect_left(highs, above)

    edges = [NEVER_MS, *ends, EVER_MS]
    first = last = edges.index(nearest)
    while first and between(edges[first - 1], edges[first]) <= most:
        first -= 1
    while last + 1 < len(edges) and between(edges[last], edges[last + 1]) <= most:
        last += 1
    low, high = edges[first], edges[last]
    if abs(nearest) > MOST_OFF_MS or low == NEVER_MS:
        return None  # a copy older than its name may be one of an old export
    if high == EVER_MS:
        return ClockOff(0, None)  # they show later contents, but not how much later
    behind = (low + high) // 2 if high - low <= MOST_WIDE_MS else min(low, high, key=abs)
    pulled = [ms for ms in exact if low <= ms <= high]
    if pulled:
        # the newest pull was just before, and the oldest of any client shortly before
        just_then = (max(pulled) + max(max(pulled), min(pulled) + WAITED_MS)) // 2
        behind = just_then if just_then <= high else behind
    return ClockOff(behind, max(behind - low, high - behind))


def _allows(spans: Spans, difference_ms: int) -> bool:
    return any(low <= difference_ms <= high for low, high in spans)
