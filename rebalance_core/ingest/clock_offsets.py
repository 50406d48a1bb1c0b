"""Compares hosts' clocks by moments that both sides log.

A client visits the brokers one after the other when it joins and when it leaves: it reaches the
last of 16 brokers a second or more after the first, always by about the same delay. So a broker is
compared by moments of its own: its notice of a change, which names it in the client's log, appears
there milliseconds after the broker's line. If no log has notices, a difference is due to the clocks
only if the round of visits cannot take that long, or if the connections of killed clients, which
end at all brokers at once, differ by the same amount.

A clock that was set back has another offset from then on, so its log is compared part by part, and
the order of its own lines shows how far apart the parts are.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import NamedTuple

from rebalance_core.ingest.admin_clock import DUMPS, STORES, ClockOff
from rebalance_core.ingest.clock_zones import LOCAL_FIELDS, is_zone, nearest_zone
from rebalance_core.ingest.collection import (
    BROKER_LOG,
    CLIENT_LOG,
    NAMESRV_LOG,
    CollectedFile,
    Collection,
)
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.file_reader import (
    AT,
    BEGUN,
    CHANGED,
    CLOSED,
    JOIN,
    LATE,
    SEEN,
    UP,
    FileStats,
    Pause,
)
from rebalance_core.ingest.log_parts import Host, LogPart, by_position, log_parts
from rebalance_core.ingest.parse.log_lines import ServerClock
from rebalance_core.ingest.piece import AnyPiece, moved, with_values
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS
from rebalance_core.model.verdicts import WARNING

LEAST_OFFSET_MS = SECOND_MS
"""Servers log whole seconds, so smaller offsets are invisible."""
EARLY_MS, SAME_MS, SLOW_MS = 300, 700, 2_500
"""A client logs an event shortly after the broker: immediately, or later on an overloaded host."""
LEAST_MATCHES = 2
LEAST_NAMED, MOST = 3, 4
"""The minimum number of moments of named clients that must agree, as well as three quarters of
them.
"""
LEAST_HOSTS = 2
"""The minimum number of hosts with the usual clock that must agree that a clock is wrong."""
CLEARLY = 4
"""A different offset is accepted only if this many times more moments agree on it than on no
offset.
"""
REGISTERED_MS, USUAL_REGISTERED_MS = 30_000, 10_000
"""A broker registers 10 s after its start, or when the name server is available."""
TOGETHER_MS = 60_000
"""Logs that are copied one after the other end less than this apart."""
FIRST_MS = 30_000
"""A client logs its start, and becomes a member within this time after the first line of its
log.
"""
MOST_TRIED = 20
"""The maximum number of offsets to try among those that a host's moments allow."""
VISIT_MS = SECOND_MS
"""The time from one broker to the next, for a connection and a heartbeat: 0.04 to 0.14 s on one
machine, four round trips over a long distance. A broker that does not answer takes 3 s."""
APART_MS = 40_000
"""Joins this far apart, more than a heartbeat takes, belong to clients that did not start together.
"""

LINE_EVERY_MS = 10 * SECOND_MS
"""The interval in which a log's routine lines are counted."""
Marks = Mapping[str, list[int]]


@dataclass(frozen=True)
class ClockShifts:
    """The corrections to add to times, by file.

    Attributes:
        heads: the corrections to the lines' times, by position.
        beats: the corrections to times of its own clock that a broker prints within them, by
            position.
        offsets: how far the clock of each compared host is behind the others, in ms.
        left: how far off a host's corrected times may still be, in ms.
        late: by broker folder, how much later its log lines are than its clock.
        clients: by client id, how far behind the clock of its subVersions and start time is.
        unsure: hosts whose clocks differ without evidence of which is right, and how far each is
            behind the first of them.
        copies: the wrong clocks of the machines that make dumps and copy stores.
        errors: how far off the times in the names of files from these machines may still be.
        set_forward: by file, the positions of lines before which its host's clock was set forward.
    """

    heads: Mapping[str, Timeline[int]] = field(default_factory=dict)
    beats: Mapping[str, Timeline[int]] = field(default_factory=dict)
    offsets: Mapping[Host, int] = field(default_factory=dict)
    left: Mapping[Host, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    clients: Mapping[str, int] = field(default_factory=dict)
    unsure: Mapping[Host, int] = field(default_factory=dict)
    copies: Mapping[str, ClockOff] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    set_forward: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return True if some times are corrected."""
        return bool(self.heads or self.beats or self.clients)

    def corrected(self, pieces: Iterable[Evidence]) -> Iterator[Evidence]:
        """Yield the evidence at the right times, and a client's commits at the time by which they
        were surely sent.
        """
        most = {kind: ms for ms, kind in sorted((ms, host.kind) for host, ms in self.left.items())}
        late_ms = most.get(BROKER_LOG, 0) + most.get(CLIENT_LOG, 0)
        for piece in pieces:
            name = file_of(piece.source)
            name = name if name in self.heads else name.rpartition("@")[0]
            if name in self.beats:
                beat_ms = self.beats[name].known_at(piece.position, 0)
                piece = moved(piece, ("beat_ms",), beat_ms)
            clock = self.heads.get(name)
            shift = clock.known_at(piece.position, 0) if clock else 0
            shift += late_ms if piece.kind == "committed" else 0
            if shift and piece.at_ms is not None:
                piece = replace(piece, at_ms=piece.at_ms + shift)
            yield of_clock(piece, self.clients.get(str(piece.values.get("client_file")), 0))


def of_clock(piece: AnyPiece, behind_ms: int) -> AnyPiece:
    """Return the evidence, with a client's own statements moved to the right times."""
    if not behind_ms:
        return piece
    piece = moved(piece, ("start_ms", "known_ms", *LOCAL_FIELDS), behind_ms)
    versions = piece.values.get("versions")
    if not isinstance(versions, Mapping):
        return piece
    shifted = {topic: ms + behind_ms for topic, ms in versions.items()}
    return with_values(piece, {"versions": shifted})


def clock_shifts(
    collection: Collection, stats: Iterable[FileStats], naming: ClockOff | None = None
) -> ClockShifts:
    """Return the wrong clocks and their corrections; a difference of a whole time zone is only
    reported.

    If clocks disagree and nothing shows which is right, one of them may have been set forward while
    its log has no lines; if all agree on that assumption, it was.

    Args:
        collection: the files.
        stats: the stats of each file, with wrong time zones corrected.
        naming: the clock of the machine that names files, as computed without this step; it counts
            as one more clock when others determine which are right.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    shifts = _shifts(collection, counted, naming)
    doubted = {host.machine for host in shifts.unsure}
    for file in collection.files if doubted else ():
        if (file.kind, file.place) in doubted:
            for pause in counted[file.name].pauses:
                forward = (pause.position,)
                own = replace(counted[file.name], set_forward=forward)
                tried = _shifts(collection, {**counted, file.name: own}, naming)
                if _is_forward(tried, (file.kind, file.place), pause):
                    return replace(tried, set_forward={file.name: forward})
    return shifts


def _is_forward(shifts: ClockShifts, machine: tuple[str, str], pause: Pause) -> bool:
    """Return True if no clock is in doubt and the host's goes forward by no more than the pause."""
    of_host = {host: ms for host, ms in shifts.offsets.items() if host.machine == machine}
    longest_ms = pause.after_ms - pause.before_ms + SECOND_MS
    forward_ms = max(of_host.values(), default=0) - min(of_host.values(), default=0)
    in_order = [of_host[host] for host in sorted(of_host)]
    goes_on = in_order == sorted(in_order, reverse=True)
    return not shifts.unsure and goes_on and LEAST_OFFSET_MS < forward_ms <= longest_ms


def _shifts(
    collection: Collection, counted: Mapping[str, FileStats], naming: ClockOff | None
) -> ClockShifts:
    parts = list(log_parts(collection.files, counted))
    marks, order = _marks(parts), _in_order(parts)
    late, few = _late(collection.files, counted)
    offsets, unsure, compared = _offsets(marks, order, naming)
    unsure |= few
    of_name_servers = _of_name_servers(marks, offsets, late, _ends(parts))
    offsets |= of_name_servers
    by_order = _by_order(offsets, order, compared | of_name_servers.keys())
    offsets |= {host: behind_ms for host, (behind_ms, _) in by_order.items()}
    unsure = {host: ms for host, ms in unsure.items() if host not in by_order}
    unsure |= _undecided(offsets, unsure, order)
    heads: dict[str, dict[int, int]] = {}
    beats: dict[str, dict[int, int]] = {}
    left: dict[Host, int] = {}
    clocks = _hosts_off(parts, offsets)
    for part in parts:
        host, name = part.host, part.file.name
        behind = offsets.get(host, 0)
        stays = host.kind != NAMESRV_LOG and is_zone(behind) and host not in clocks
        behind = behind if abs(behind) > LEAST_OFFSET_MS and not stays else 0
        head = behind - late.get(host.place, 0) if host.kind == BROKER_LOG else behind
        heads.setdefault(name, {})[part.since] = head
        beats.setdefault(name, {})[part.since] = behind
        if head:
            own_ms = by_order[host][1] if host in by_order else _left(host, offsets, marks)
            left[host] = left.get(host) or own_ms
    alone = _of_one_host(marks)
    clients = {
        name[len(JOIN) :]: offsets[host]
        for host in sorted(clocks, reverse=True)  # the clock with which a process started
        for name in alone.get(host, ())
        if name.startswith(JOIN)
    }
    return ClockShifts(
        heads={name: by_position(of) for name, of in heads.items() if any(of.values())},
        beats={name: by_position(of) for name, of in beats.items() if any(of.values())},
        offsets=offsets,
        left=left,
        late=late,
        clients=clients,
        unsure=unsure,
    )


def _in_order(parts: Iterable[LogPart]) -> dict[tuple[Host, Host], _Edge]:
    """Return how far each part's clock is behind that of the previous part of its log, by its
    lines.

    A line follows the previous one as soon as any other line does, which gives a bound. A log that
    goes back to before its first line, or does not reach its previous time again, may consist of
    two files, whose order means nothing.
    """
    order: dict[tuple[Host, Host], _Edge] = {}
    begun: dict[tuple[str, str], str] = {}
    longest_ms: dict[tuple[str, str], int] = {}
    parts = [part for part in parts if part.file.kind == part.host.kind]
    stepped = {part.host.machine for part in parts if part.step is not None}
    for part in parts:
        if part.host.machine in stepped:
            ms = max(_longest_ms(part.stats.steps), longest_ms.get(part.host.machine, 0))
            longest_ms[part.host.machine] = ms
    for part in parts:
        host, step = part.host, part.step
        first = begun.setdefault(host.machine, part.stats.first_line_at)
        if step is not None:
            slack_ms = longest_ms[host.machine] // 2
            before = host._replace(part=host.part - 1)
            doubtful = step.after <= first or part.stats.last_line < step.before
            apart_ms = step.back_ms + slack_ms
            order[host, before] = _Edge(apart_ms, slack_ms, by_order=True, doubtful=doubtful)
    return order


def _longest_ms(steps: Iterable[str]) -> int:
    """Return the maximum time between two consecutive lines of a log."""
    times = sorted(ms for step in steps if (ms := ServerClock().second_ms(f"{step}0")) is not None)
    return LINE_EVERY_MS + max((later - earlier for earlier, later in pairwise(times)), default=0)


def _by_order(
    offsets: Mapping[Host, int],
    order: Mapping[tuple[Host, Host], _Edge],
    shown: Container[Host],
) -> dict[Host, tuple[int, int]]:
    """Return how far a part's clock is behind, if only the order of its log's lines shows it, and
    how far off that may be.

    Clocks are set in order to be right, so a clock is taken to be right wherever it may be.

    Args:
        offsets: the offsets of all parts with a known one.
        order: the order of parts of one log.
        shown: parts whose offsets are shown by other evidence.
    """
    compared = {host: (ms, 0) for host, ms in offsets.items() if host in shown}
    known = dict(compared)
    links = [(later, earlier, edge) for (later, earlier), edge in sorted(order.items())]
    backward = [(b, a, e._replace(behind_ms=-e.behind_ms)) for a, b, e in reversed(links)]
    for host, other, edge in (*links, *backward):
        if other in known and host not in known:
            behind_ms, error_ms = known[other]
            behind_ms, error_ms = behind_ms + edge.behind_ms, error_ms + edge.slack_ms
            if abs(behind_ms) <= error_ms:
                known[host] = 0, abs(behind_ms) + error_ms
            elif not edge.doubtful:
                known[host] = behind_ms, error_ms
    return {host: of for host, of in known.items() if host not in compared}


def _undecided(
    offsets: Mapping[Host, int],
    unsure: Mapping[Host, int],
    order: Mapping[tuple[Host, Host], _Edge],
) -> dict[Host, int]:
    """Return parts of logs of which one must be wrong, without evidence of which."""
    undecided: dict[Host, int] = {}
    for (later, earlier), edge in sorted(order.items()):
        known = [host for host in (later, earlier) if host in offsets or host in unsure]
        if len(known) == 2 or edge.doubtful:
            continue
        undecided |= dict.fromkeys({earlier} - {*known, *undecided}, 0)
        if later not in known:
            undecided[later] = undecided.get(earlier, 0) + edge.behind_ms
    return undecided


def _hosts_off(parts: Iterable[LogPart], offsets: Mapping[Host, int]) -> set[Host]:
    """Return the clients whose clock is off, so that the epoch times in their lines are, too."""
    newest: dict[Host, int] = {}
    for part in parts:
        if part.host.kind == CLIENT_LOG and part.stats.gap_high is not None:
            ms = part.stats.gap_high - part.stats.shift_ms
            newest[part.host] = max(ms, newest.get(part.host, ms))
    off = {h: ms for h, ms in offsets.items() if h.kind == CLIENT_LOG and abs(ms) > LEAST_OFFSET_MS}
    alike = {h for h, ms in off.items() if abs(newest.get(h, ms)) < abs(newest.get(h, ms) - ms)}
    return alike | {h for h, ms in off.items() if h not in newest and not is_zone(ms)}


def _left(host: Host, offsets: Mapping[Host, int], marks: Mapping[Host, Marks]) -> int:
    """Return the largest remaining difference between a corrected clock and others at moments that
    both log.
    """
    if host.kind == NAMESRV_LOG:
        whole = nearest_zone(offsets[host], 0) == offsets[host]
        return 0 if whole else REGISTERED_MS - USUAL_REGISTERED_MS
    here, behind = marks.get(host, {}), offsets.get(host, 0)
    apart = [
        abs(_nearest(marks[other][name], ms + behind - offset) - (ms + behind - offset))
        for other, offset in offsets.items()
        if {host.kind, other.kind} == {BROKER_LOG, CLIENT_LOG}
        for name in here.keys() & marks.get(other, {}).keys() - {CHANGED}
        for ms in here[name]
    ]
    near = [ms for ms in apart if ms <= LEAST_OFFSET_MS]
    if any(other.machine == host.machine for other in marks if other != host):
        near.append(SAME_MS)  # a part has few moments, and their median is its offset
    return max(near, default=SAME_MS)


def _late(
    files: Iterable[CollectedFile], counted: Mapping[str, FileStats]
) -> tuple[dict[str, int], dict[Host, int]]:
    """Return, by folder, how much later a broker's log lines are than their epoch times.

    Nearly all lines must agree on the difference, so that lines from moments when the broker was
    frozen do not count. The second result has the folders with too few lines to show it, all of
    them late.
    """
    by_folder: dict[str, list[int]] = {}
    for file in files:
        if file.kind == BROKER_LOG:
            file_stats = counted[file.name]
            by_folder.setdefault(file.place, []).extend(
                ms + file_stats.shift_ms + SECOND_MS // 2 for ms in file_stats.marks.get(LATE, ())
            )
    late, few = dict[str, int](), dict[Host, int]()
    for place, times in by_folder.items():
        usual = _of_most(sorted(times))
        if usual is not None and abs(usual) > LEAST_OFFSET_MS:
            late[place] = usual
        elif times and usual is None and min(map(abs, times)) > LEAST_OFFSET_MS:
            few[Host(BROKER_LOG, place)] = -times[0]
    return late, few


class _Edge(NamedTuple):
    """The offset between two hosts' clocks from their log lines about the same moments: how far the
    first is behind the second.

    ``slack_ms``: how much of the difference may be due to the round of visits from broker to
    broker; ``noticed``: a broker's own notices show it, regardless of when the clients came;
    ``by_order``: both are parts of one host's log, whose lines are in order; ``doubtful``: these
    may be two files.
    """

    behind_ms: int
    slack_ms: int = 0
    noticed: bool = False
    by_order: bool = False
    doubtful: bool = False


class _Offsets(NamedTuple):
    """How far hosts' clocks are behind most others.

    ``unsure``: how far clocks are behind the first of them, if as many differ as agree;
    ``compared``: the hosts dated by other hosts' lines, not just by the order of their own.
    """

    behind: dict[Host, int]
    unsure: dict[Host, int]
    compared: set[Host]


def _offsets(
    marks: Mapping[Host, Marks],
    order: Mapping[tuple[Host, Host], _Edge],
    naming: ClockOff | None = None,
) -> _Offsets:
    """Return how far each host's clock is behind most others."""
    starts_logged = any(name.startswith(BEGUN) for names in marks.values() for name in names)
    visits_ms = _visits_ms(marks)
    edges: dict[Host, dict[Host, _Edge]] = {}
    alone = _of_one_host(marks)

    def compared(of: Mapping[Host, Marks], first: Host, second: Host) -> _Edge | None:
        if second.kind == BROKER_LOG:
            return _between(of[first], of[second], visits_ms)
        return _behind(of[first], _heard(of[first], of[second]), starts_logged, visits_ms)

    for first, second in combinations(sorted(marks), 2):
        servers = (BROKER_LOG, CLIENT_LOG)
        if first.machine == second.machine:
            continue
        if first.kind == BROKER_LOG and second.kind in servers:
            edge = compared(alone, first, second)
            if edge is None:
                of_all = compared(marks, first, second)
                edge = of_all if of_all is not None and of_all.behind_ms == 0 else None
            if edge is not None:
                edges.setdefault(first, {})[second] = edge
                edges.setdefault(second, {})[first] = edge._replace(behind_ms=-edge.behind_ms)
    hosts = {*edges}
    for (later, earlier), edge in order.items():
        if not edge.doubtful and (later in edges or earlier in edges):
            edges.setdefault(later, {})[earlier] = edge
            edges.setdefault(earlier, {})[later] = edge._replace(behind_ms=-edge.behind_ms)
    offsets: dict[Host, int] = {}
    unsure: dict[Host, int] = {}
    for host in sorted(edges):
        if host not in offsets and host not in unsure:
            relative, rivals = _relative(host, edges)
            together = {
                h
                for h, ms in relative.items()
                if ms and _at_one_time(marks.get(h, {}), h) and not _shown(ms, edges[h].values())
            }
            decided = {h: ms for h, ms in relative.items() if h not in together}
            offsets |= _outvoted(decided, naming) if naming else decided
            unsure |= rivals | {h: relative[h] for h in together}
    return _Offsets(offsets, unsure, hosts)


def _shown(behind_ms: int, edges: Iterable[_Edge]) -> bool:
    """Return True if several hosts received the broker's notices at this clock difference, or the
    order of its own lines shows it.
    """
    edges = list(edges)
    apart = (abs(edge.behind_ms - behind_ms) for edge in edges if edge.noticed)
    noticed = sum(ms <= LEAST_OFFSET_MS for ms in apart) >= LEAST_HOSTS
    return noticed or any(edge.by_order for edge in edges)


def _outvoted(offsets: Mapping[Host, int], naming: ClockOff) -> dict[Host, int]:
    """Return the offsets, taking the majority of clocks that agree with the file-naming machine as
    right.

    Moments that both log do not show which of two groups of clocks is wrong, because all brokers
    may be on one wrong server. One more machine that agrees with either group decides.
    """
    error_ms = naming.error_ms or 0
    if abs(naming.behind_ms) <= error_ms:
        return dict(offsets)
    agreeing = [ms for ms in offsets.values() if abs(ms - naming.behind_ms) <= error_ms]

    def alike(offset_ms: int) -> int:
        return sum(abs(ms - offset_ms) <= LEAST_OFFSET_MS for ms in offsets.values())

    right = max(sorted(agreeing), key=alike, default=0)
    if abs(right) <= LEAST_OFFSET_MS or alike(right) + 1 <= alike(0):
        return dict(offsets)
    return {
        host: 0 if abs(ms - right) <= LEAST_OFFSET_MS else ms - right
        for host, ms in offsets.items()
    }


def _visits_ms(marks: Mapping[Host, Marks]) -> int:
    """Return how much later a client may reach the last broker than the first one."""
    hosts = {host.place for host in marks if host.kind == BROKER_LOG}
    heard = {name for of in marks.values() for name in of if name.startswith(_NOTICE)}
    return VISIT_MS * max(0, max(len(hosts), len(heard)) - 1)


_NOTICE = f"{CHANGED} "
"""Notices from one broker in a client's log, with its address."""


class _Client(NamedTuple):
    """The marks of a client's host according to one broker.

    In ``marks``, `CHANGED` has that broker's notices if ``is_named``, otherwise the notices of all
    brokers.
    """

    marks: Marks
    is_named: bool


def _heard(broker: Marks, client: Marks) -> _Client:
    """Return the client's marks that can come from the broker.

    Clients that know a broker by an address other than its own (NAT) do not name it.
    """
    notices = {n.removeprefix(_NOTICE): n for n in client if n.startswith(_NOTICE)}
    own = [name for address, name in notices.items() if f"{AT}{address}" in broker]
    times = sorted(ms for name in own or notices.values() for ms in client[name])
    others = {name: ms for name, ms in client.items() if name not in notices.values()}
    return _Client(others | ({CHANGED: times} if times else {}), bool(own))


def _at_one_time(broker: Marks, host: Host) -> bool:
    """Return True if all clients registered with a broker at the same time.

    It may have started or received their topics, so their earlier presence elsewhere is no sign of
    a different clock.
    """
    joins = [times[0] for name, times in broker.items() if name.startswith(JOIN)]
    return host.kind == BROKER_LOG and max(joins, default=0) - min(joins, default=0) < APART_MS


def _of_one_host(marks: Mapping[Host, Marks]) -> dict[Host, Marks]:
    """Return the marks without those of client ids that processes on several hosts share."""
    of_clients = {(h.place, n) for h, of in marks.items() if h.kind == CLIENT_LOG for n in of}
    hosts = Counter(name for _, name in of_clients)
    shared = {n for n, count in hosts.items() if count > 1 and n.startswith(JOIN)}
    return {host: {n: of[n] for n in of.keys() - shared} for host, of in marks.items()}


def _of_name_servers(
    marks: Mapping[Host, Marks],
    behind_ms: Mapping[Host, int],
    late: Mapping[str, int],
    ends: Mapping[Host, int],
) -> dict[Host, int]:
    """Return how far name servers' clocks are behind those of brokers that have started.

    A broker registers within `REGISTERED_MS` after its start, so the difference that explains most
    starts is that of the clocks, and that of brokers that are off takes precedence. If brokers'
    clocks are not known, a single broker shows nothing. All brokers also register when a name
    server starts without its earlier logs; logs that end together without the difference have the
    same clock.

    Args:
        marks: the marks of all hosts.
        behind_ms: how far brokers' clocks are behind.
        late: how much later each broker's lines are than its clock.
        ends: when each host's log ends.
    """
    broker_ends = [
        ms + behind_ms.get(host, 0) - late.get(host.place, 0)
        for host, ms in ends.items()
        if host.kind == BROKER_LOG
    ]
    end_ms = max(broker_ends, default=None)
    offsets: dict[Host, int] = {}
    ups = [
        (host, name, ms + behind_ms.get(host, 0) - late.get(host.place, 0))
        for host, of in marks.items()
        if host.kind == BROKER_LOG
        for name in of
        for ms in of[name]
    ]
    of_brokers = (ms for host, ms in behind_ms.items() if host.kind == BROKER_LOG)
    off = sorted(ms for ms in of_brokers if abs(ms) > LEAST_OFFSET_MS)
    for host, host_marks in marks.items():
        if host.kind != NAMESRV_LOG:
            continue
        starts = [start for start in ups if start[1] in host_marks]
        ahead = [(ms - start[2], start) for start in starts for ms in host_marks[start[1]]]
        explained = {ms: _explained(ahead, ms) for ms in (0, *sorted({ms for ms, _ in ahead}))}
        best = max(explained, key=lambda ms: len(explained[ms]))
        brokers = {broker for broker, _, _ in explained[best]}
        apart_ms = ends[host] - end_ms if end_ms is not None and host in ends else best
        together = abs(apart_ms) < min(TOGETHER_MS, abs(apart_ms - best))
        if 2 * len(explained[0]) >= len(starts) > 0 or (starts and together):
            offsets[host] = 0
        elif len(explained[best]) >= max(LEAST_MATCHES, len(starts) // 2 + 1) and (
            len(brokers) >= LEAST_HOSTS or brokers <= behind_ms.keys()
        ):
            behind = USUAL_REGISTERED_MS - best
            behind = nearest_zone(behind, REGISTERED_MS) or behind
            shared = [ms for ms in off if abs(ms - behind) <= REGISTERED_MS] or [behind]
            offsets[host] = shared[len(shared) // 2] if abs(behind) > REGISTERED_MS else 0
    return offsets


def _ends(parts: Iterable[LogPart]) -> dict[Host, int]:
    """Return when each host's log ends, by the host's clock."""
    ends: dict[Host, int] = {}
    clock = ServerClock()
    for part in parts:
        ms = clock.second_ms(part.stats.last_line)
        if ms is not None and part.file.kind == part.host.kind:
            ms += part.stats.shift_ms
            ends[part.host] = max(ms, ends.get(part.host, ms))
    newest = {host.machine: host for host in sorted(ends)}
    return {host: ends[host] for host in newest.values()}


_Start = tuple[Host, str, int]


def _explained(ahead: Iterable[tuple[int, _Start]], clock_ms: int) -> set[_Start]:
    """Return the starts that a name server noticed in time if its clock is this far ahead."""
    return {start for ms, start in ahead if -EARLY_MS <= ms - clock_ms <= REGISTERED_MS}


def _marks(parts: Iterable[LogPart]) -> dict[Host, dict[str, list[int]]]:
    """Return, by host and in order, the moments that other hosts may also have logged.

    Lines in the wrong time zone are corrected; brokers log clients' times as epoch times.
    """
    marks: dict[Host, dict[str, list[int]]] = {}
    for part in parts:
        kind = part.file.kind
        if kind in (BROKER_LOG, CLIENT_LOG, NAMESRV_LOG):
            host_marks = marks.setdefault(part.host, {})
            for name, times in part.stats.marks.items():
                if name == LATE:
                    continue
                of_epoch = kind == BROKER_LOG and not name.startswith((UP, CLOSED))
                shift = 0 if of_epoch else part.stats.shift_ms
                host_marks.setdefault(name, []).extend(ms + shift for ms in times)
    return {
        host: {n: sorted(ms) for n, ms in host_marks.items()}
        for host, host_marks in marks.items()
        if host_marks
    }


def _behind(broker: Marks, heard: _Client, starts_logged: bool, visits_ms: int) -> _Edge | None:
    """Return how far the broker's clock is behind the client's, or None if no evidence shows it.

    A moment in the broker's log can be any moment in the client's with the same statement, so any
    of these differences is possible at which no process is seen before it began. A difference is
    known if the broker's own notices show it, or if most of what both write about clients agrees
    with it, or far more moments do than without a difference; it is zero if a client came then.

    Args:
        broker: its moments.
        heard: the moments of the client's host.
        starts_logged: whether clients' logs have their starts.
        visits_ms: how long a client may take from the first broker to the last.
    """
    client = heard.marks
    began = _begun(client, starts_logged)
    shared = broker.keys() & began.keys() - {CHANGED}
    # a later heartbeat may be nearer; the first heartbeats of both belong together
    first = sorted(client[name][0] - broker[name][0] for name in shared)

    def possible(behind_ms: int) -> bool:
        return _is_possible(broker, client, starts_logged, behind_ms)

    if heard.is_named and first:
        joins = [broker[name][0] for name in shared]
        shown = _notified(broker[CHANGED], client[CHANGED], joins, first, visits_ms)
        # a log without some heartbeats still has its notices in place
        clear = starts_logged or _agree_alone(broker[CHANGED], client[CHANGED], shown)
        if shown is not None and _is_possible(broker, client, clear, shown):
            return _Edge(shown, noticed=True)
    named = _of_most(first)
    if named is not None:
        named = 0 if -EARLY_MS <= named <= SLOW_MS else named
        return _apart(named, visits_ms) if possible(named) else None
    none = _agree(broker, client, 0, SLOW_MS) if possible(0) else 0
    behind = first[len(first) // 2] if first else 0
    alike = sum(abs(ms - behind) <= 2 * SAME_MS for ms in first)
    agreeing = _agree(broker, began, behind - SAME_MS // 2, SAME_MS)
    often = 2 * alike > len(first) and agreeing > max(LEAST_MATCHES - 1, CLEARLY * none)
    if often and abs(behind) > LEAST_OFFSET_MS and possible(behind):
        return _apart(behind, visits_ms)
    came = (_nearest(began[name], ms) - ms for name in shared for ms in broker[name])
    at_once = any(-EARLY_MS <= ms <= SLOW_MS for ms in came)
    return _Edge(0) if none >= LEAST_MATCHES and at_once else None


def _apart(behind_ms: int, visits_ms: int) -> _Edge | None:
    """Return the difference derived from when clients registered, unless they may have registered
    that much later.
    """
    if abs(behind_ms) <= LEAST_OFFSET_MS:
        return _Edge(behind_ms, min(visits_ms, LEAST_OFFSET_MS))
    return None if -visits_ms - EARLY_MS <= behind_ms < 0 else _Edge(behind_ms, visits_ms)


def _notified(
    changes: list[int], notices: list[int], joins: list[int], first: list[int], visits_ms: int
) -> int | None:
    """Return how far a broker's clock is behind that of a client's host, judging by its notices, or
    None if unknown.

    A broker also notifies a member of its own join, immediately, even if it came to this broker
    late.

    Args:
        changes: when the broker saw members come.
        notices: when the host heard of changes from it.
        joins: when the broker first saw each member of the host.
        first: how much later each member was at the first broker that it came to, sorted.
        visits_ms: how much earlier that may have been.
    """

    def share(behind_ms: int, late_ms: int) -> float:
        """Return the number of joins notified at that time."""
        from_ms = behind_ms - EARLY_MS
        heard = (_count_in(notices, ms + from_ms, ms + behind_ms + late_ms) for ms in joins)
        return sum(map(bool, heard)) / len(joins)

    def agree(behind_ms: int, late_ms: int) -> int:
        return _agree({CHANGED: changes}, {CHANGED: notices}, behind_ms, late_ms)

    def fit(behind_ms: int) -> tuple[int, int]:
        """Return the number of moments that agree, and how well they do."""
        apart = (abs(_nearest(notices, ms + behind_ms) - ms - behind_ms) for ms in changes)
        return agree(behind_ms, SAME_MS), -sum(min(ms, SAME_MS) for ms in apart)

    most, behind = (MOST - 1) / MOST, first[len(first) // 2]
    none = agree(0, SLOW_MS) if share(0, SLOW_MS) >= most else 0
    usual = 2 * none >= min(len(changes), len(notices)) > 0
    named = _of_most(first)
    if usual and (named is None or abs(named) <= LEAST_OFFSET_MS):
        return 0
    last_ms = max(0, behind) + visits_ms + SLOW_MS
    late = sorted(at_ms - ms for ms in joins for at_ms in notices)
    late = late[bisect_left(late, behind - EARLY_MS) : bisect_right(late, last_ms)]
    often = sorted(late, key=lambda ms: _count_in(late, ms, ms + SAME_MS), reverse=True)
    best = max(often[:MOST_TRIED], key=fit, default=0)
    agreeing = agree(best, SAME_MS) if share(best, SAME_MS) >= most else 0
    if abs(best) <= LEAST_OFFSET_MS or agreeing <= none:
        return 0 if none else None
    if usual:
        # with many joins and leaves, half of the moments have another one nearby
        return best if abs(best - (named or 0)) <= visits_ms + SAME_MS else 0
    decided = named is not None or agreeing > max(LEAST_MATCHES - 1, CLEARLY * none)
    return best if decided else None


def _agree_alone(changes: list[int], notices: list[int], behind_ms: int | None) -> bool:
    """Return True if half of a broker's notices show this difference, twice those without."""

    def agreeing_at(at_ms: int) -> int:
        return _agree({CHANGED: changes}, {CHANGED: notices}, at_ms, SAME_MS)

    least = max(LEAST_NAMED, min(len(changes), len(notices)) / 2, 2 * agreeing_at(0))
    return behind_ms is not None and agreeing_at(behind_ms) >= least


def _count_in(times: list[int], from_ms: int, to_ms: int) -> int:
    """Return the number of sorted times in [from_ms, to_ms]."""
    return bisect_right(times, to_ms) - bisect_left(times, from_ms)


def _is_possible(broker: Marks, client: Marks, starts_logged: bool, behind_ms: int) -> bool:
    """Return False if, by these clocks, the broker saw a process before it started.

    An id that contains a time (from 4.9) belongs to a single process. If no start is logged, the
    first heartbeat in a truncated log is a later one, so it does not show that the clock is ahead.
    """
    beats_late = (behind_ms + EARLY_MS) % HEARTBEAT_MS <= EARLY_MS + SLOW_MS
    begun = ((broker[n][0], client.get(BEGUN + n.removeprefix(JOIN))) for n in broker if "#" in n)
    return (starts_logged or behind_ms <= 0 or not beats_late) and all(
        not since or ms + behind_ms >= since[0] - SLOW_MS for ms, since in begun
    )


def _between(first: Marks, second: Marks, visits_ms: int) -> _Edge | None:
    """Return how far the first broker's clock is behind the second's, judging by joins that both
    log.

    Clients that started together also come back to a broker together, so joins must be apart. All
    may come to one broker later than to the other, whereas a killed client's connections end at
    both at once.
    """
    pairs = [
        (first[name][0], second[name][0])
        for name in first.keys() & second.keys()
        if name.startswith(JOIN)
    ]
    named = _of_most(sorted(second_ms - first_ms for first_ms, second_ms in pairs))
    alike = [
        first_ms
        for first_ms, second_ms in pairs
        if named is not None and abs(second_ms - first_ms - named) <= SAME_MS
    ]
    if named is None or max(alike) - min(alike) < APART_MS:
        return None
    if abs(named) <= LEAST_OFFSET_MS:
        return _Edge(0, min(visits_ms, LEAST_OFFSET_MS))
    ended = sorted(
        second[name][-1] - first[name][-1]
        for name in first.keys() & second.keys()
        if name.startswith(CLOSED) and len(first[name]) == len(second[name])
    )
    closed = ended[len(ended) // 2] if len(ended) >= LEAST_MATCHES else None
    if closed is not None and abs(closed - named) <= visits_ms + LEAST_OFFSET_MS:
        return _Edge(closed if abs(closed) > LEAST_OFFSET_MS else 0, LEAST_OFFSET_MS)
    return _Edge(named, visits_ms) if abs(named) > visits_ms else None


def _begun(client: Marks, starts_logged: bool) -> dict[str, list[int]]:
    """Return the marks without the heartbeats of a client that was already running when its log
    begins.

    Brokers do not log those, but only the client's arrival.
    """
    first = min((ms for times in client.values() for ms in times), default=0)
    return {
        name: times
        for name, times in client.items()
        if not name.startswith((BEGUN, SEEN))
        and (name == CHANGED or _is_first(client, name, first, starts_logged))
    }


def _is_first(client: Marks, name: str, log_ms: int, starts_logged: bool) -> bool:
    """Return True if the heartbeats under that name begin with the client's logged start or,
    without one, with the log.

    A client does not commit before its first heartbeat, because its commit timer starts with the
    client.
    """
    begin, client_id = client[name][0], name.partition(" ")[2]
    if starts_logged:
        return any(0 <= begin - ms <= FIRST_MS for ms in client.get(f"{BEGUN}{client_id}", ()))
    seen = client.get(f"{SEEN}{client_id}", [begin])
    return seen[0] >= begin and begin - log_ms <= FIRST_MS


def _of_most(differences: list[int]) -> int | None:
    """Return the offset on which nearly all of the sorted offsets agree, or None if there are too
    few.

    >>> _of_most([-5060, -5052, -5031, 40_000]), _of_most([97_882, 100_554, 120_374, 120_924])
    (-5031, None)
    """
    middle = differences[len(differences) // 2] if differences else 0
    alike = sum(abs(ms - middle) <= SAME_MS for ms in differences)
    enough = alike >= LEAST_NAMED and MOST * alike >= (MOST - 1) * len(differences)
    return middle if enough else None


def _agree(broker: Marks, client: Marks, behind_ms: int, late_ms: int) -> int:
    """Return the number of moments that both have, the client's this much later, if the broker is
    this far behind.
    """

    def inside(late: int) -> bool:
        return -EARLY_MS <= late <= late_ms

    matches = 0
    for name in broker.keys() & client.keys():
        on_client = [ms + behind_ms for ms in broker[name]]
        of_broker = sum(inside(_nearest(client[name], ms) - ms) for ms in on_client)
        matches += min(of_broker, sum(inside(ms - _nearest(on_client, ms)) for ms in client[name]))
    return matches


def _nearest(times: list[int], at_ms: int) -> int:
    place = bisect_left(times, at_ms)
    return min(times[max(0, place - 1) : place + 1], key=lambda ms: abs(ms - at_ms))


def _relative(
    root: Host, edges: Mapping[Host, Mapping[Host, _Edge]]
) -> tuple[dict[Host, int], dict[Host, int]]:
    """Return the offsets of compared hosts, relative to the root or to other hosts; most have none.

    A host on which those with the usual clock disagree is left out. If there is no usual clock, or
    only one host shows that a broker is off, the hosts belong to `ClockShifts.unsure`.
    """
    offsets: dict[Host, int] = {}
    waiting = [(0, 0, root, 0)]
    while waiting:  # by the best evidence
        slack_ms, steps, host, offset = heapq.heappop(waiting)
        if host in offsets:
            continue
        offsets[host] = offset
        for other, edge in edges[host].items():
            if other not in offsets:
                further = offset - edge.behind_ms
                heapq.heappush(waiting, (slack_ms + edge.slack_ms, steps + 1, other, further))

    def alike(offset: int) -> tuple[int, int]:
        near = {h.machine for h, ms in offsets.items() if abs(ms - offset) <= LEAST_OFFSET_MS}
        return len(near), sum(kind == BROKER_LOG for kind, _ in near)

    usual = max(sorted(offsets.values()), key=alike)
    rivals = (ms for ms in offsets.values() if abs(ms - usual) > 2 * LEAST_OFFSET_MS)
    if any(alike(ms) == alike(usual) for ms in rivals):
        return {}, offsets
    near = sorted(ms for ms in offsets.values() if abs(ms - usual) <= LEAST_OFFSET_MS)
    usual = near[len(near) // 2]
    result: dict[Host, int] = {}
    unsure: dict[Host, int] = {}
    right = {host for host, ms in offsets.items() if abs(ms - usual) <= LEAST_OFFSET_MS}
    for host, offset in offsets.items():
        of_right = {h: edge for h, edge in edges[host].items() if h in right}
        heard = {h: edge for h, edge in of_right.items() if edge.noticed}
        of_right = heard if len(heard) >= LEAST_HOSTS else of_right  # heartbeats arrive later
        agree = all(
            abs(offset - edge.behind_ms - offsets[h]) <= LEAST_OFFSET_MS + edge.slack_ms
            for h, edge in of_right.items()
        )
        ordered = any(edge.by_order for edge in of_right.values())
        enough = host in right or ordered or len(of_right) >= LEAST_HOSTS
        if agree and (enough or host.kind == BROKER_LOG):
            best_ms = min((edge.slack_ms for edge in of_right.values()), default=0)
            shown = sorted(
                offsets[h] + edge.behind_ms
                for h, edge in of_right.items()
                if edge.slack_ms == best_ms
            )
            off = shown[len(shown) // 2] if shown else offset
            (result if enough else unsure)[host] = 0 if host in right else off - usual
    return result, unsure


_MACHINES = {DUMPS: "makes the dumps", STORES: "copies the stores"}


def _finding(text: str, remedy: str, evidence: Mapping[str, object]) -> Finding:
    return finding("INGEST_CLOCK_OFFSET", text, remedy, WARNING, evidence=evidence)


def _copy_findings(copies: Mapping[str, ClockOff]) -> Iterator[Finding]:
    """Yield a finding for each machine whose clock puts wrong times into file names."""
    for what, off in sorted(copies.items()):
        if not off.compared:
            continue
        machine, shown = f"the machine that {_MACHINES[what]}", f"according to the {what}"
        remedy = "Synchronise that machine's clock (chrony, NTP)."
        if off.error_ms is None:
            text = (
                f"The clock of {machine} differs from the others, {shown}, and no file shows that "
                "the difference was constant: its times are not corrected."
            )
            yield _finding(text, remedy, {"what": what})
            continue
        if off.contradicted_by:
            text = (
                f"The clock of {machine} may be {off.error_ms / SECOND_MS:.0f} s off, or "
                f"{off.contradicted_by} is older than its name states: no other file shows which. "
                "No time is corrected."
            )
            evidence = {"what": what, "error_ms": off.error_ms, "file": off.contradicted_by}
            yield _finding(text, f"{remedy} Collect that file again.", evidence)
            continue
        if not off.behind_ms:
            text = (
                f"The clock of {machine} may be {off.error_ms / SECOND_MS:.0f} s off, because the "
                "clock of the dumps is, and the stores do not show whether this one is too: none "
                "of their times is corrected."
            )
            yield _finding(text, remedy, {"what": what, "error_ms": off.error_ms})
            continue
        how = "behind" if off.behind_ms > 0 else "ahead of"
        text = (
            f"The clock of {machine} is {abs(off.behind_ms) / SECOND_MS:.0f} s {how} the others, "
            f"{shown}, give or take {off.error_ms / SECOND_MS:.0f} s. Its times are read as "
            "corrected."
        )
        evidence = {"what": what, "behind_ms": off.behind_ms, "error_ms": off.error_ms}
        yield _finding(text, remedy, evidence)


_FOLDERS = {BROKER_LOG: "brokers", CLIENT_LOG: "clients", NAMESRV_LOG: "namesrv"}


def _period(host: Host, others: Iterable[int]) -> str:
    """Return the part of a host's log that contains this position, according to the steps of its
    clock.
    """
    if host.part > max(others):
        return "after it was set"
    return "until it was set" if host.part < min(others) else "between two settings"


def offset_findings(shifts: ClockShifts) -> Iterator[Finding]:
    """Yield a finding for each host that is off, and for each whose lines differ from its clock."""
    corrected, synchronise = "are read as corrected.", "Synchronise the host's clock (chrony, NTP)."
    for place, late_ms in sorted(shifts.late.items()):
        how = f"{abs(late_ms) / SECOND_MS:.1f} s {'later' if late_ms > 0 else 'earlier'}"
        text = f"The lines of brokers/{place} are {how} than the epoch times in them. Their times"
        remedy = "Make the broker's log use the time of its clock."
        evidence = {"folder": f"brokers/{place}", "behind_ms": -late_ms}
        yield _finding(f"{text} {corrected}", remedy, evidence)
    if shifts.unsure:
        folders = {f"{_FOLDERS[host.kind]}/{host.place}" for host in shifts.unsure}
        hosts = ", ".join(sorted(folders))
        apart = max(0, *shifts.unsure.values()) - min(0, *shifts.unsure.values())
        others = " and of others" if len(shifts.unsure) == 1 else ""
        text = f"The clocks of {hosts}{others} differ by up to {apart / SECOND_MS:.1f} s, by what "
        text += "they log of the same clients, and nothing shows which is right: none is corrected."
        if len(folders) == 1 < len(shifts.unsure):
            text = f"The clock of {hosts} was set back by {apart / SECOND_MS:.1f} s, by the order "
            text += "of its lines, and nothing shows when it was right: no time is corrected."
        remedy = (
            "Synchronise the hosts' clocks (chrony, NTP), and collect the clients' logs, which "
            "show which clock is right."
        )
        yield _finding(text, remedy, {"folders": hosts, "apart_ms": apart})
    for host, behind in sorted(shifts.offsets.items()):
        if abs(behind) > LEAST_OFFSET_MS:
            folder = f"{_FOLDERS[host.kind]}/{host.place}"
            how = f"{abs(behind) / SECOND_MS:.1f} s {'behind' if behind > 0 else 'ahead of'}"
            parts = {h.part for h in shifts.offsets if h.machine == host.machine} - {host.part}
            since = f" {_period(host, parts)}" if parts else ""
            text = f"The clock of {folder} is {how} the others{since}, judging by what both log."
            zone = "The difference is a whole time zone, and the times are not corrected."
            read = f"Its times {corrected}" if host in shifts.left else zone
            remedy = "Name its time zone in collection.toml." if is_zone(behind) else synchronise
            evidence = {"folder": folder, "behind_ms": behind}
            yield _finding(f"{text} {read}", remedy, evidence)
    yield from _copy_findings(shifts.copies)
