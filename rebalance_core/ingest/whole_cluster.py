"""Data that only a whole collection shows (the owners of its files, clock offsets and the cluster's
context), and the results that follow with it from each group's and topic's evidence.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.clock_offsets import ClockShifts, offset_findings
from rebalance_core.ingest.clock_zones import Shifts, corrected, zone_findings
from rebalance_core.ingest.clocks import in_time
from rebalance_core.ingest.cluster_context import ClusterContext, cluster_context
from rebalance_core.ingest.cluster_facts import cluster_facts
from rebalance_core.ingest.collection import (
    BROKER_LOG,
    CLIENT_LOG,
    GIVEN_GROUPS,
    NAMESRV_LOG,
    PROXY_LOG,
    Collection,
)
from rebalance_core.ingest.coverage import (
    CLIENT_PAUSE_MS,
    PAUSE_MS,
    coverage_rows,
    span_of_heads,
)
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.evidence_table import REFUSED
from rebalance_core.ingest.fact import Unread, file_of
from rebalance_core.ingest.file_findings import file_findings
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.given_groups import parse_given_groups
from rebalance_core.ingest.group_tables import rejected_row, tables_of
from rebalance_core.ingest.log_parts import log_parts
from rebalance_core.ingest.parse.encodings import decoded
from rebalance_core.ingest.parse.log_lines import ServerClock
from rebalance_core.ingest.rows import Event, Tables
from rebalance_core.ingest.short_answers import short_answers, with_short_answers
from rebalance_core.ingest.strangers import set_apart
from rebalance_core.model.events import BROKER_EVENTS, OBSERVED
from rebalance_core.model.times import HOUR_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven

SERVER_LOGS = (NAMESRV_LOG, BROKER_LOG, PROXY_LOG)


@dataclass(frozen=True, slots=True)
class KeyedEvidence:
    """Builds the rows of groups and topics from the evidence on them.

    Attributes:
        context: The cluster's context.
        strangers: Files of other brokers, which are ignored.
        whole: Files that were refused as a whole, so that their lines yield no rows of
            ``rejected``.
        shifts: The corrections of files' times, by file.
        clocks: The same for hosts whose clocks are off.
    """

    context: ClusterContext
    strangers: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    shifts: Shifts = field(default_factory=dict)
    clocks: ClockShifts = field(default_factory=ClockShifts)

    def tables(self, part: str, key: str, pieces: Iterable[Evidence]) -> Tables:
        """Return the rows of one group or topic from evidence that counts, at corrected times."""
        out = self.strangers | self.whole if part == REFUSED else self.strangers
        if out:
            pieces = (piece for piece in pieces if not is_of(piece.source, out))
        return tables_of(part, key, self.in_time(pieces), self.context)

    def in_time(self, pieces: Iterable[Evidence]) -> Iterator[Evidence]:
        """Yield the pieces at corrected times."""
        zoned = corrected(pieces, self.shifts) if self.shifts else iter(pieces)
        return self.clocks.corrected(zoned) if self.clocks else zoned

    def rejected(self, pieces: Iterable[Unread]) -> Tables:
        """Return the rows about unreadable parts, without files that are refused as a whole."""
        out = self.strangers | self.whole
        return {"rejected": [rejected_row(p) for p in pieces if not is_of(p.source, out)]}


@dataclass(frozen=True)
class WholeCluster:
    """The data that only a whole collection shows.

    Attributes:
        keyed: Results from the evidence on groups and topics.
        stats: How much of each file was understood.
        tables: Rows about the cluster, its brokers and the files.
    """

    keyed: KeyedEvidence
    stats: tuple[FileStats, ...]
    tables: Tables

    @classmethod
    def from_files(
        cls,
        collection: Collection,
        stats: Iterable[FileStats],
        of_cluster: Iterable[Evidence],
        assumed: Assumptions,
        refused: Iterable[Unread] = (),
    ) -> WholeCluster:
        """Combine all files' facts about the cluster.

        Args:
            collection: `open_collection` of a folder.
            stats: How each file was understood.
            of_cluster: All evidence on the cluster.
            assumed: The settings that apply where no file states them.
            refused: Unreadable parts of files that are not evidence for `KeyedEvidence`.
        """
        pieces = list(of_cluster)
        apart = set_apart(collection, stats, pieces)
        if apart.strangers:
            pieces = [piece for piece in pieces if not is_of(piece.source, apart.names)]
        timed = in_time(apart.collection, apart.stats, pieces)
        files, read, clocks = timed.collection, timed.stats, timed.clocks
        pieces = [*clocks.corrected(corrected(pieces, timed.shifts))]
        group_rows, wrong = given_groups(files)
        context = context_of(files, pieces, read, group_rows, assumed)
        context = replace(context, client_clocks=clocks.clients, errors_ms=clocks.errors)
        whole = whole_refusals(read)
        tables = broker_tables(pieces, context)
        context = replace(
            context,
            client_ends=_client_ends(files, read, assumed),
            broker_turns=_broker_turns(tables["cluster_events"]),
        )
        routed = {
            piece.values["broker_name"]
            for piece in filter(is_on_cluster, pieces)
            if piece.kind == "route_broker"
            and piece.values["cluster"] in (None, files.settings.cluster)
        }
        turns = context.broker_turns, context.topic_turns
        short = short_answers(files.files, read, routed, *turns)
        read, cut = with_short_answers(read, short)
        tables["observed_facts"] = cluster_facts(files, read, pieces, context)
        tables["findings"] = [
            *tables.get("findings", []),
            *file_findings(files, read, assumed, context),
            *zone_findings(files, timed.shifts),
            *offset_findings(clocks),
        ]
        tables["coverage"] = coverage_rows(files, read, assumed, context, clocks)
        rejected = (*files.refused, *refused, *wrong, *whole.values(), *cut)
        tables["rejected"] = [rejected_row(piece) for piece in rejected]
        keyed = KeyedEvidence(context, apart.names, frozenset(whole), timed.shifts, clocks)
        return cls(keyed, (*read, *apart.strangers), tables)


def _broker_turns(rows: Iterable[Event]) -> tuple[int, ...]:
    """Return when brokers came or went while logs cover them."""
    turns = {
        row["event_ms"]
        for row in rows
        if row["event_type"] in BROKER_EVENTS and row.get("detail") != OBSERVED
    }
    return tuple(sorted(turns))


def _client_ends(
    collection: Collection, stats: Iterable[FileStats], assumed: Assumptions
) -> dict[str, int]:
    """Return, for each folder, the time up to which its clients' logs are evidence: their last line
    plus the pause that a running client may make.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    ends: dict[str, int] = {}
    for file in collection.files:
        if file.kind == CLIENT_LOG and file.name in counted:
            span = span_of_heads(file, counted[file.name], collection, assumed)
            if span is not None:
                ends[file.place] = max(span[1] + CLIENT_PAUSE_MS, ends.get(file.place, 0))
    return ends


def given_groups(collection: Collection) -> tuple[dict[str, ConsumerGroupsGiven], list[Unread]]:
    """Return the rows of the collection's consumer_groups.jsonl, if it has one."""
    for file in collection.files:
        if file.kind == GIVEN_GROUPS:
            text = decoded(collection.path_of(file).read_bytes())
            return parse_given_groups(text, file.name, collection.settings.cluster)
    return {}, []


def context_of(
    collection: Collection,
    cluster_pieces: Iterable[Evidence],
    stats: Iterable[FileStats],
    group_rows: Mapping[str, ConsumerGroupsGiven],
    assumed: Assumptions,
) -> ClusterContext:
    """Return the context of a collection whose files were read.

    It begins with the first line in a server's log that states something, otherwise with the first
    dump or client's line, and ends with the last line or dump. A client whose log continues for an
    hour after all servers and dumps has a wrong clock and does not make these outdated.
    """
    stats = list(stats)
    of_servers = [s.first_ms for s in stats if s.kind in SERVER_LOGS and s.first_ms]
    others = [s.first_ms for s in stats if s.first_ms]
    written = [file.written_ms for file in collection.files if file.written_ms]
    ends = [s.last_ms for s in stats if s.kind in SERVER_LOGS and s.last_ms] + written
    lines = [s.last_ms for s in stats if s.last_ms]
    if not (ends or lines):  # logs whose facts bound no period
        heads = _spans_of_heads(collection, stats, assumed)
        others, lines = ([span[end] for span in heads] for end in (0, 1))
    latest_ms = max(ends or lines, default=0) + HOUR_MS
    ends += [ms for ms in lines if ms <= latest_ms]
    zones = {
        file.place: zone
        for file in collection.files
        if file.kind == CLIENT_LOG and (zone := collection.settings.zone_of(file.name))
    }
    stated = ClusterContext(
        collection.settings.cluster,
        start_ms=min(of_servers or written or others or [0]),
        end_ms=max(ends, default=0),
        expected=collection.settings.brokers,
        assumed=assumed,
        group_rows=group_rows,
        client_zones=zones,
        client_settings=collection.settings.clients,
        redacted=collection.settings.redacted,
        client_logs=any(file.kind == CLIENT_LOG for file in collection.files),
    )
    logged, begins = _logged(collection, stats), _log_begins(collection, stats)
    return cluster_context(cluster_pieces, stated, collection.broker_folders, logged, begins)


def _spans_of_heads(
    collection: Collection, stats: Iterable[FileStats], assumed: Assumptions
) -> list[tuple[int, int]]:
    counted = {file_stats.name: file_stats for file_stats in stats}
    spans = (
        span_of_heads(file, counted[file.name], collection, assumed)
        for file in collection.files
        if file.is_log and file.name in counted
    )
    return [span for span in spans if span is not None]


def _logged(collection: Collection, stats: Iterable[FileStats]) -> dict[str, int]:
    """Return, for each folder with a broker.log, the time of its last line, or of its last routine
    line if only warnings follow.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    logged: dict[str, int] = {}
    for part in log_parts(collection.files, counted):
        if part.file.kind == BROKER_LOG:
            of_part, place = part.stats, part.host.place
            until_ms = ServerClock().second_ms(of_part.last_line) or 0
            routine_ms = ServerClock().second_ms(f"{max(of_part.steps, default='')}9") or until_ms
            until_ms = routine_ms if until_ms - routine_ms > PAUSE_MS else until_ms
            until_ms += of_part.shift_ms if until_ms else 0
            logged[place] = max(until_ms, logged.get(place, 0))
    return logged


def _log_begins(collection: Collection, stats: Iterable[FileStats]) -> dict[str, int]:
    """Return the folders whose broker.log states something, and when it first does."""
    first = {file_stats.name: file_stats.first_ms for file_stats in stats}
    begins: dict[str, int] = {}
    for file in collection.files:
        at_ms = first.get(file.name)
        if file.kind == BROKER_LOG and at_ms is not None:
            begins[file.place] = min(at_ms, begins.get(file.place, at_ms))
    return begins


def whole_refusals(stats: Iterable[FileStats]) -> dict[str, Unread]:
    """Return, by file, the single row of ``rejected`` for each file that was refused as a whole for
    one reason.
    """
    return {
        file_stats.name: Unread(
            file_stats.name,
            file_stats.first_line,
            file_stats.refused_whole,
            f"all {file_stats.lines} lines: {file_stats.why}",
        )
        for file_stats in stats
        if file_stats.refused_whole
    }


def is_of(source: str, files: Container[str]) -> bool:
    """Return True for a source (``file:line`` or ``file@byte``) in one of the files."""
    name, _, byte = source.rpartition("@")
    return file_of(source) in files or (byte.isdecimal() and name in files)
