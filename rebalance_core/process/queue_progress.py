"""Measures groups' progress in their queues: latest commits and ends, their rates, and standstills.

Every offset is an observation, from copies of consumerOffset.json, commits in clients' logs,
consumerProgress, topicStatus or the ends in stores. mqadmin reads the two offsets of an answer at
different moments, so the difference for a busy group fluctuates and may be negative. This is noise;
the number of unread messages is never below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_core.contracts.progress import (
    COMMIT_FELL,
    END_BELOW_COMMIT,
    NO_COMMIT,
    NO_END,
    READ_APART,
    SNAPSHOT_PROGRESS,
)
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.kernels import segments
from rebalance_core.kernels.codes import encode
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_of_run, ranges
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import MINUTE_MS, STANDSTILL_MS
from rebalance_core.model.verdicts import LITE_TOPIC

Floats: TypeAlias = NDArray[np.float64]
_QUEUE = ("topic", "broker_name", "queue_id")
_STORE, _MQADMIN = "", "mqadmin"
"""The clock that dates an observation outside clients' logs."""
_FLICKER_MS = 10_000
"""Two observations this close together may have been made in the reverse order, so a lower second
value is not a drop.
"""
_BEFORE_ALL = np.iinfo(np.int64).min
_AFTER_ALL = np.iinfo(np.int64).max
OF_LITE_TOPIC = "INGEST_LITE_TOPIC"
"""The finding that a group reads a topic of type LITE."""
_OF_COMMIT_AND_END = (
    "unread",
    "commit_rate",
    "end_rate",
    "still_since_ms",
    "waits_since_ms",
    "unread_before",
    "unread_before_ms",
)
"""Figures that a group's commit on a lite topic's parent does not show."""


class _Seen(NamedTuple):
    """Observations of one kind of offset, sorted by subject, time and offset.

    Attributes:
        of: the code of each observation's subject.
        at_ms: its time.
        offset: its value.
        clock: the code of the clock that dates it.
    """

    of: Ints
    at_ms: Ints
    offset: Ints
    clock: Ints

    @classmethod
    def sorted(cls, of: Ints, rows: pa.Table, clock: Ints) -> tuple[_Seen, Ints]:
        """Sort observations (rows with ``at_ms`` and ``offset``), and also return the order of the
        rows.
        """
        at_ms, offset = rows["at_ms"].to_numpy(), rows["offset"].to_numpy()
        order = np.lexsort((offset, at_ms, of))
        return cls(of[order], at_ms[order], offset[order], clock[order]), order

    def spans(self, count: int) -> tuple[Ints, Ints]:
        """Return where the observations of each code begin and end."""
        codes = np.arange(count)
        return self.of.searchsorted(codes), self.of.searchsorted(codes, side="right")

    def rates(self, count: int) -> tuple[Floats, Bools]:
        """Return messages per second over the longest period dated by one clock, and which codes
        have such a period.

        Observations before a drop do not count, nor does an empty new queue.
        """
        order = np.lexsort((self.offset, self.at_ms, self.clock, self.of))
        order = order[self.offset[order] > 0]
        of, at_ms, offset = self.of[order], self.at_ms[order], self.offset[order]
        clock = self.clock[order]
        falls = (np.roll(offset, 1) > offset) & (at_ms - np.roll(at_ms, 1) > _FLICKER_MS)
        begins = first_of_run(of, clock) | falls
        begin = np.maximum.accumulate(np.where(begins, np.arange(len(of)), 0))
        last = np.flatnonzero(last_of_run(of, clock))
        first = begin[last]
        lasted = at_ms[last] - at_ms[first]
        by_length = np.lexsort((lasted, of[last]))
        longest = by_length[last_of_run(of[last][by_length])]
        first, last, lasted = first[longest], last[longest], lasted[longest]
        rate, has_rate = np.zeros(count), np.zeros(count, np.bool_)
        timed = lasted > 0
        moved = np.maximum(offset[last] - offset[first], 0)[timed]
        rate[of[last][timed]] = moved * 1000 / lasted[timed]
        has_rate[of[last][timed]] = True
        return rate, has_rate


def queue_progress(tables: Mapping[str, pa.Table], topics: pa.Table) -> pa.Table:
    """Return the rows of `SNAPSHOT_PROGRESS` without holders, for all groups except broadcasting
    ones.

    Args:
        tables: ``committed_offsets``, ``queue_offsets``, ``observed_facts``,
            ``consumer_groups`` and ``findings``, where they exist.
        topics: the cluster, consumer_group and topic that groups read.
    """
    answers = _answers(tables)
    commits, ends = _commits(tables, answers), _ends(tables, answers)
    queues = _Queues(commits, ends)
    groups, (group_c, group_e, group_t) = encode(
        *(rows["consumer_group"] for rows in (commits, ends, topics))
    )
    # a group reads the queues of its topics, those with its commits, and those in answers about it
    own = group_e >= 0
    queue_t, group_t = queues.with_readers(segments.distinct(queues.of_ends[~own]), topics, group_t)
    read = np.concatenate((queues.of_commits, queues.of_ends[own], queue_t)) * len(groups)
    read += np.concatenate((group_c, group_e[own], group_t))
    pair, row = np.unique(read, return_inverse=True)
    queue, group = np.divmod(pair, max(1, len(groups)))
    row_c, row_e = np.split(row[: len(commits) + own.sum()], [len(commits)])
    # Spark tasks lack the answers about other groups, so the ends in those are ignored
    looks, row_l = _of_each(queues.of_ends, np.flatnonzero(~own), queue)
    ends = ends.take(pa.array(np.concatenate((np.flatnonzero(own), looks))))
    row_e = np.concatenate((row_e, row_l))
    _, (clock,) = encode(commits["clock"])
    commit, order_c = _Seen.sorted(row_c, commits, clock)
    end, order = _Seen.sorted(row_e, ends, np.zeros_like(row_e))
    figures = _figures(commit, end, ends["low"].to_numpy()[order], len(pair))
    stored_ms = _stored_ms(commit, commits["stored_ms"].to_numpy()[order_c], end, len(pair))
    columns = {
        "consumer_group": groups.take(pa.array(group)),
        "client_id": pa.nulls(len(pair), pa.string()),
        "expires_ms": pa.nulls(len(pair), pa.int64()),
        **queues.columns(queue),
        **figures,
        "stored_ms": pa.array(stored_ms, mask=stored_ms == _BEFORE_ALL),
    }
    rows = pa.table({name: columns[name] for name in SNAPSHOT_PROGRESS.column_names})
    rows = rows.cast(SNAPSHOT_PROGRESS.arrow_schema())
    return _not_broadcasting(_without_lite_topics(rows, tables), tables)


def _of_each(of: Ints, some: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return the rows with each requested code, and the position of that code."""
    some = some[np.argsort(of[some], kind="stable")]
    begin = of[some].searchsorted(wanted)
    counts = of[some].searchsorted(wanted, side="right") - begin
    return some[ranges(begin, counts)], np.arange(len(wanted)).repeat(counts)


class _Queues:
    """The queues named in commits and ends, numbered in the order of their names.

    Attributes:
        of_commits: the number of each commit's queue; of_ends: the number of each end's queue.
    """

    def __init__(self, commits: pa.Table, ends: pa.Table) -> None:
        both = pa.concat_tables([rows.select(["cluster", *_QUEUE]) for rows in (commits, ends)])
        self._names = both.combine_chunks()
        codes = [encode(both[name])[1][0] for name in ("cluster", "topic", "broker_name")]
        codes.append(both["queue_id"].to_numpy().astype(np.int64))
        order = np.lexsort(codes[::-1])
        new = first_of_run(*(code[order] for code in codes))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = new.cumsum() - 1
        self._first = order[new]
        self.of_commits, self.of_ends = np.split(numbers, [len(commits)])

    def columns(self, numbers: Ints) -> dict[str, pa.ChunkedArray]:
        """Return the names of queues by their numbers."""
        rows = self._names.take(pa.array(self._first[numbers]))
        return {name: rows[name] for name in rows.column_names}

    def with_readers(self, queue: Ints, topics: pa.Table, groups: Ints) -> tuple[Ints, Ints]:
        """Return every pair of a given queue and a group that reads its topic.

        Args:
            queue: numbers of the queues.
            topics: the topics that groups read.
            groups: the code of each topic row's group.
        """
        named = self.columns(queue)
        _, of_cluster = encode(named["cluster"], topics["cluster"])
        names, of_topic = encode(named["topic"], topics["topic"])
        mine, read = (of_cluster[n] * len(names) + of_topic[n] for n in (0, 1))
        rows, place = _of_each(read, np.arange(len(read)), mine)
        return queue[place], groups[rows]


def with_holders(progress: pa.Table, ownership: pa.Table | None) -> pa.Table:
    """Return the rows with the holder of each queue at the end, according to open rows of
    ``ownership``.
    """
    if ownership is None or not len(progress):
        return progress
    held = ownership.filter(
        pc.and_(pc.is_null(ownership["to_ms"]), pc.is_valid(ownership["client_id"]))
    )
    keys = [*GROUP, *_QUEUE]
    single = held.group_by(keys).aggregate([("client_id", "min"), ("client_id", "max")])
    single = single.filter(pc.equal(single["client_id_min"], single["client_id_max"]))
    numbered = progress.select(keys).append_column("_row", pa.array(np.arange(len(progress))))
    joined = numbered.join(
        single.select([*keys, "client_id_min"]), keys=keys, join_type="left outer"
    )
    holders = joined.sort_by("_row")["client_id_min"].combine_chunks()
    place = progress.column_names.index("client_id")
    return progress.set_column(place, progress.schema.field(place), holders)


def with_expiry(progress: pa.Table, retention_ms: Mapping[tuple[str, str], int]) -> pa.Table:
    """Return the rows with the earliest time at which the oldest unread message may be deleted.

    A message exists when the end of its queue is observed, so it is deleted later than that.

    Args:
        progress: rows with ``stored_ms``.
        retention_ms: how long messages are kept, by cluster and broker.
    """
    if not retention_ms or not len(progress):
        return progress
    clusters, (of_cluster,) = encode(progress["cluster"])
    brokers, (of_broker,) = encode(progress["broker_name"])
    pairs = product(clusters.to_pylist(), brokers.to_pylist())
    kept_of_pair = pa.array([retention_ms.get(pair) for pair in pairs], pa.int64())
    kept_ms = kept_of_pair.take(pa.array(of_cluster * len(brokers) + of_broker))
    expires_ms = pc.max_element_wise(
        pc.add(progress["stored_ms"], kept_ms), progress["end_ms"], skip_nulls=False
    )
    waits = pc.fill_null(pc.greater(progress["unread"], 0), fill_value=False)
    place = progress.column_names.index("expires_ms")
    expires_ms = pc.if_else(waits, expires_ms, None)
    return progress.set_column(place, progress.schema.field(place), expires_ms)


def _figures(commit: _Seen, end: _Seen, low: Ints, rows: int) -> dict[str, pa.Array]:
    """Return all columns that follow from the observations, a value per row."""
    begin, after = commit.spans(rows)
    committed, committed_ms, has_commit = _last(commit, begin, after)
    begin_e, after_e = end.spans(rows)
    ended, ended_ms, has_end = _last(end, begin_e, after_e)
    lowest = _lowest(low, begin_e, after_e)
    both = has_commit & has_end
    unread = np.maximum(ended - np.maximum(committed, lowest), 0)
    below = both & (ended < committed)
    apart = both & (abs(ended_ms - committed_ms) > MINUTE_MS)
    reason = np.select(
        (~has_commit, ~has_end, below, _fell(commit, begin, after), apart),
        (NO_COMMIT, NO_END, END_BELOW_COMMIT, COMMIT_FELL, READ_APART),
        "",
    )
    commit_rate, commit_timed = commit.rates(rows)
    end_rate, end_timed = end.rates(rows)
    since, still = _still(commit, end, (begin, after), (begin_e, after_e))
    before, before_ms, compared = _before(commit, end, rows)
    return {
        "committed": pa.array(committed, mask=~has_commit),
        "committed_ms": pa.array(committed_ms, mask=~has_commit),
        "end_offset": pa.array(ended, mask=~has_end),
        "end_ms": pa.array(ended_ms, mask=~has_end),
        "unread": pa.array(unread, mask=~both),
        "commit_rate": pa.array(commit_rate, mask=~commit_timed),
        "end_rate": pa.array(end_rate, mask=~end_timed),
        "still_since_ms": pa.array(since, mask=~still),
        "waits_since_ms": pa.array(since, mask=~has_commit),
        "last_below_ms": _last_below_ms(commit, begin, after),
        "reason": pa.array(reason.tolist(), pa.string(), mask=reason == ""),
        "unread_before": pa.array(before, mask=~compared),
        "unread_before_ms": pa.array(before_ms, mask=~compared),
    }


def _last(seen: _Seen, begin: Ints, after: Ints) -> tuple[Ints, Ints, Bools]:
    """Return the last offset of each span, its time, and which spans have one."""
    there = after > begin
    if not len(seen.of):
        nothing = np.zeros(len(begin), np.int64)
        return nothing, nothing, there
    last = after - 1
    return seen.offset[last], seen.at_ms[last], there


def _lowest(low: Ints, begin: Ints, after: Ints) -> Ints:
    """Return the latest minimum of each span; 0 where no observation has one (consumerProgress)."""
    if not len(low):
        return np.zeros(len(begin), np.int64)
    newest = np.maximum.accumulate(np.where(low >= 0, np.arange(len(low)), -1))[after - 1]
    return np.where(newest >= begin, low[newest], 0)


def _still(
    commit: _Seen, end: _Seen, commits: tuple[Ints, Ints], ends: tuple[Ints, Ints]
) -> tuple[Ints, Bools]:
    """Return when each commit last moved, and which commits do not move while messages wait.

    A standstill needs two observations of the same commit, and observations of the end that show
    that messages arrived in between: the end was at the commit before that, or two observations of
    the end differ. A commit below an earlier one is not a standstill, because a store copy that is
    older than assumed looks the same.
    """
    begin, after = commits
    same_ms, still = _unchanged_ms(commit, after), np.zeros(len(begin), np.bool_)
    since = same_ms.copy()
    if not len(commit.of) or not len(end.of):
        return since, still
    last, there = after - 1, after > begin
    lasted = commit.at_ms[last] - same_ms
    timed = there & ~_fell(commit, begin, after) & (lasted >= STANDSTILL_MS)
    rows = np.flatnonzero(timed & (ends[1] > ends[0]))
    if not len(rows):
        return since, still
    counts = (ends[1] - ends[0])[rows]
    looks = ranges(ends[0][rows], counts)
    starts = np.cumsum(counts) - counts
    until = commit.at_ms[last][rows]
    stays = commit.offset[last][rows]
    above = end.offset[looks] > stays.repeat(counts)
    looked = end.at_ms[looks] <= (until + MINUTE_MS).repeat(counts)
    idle_ms = np.maximum.reduceat(np.where(looked & ~above, end.at_ms[looks], _BEFORE_ALL), starts)
    waits = looked & above & (end.at_ms[looks] > idle_ms.repeat(counts))
    waits_ms = np.minimum.reduceat(np.where(waits, end.at_ms[looks], _AFTER_ALL), starts)
    least = np.minimum.reduceat(np.where(waits, end.offset[looks], _AFTER_ALL), starts)
    most = np.maximum.reduceat(np.where(waits, end.offset[looks], _BEFORE_ALL), starts)
    grown = (most > least) | (idle_ms > _BEFORE_ALL) & (most > stays)
    from_ms = np.maximum(same_ms[rows], idle_ms)
    surely = np.maximum(from_ms, np.minimum(waits_ms, until)) + STANDSTILL_MS <= until
    since[rows] = from_ms
    still[rows] = grown & surely
    return since, still


def _fell(commit: _Seen, begin: Ints, after: Ints) -> Bools:
    """Return the spans in which a commit more than a minute before the last one was higher.

    Closer observations do not count because a store that is written every five seconds may be
    older.
    """
    if not len(commit.of):
        return np.zeros(len(begin), np.bool_)
    before = commit.at_ms < commit.at_ms[after - 1][commit.of] - MINUTE_MS
    highest = np.full(len(begin), _BEFORE_ALL)
    np.maximum.at(highest, commit.of[before], commit.offset[before])
    return (after > begin) & (highest > commit.offset[after - 1])


def _unchanged_ms(commit: _Seen, after: Ints) -> Ints:
    """Return when the offset of each span's last commit was first seen; empty spans have no
    time.
    """
    if not len(commit.of):
        return np.zeros(len(after), np.int64)
    new = first_of_run(commit.of, commit.offset)
    begin = np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))
    return commit.at_ms[begin[after - 1]]


def _last_below_ms(commit: _Seen, begin: Ints, after: Ints) -> pa.Array:
    """Return when the commit of each span was last seen at a lower offset, or null."""
    if not len(commit.of):
        return pa.nulls(len(after), pa.int64())
    last = np.maximum(after - 1, 0)
    lower = commit.offset < commit.offset[last][commit.of]
    below_ms = np.full(len(after), _BEFORE_ALL)
    np.maximum.at(below_ms, commit.of[lower], commit.at_ms[lower])
    return pa.array(below_ms, mask=below_ms == _BEFORE_ALL)


def _before(commit: _Seen, end: _Seen, rows: int) -> tuple[Ints, Ints, Bools]:
    """Return the largest possible number of unread messages of each row, its time, and which rows
    have them: at the last end at which none was unread, otherwise at the first end after a commit.
    """
    before, at_ms = (np.zeros(rows, np.int64) for _ in range(2))
    compared = np.zeros(rows, np.bool_)
    if not len(commit.of) or not len(end.of):
        return before, at_ms, compared
    times = np.unique(np.concatenate([commit.at_ms, end.at_ms]))
    made, seen = (each.of * len(times) + times.searchsorted(each.at_ms) for each in (commit, end))
    newest = made.searchsorted(seen, side="right") - 1
    after = np.flatnonzero((newest >= 0) & (commit.of[newest] == end.of))
    unread = np.maximum(end.offset[after] - commit.offset[newest[after]], 0)
    first, idle = first_of_run(end.of[after]), unread == 0
    last_idle = np.flatnonzero(idle)[last_of_run(end.of[after[idle]])]
    for chosen in (np.flatnonzero(first), last_idle):
        of, place = end.of[after[chosen]], after[chosen]
        before[of], at_ms[of], compared[of] = unread[chosen], end.at_ms[place], True
    return before, at_ms, compared


def _stored_ms(commit: _Seen, consumed_ms: Ints, end: _Seen, rows: int) -> Ints:
    """Return the earliest time at which the first message after each row's commit was stored.

    The message was stored no earlier than the one before it, which consumerProgress dates, and
    later than every observation in which the end was not beyond the commit. Where neither is known,
    the result is the smallest number.

    Args:
        commit: the commits.
        consumed_ms: when the last message before each commit was stored; `_BEFORE_ALL` if unknown.
        end: the ends.
        rows: the number of rows.
    """
    stored_ms = np.full(rows, _BEFORE_ALL)
    begin, after = commit.spans(rows)
    has_commit = np.flatnonzero(after > begin)
    committed = np.zeros(rows, np.int64)
    committed[has_commit] = commit.offset[after[has_commit] - 1]
    last = commit.offset == committed[commit.of]
    np.maximum.at(stored_ms, commit.of[last], consumed_ms[last])
    nothing_more = (end.offset <= committed[end.of]) & (after > begin)[end.of]
    np.maximum.at(stored_ms, end.of[nothing_more], end.at_ms[nothing_more])
    return stored_ms


def _commits(tables: Mapping[str, pa.Table], answers: pa.Table | None) -> pa.Table:
    """Return every observed commit: group, queue, at_ms, offset, stored_ms (of the last message
    before it), clock.
    """
    keys = [*GROUP, *_QUEUE]
    names = [*keys, "at_ms", "offset", "stored_ms", "clock"]
    parts = []
    if "committed_offsets" in tables:
        rows = tables["committed_offsets"]
        clock = pc.fill_null(rows["client_id"].cast(pa.string()), _STORE)
        columns = [*(rows[name] for name in keys), rows["observed_ms"], rows["committed_offset"]]
        columns.append(pa.array(np.full(len(rows), _BEFORE_ALL)))
        parts.append(pa.table([*columns, clock], names))
    if answers is not None:
        # mqadmin prints 0 for a queue without a commit
        offset = _number(answers, "consumer_offset")
        columns = [*(answers[name] for name in keys), answers["first_ms"], offset]
        columns.append(pc.fill_null(_number(answers, "last_time_ms"), _BEFORE_ALL))
        columns.append(pa.array([_MQADMIN] * len(answers)))
        parts.append(pa.table(columns, names).filter(pc.greater(offset, 0)))
    return _together(parts, names, ("cluster", "consumer_group", "topic", "broker_name", "clock"))


def _ends(tables: Mapping[str, pa.Table], answers: pa.Table | None) -> pa.Table:
    """Return every observed end: queue, at_ms, offset, low (-1 if not observed), group of the
    answer.

    ``consumer_group`` is null for answers that do not concern a group.
    """
    keys = ["cluster", *_QUEUE]
    names = [*keys, "at_ms", "offset", "low", "consumer_group"]
    parts = []
    if "queue_offsets" in tables:
        rows = tables["queue_offsets"]
        columns = [rows[name] for name in (*keys, "observed_ms", "max_offset", "min_offset")]
        columns.append(pa.nulls(len(rows), pa.string()))
        parts.append(pa.table(columns, names))
    if answers is not None:
        offset = _number(answers, "broker_offset")
        columns = [*(answers[name] for name in keys), answers["first_ms"], offset]
        columns += [pa.array(np.full(len(answers), -1)), answers["consumer_group"]]
        parts.append(pa.table(columns, names).filter(pc.is_valid(offset)))
    return _together(parts, names, ("cluster", "topic", "broker_name", "consumer_group"))


def _answers(tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """Return the rows of consumerProgress without truncated names, or None without such a table."""
    if "observed_facts" not in tables:
        return None
    facts = tables["observed_facts"]
    facts = facts.filter(pc.equal(facts["kind"], "QUEUE_PROGRESS"))
    whole = pc.fill_null(pc.not_equal(_detail(facts, "names_cut"), "true"), fill_value=True)
    named = [pc.is_valid(facts[name]) for name in ("consumer_group", *_QUEUE)]
    for there in named:
        whole = pc.and_(whole, there)
    return facts.filter(whole)


def _detail(facts: pa.Table, name: str) -> pa.ChunkedArray:
    return pc.map_lookup(facts["details"], pa.scalar(name), "first")


def _number(facts: pa.Table, name: str) -> pa.ChunkedArray:
    text = _detail(facts, name)
    digits = pc.match_substring_regex(text, r"^\d{1,18}$")
    return pc.if_else(digits, text, None).cast(pa.int64())


def _together(parts: list[pa.Table], names: list[str], texts: tuple[str, ...]) -> pa.Table:
    schema = pa.schema((n, pa.string() if n in texts else pa.int64()) for n in names)
    parts = [part.cast(schema) for part in parts]
    return pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()


def _without_lite_topics(rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the rows, with `LITE_TOPIC` instead of the figures in those of lite topics.

    Clients commit on the queue ``%LMQ%$topic$lite topic`` (``LiteUtil.toLmqName``, 5.5), while the
    queue's end counts the messages of all lite topics.
    """
    if "findings" not in tables or not len(rows):
        return rows
    found = tables["findings"]
    found = found.filter(pc.equal(found["rule_id"].cast(pa.string()), OF_LITE_TOPIC))
    found = found.filter(pc.is_valid(found["consumer_group"]))
    if not len(found):
        return rows
    lite = {*zip(*(found[name].to_pylist() for name in (*GROUP, "topic")), strict=True)}
    keys = zip(*(rows[name].to_pylist() for name in (*GROUP, "topic")), strict=True)
    is_lite = pa.array([key in lite for key in keys])
    for name in (*_OF_COMMIT_AND_END, "reason"):
        place = rows.column_names.index(name)
        value = pa.scalar(LITE_TOPIC if name == "reason" else None, rows.schema.types[place])
        changed = pc.if_else(is_lite, value, rows[name])
        rows = rows.set_column(place, rows.schema.field(place), changed)
    return rows


def _not_broadcasting(rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
    if "consumer_groups" not in tables or not len(rows):
        return rows
    groups = tables["consumer_groups"]
    model = pc.fill_null(groups["message_model"].cast(pa.string()), "")
    of_all = groups.filter(pc.equal(model, BROADCASTING)).select(list(GROUP))
    return rows.join(of_all, keys=list(GROUP), join_type="left anti") if len(of_all) else rows
