"""Answers from mqadmin that end with a complete row although another answer of their round has
more.

clusterList has no final line, and topicStatus has one only in later releases, so if their text was
cut off at the end of a line, only a topicRoute shows it.
"""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rebalance_core.ingest.collection import ADMIN, CLUSTER_LIST, CollectedFile
from rebalance_core.ingest.fact import CUT_OFF, UNPARSABLE_DOCUMENT, Unread
from rebalance_core.ingest.file_reader import END, LISTED, MOST_WITNESSES, ROUTED, FileStats
from rebalance_core.ingest.parse.column_names import is_truncated
from rebalance_core.ingest.parse.topic_status import BROKER_WIDTH
from rebalance_core.model.queue import java_string_key
from rebalance_core.model.times import BROKER_EXPIRY_MS, CHANNEL_SCAN_MS, MINUTE_MS

ROUND_MS = 10 * MINUTE_MS
"""The answers of one round are at most this far apart; a round may query thousands of topics."""
_EXPIRY_MS = BROKER_EXPIRY_MS + CHANNEL_SCAN_MS
"""Name servers still list a broker for this long after it has gone
(RouteInfoManager.scanNotActiveBroker).
"""

_STATUS, _ROUTE = "topicStatus", "topicRoute"
_Row = tuple[str, int]
"""A broker's name and the number of a queue."""


def short_answers(
    files: Iterable[CollectedFile],
    stats: Iterable[FileStats],
    brokers: AnyCollection[str],
    broker_turns: AnyCollection[int],
    topic_turns: Mapping[str, AnyCollection[int]],
) -> dict[str, str]:
    """Return, by file, where each answer ends that lacks rows found in a topicRoute of its round.

    Answers with refused parts are left out, because they are known to be incomplete.

    Args:
        files: the files of the collection.
        stats: the stats of each file.
        brokers: the brokers in routes that belong to the collection's cluster.
        broker_turns: when brokers came or went, epoch ms.
        topic_turns: by topic, when its queues changed on any broker, epoch ms.
    """
    counted = {each.name: each for each in stats}
    whole = [
        file
        for file in files
        if file.kind == ADMIN
        and not file.place
        and file.written_ms is not None
        and file.name in counted
        and not counted[file.name].partial
        and len(counted[file.name].witnessed) < MOST_WITNESSES
    ]
    routes: dict[str, list[tuple[CollectedFile, dict[str, int]]]] = {}
    for file in whole:
        if file.arguments[0] == _ROUTE:
            routed = _witnessed(counted[file.name], ROUTED)
            routes.setdefault(file.arguments[1], []).append((file, routed))
    return {
        **dict(_short_lists(whole, counted, routes, brokers, broker_turns)),
        **dict(_short_statuses(whole, counted, routes, broker_turns, topic_turns)),
    }


def with_short_answers(
    stats: Iterable[FileStats], short: Mapping[str, str]
) -> tuple[list[FileStats], list[Unread]]:
    """Return the counts of the files, with those in `short_answers` as cut off, and their refusals.

    Args:
        stats: the stats of each file.
        short: from `short_answers`.
    """
    refusals = [Unread(name, name, UNPARSABLE_DOCUMENT, why) for name, why in short.items()]
    cut = {
        each.name: replace(
            each,
            partial=short[each.name],
            why=each.why or short[each.name],
            rejected=each.rejected + 1,
            codes={UNPARSABLE_DOCUMENT: 1, **each.codes},
        )
        for each in stats
        if each.name in short
    }
    return [cut.get(each.name, each) for each in stats], refusals


_Routes = Mapping[str, list[tuple[CollectedFile, dict[str, int]]]]


def _short_lists(
    answers: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    routes: _Routes,
    brokers: AnyCollection[str],
    turns: AnyCollection[int],
) -> Iterator[tuple[str, str]]:
    """Yield each clusterList that lacks a broker, and where it ends.

    For each topic, the nearest route from the same minute counts, because within minutes a broker
    may come or go without a line in any log.
    """
    for file in answers:
        listed = _witnessed(counted[file.name], LISTED)
        if file.arguments[0] != CLUSTER_LIST or not listed:
            continue
        at_ms = _written_ms(file)
        for of_topic in routes.values():
            route, routed = min(of_topic, key=lambda route: abs(_written_ms(route[0]) - at_ms))
            missing = sorted({*brokers} & routed.keys() - listed.keys(), key=java_string_key)
            near = abs(_written_ms(route) - at_ms) <= MINUTE_MS
            if missing and near and _of_one_state(file, route, turns):
                yield file.name, f"{CUT_OFF}before {missing[0]}, which {route.name} has"
                break


def _short_statuses(
    answers: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    routes: _Routes,
    broker_turns: AnyCollection[int],
    topic_turns: Mapping[str, AnyCollection[int]],
) -> Iterator[tuple[str, str]]:
    """Yield each topicStatus that lacks the last queues of its topic, and where it ends.

    Its rows are sorted by broker and queue. An answer that lacks other queues, or has additional
    ones, is about a topic that was changed in between or that has logical queues. Only the newest
    earlier route counts, because a later one may have queues that the topic did not have yet. A
    broker comes and goes with all its queues, so this does not explain why only some of a broker's
    queues are missing.
    """
    for file in answers:
        if file.arguments[0] != _STATUS:
            continue
        topic = file.arguments[1]
        rows = {
            (broker, int(queue))
            for queue, _, broker in (
                name.removeprefix(f"{topic} ").partition(" ")
                for name in _witnessed(counted[file.name], END)
            )
        }
        earlier = [
            route for route in routes.get(topic, ()) if _written_ms(route[0]) <= _written_ms(file)
        ]
        if not rows or not earlier:
            continue
        route, routed = max(earlier, key=lambda route: _written_ms(route[0]))
        expected = sorted(_queues(routed), key=_in_order)
        cut = expected[: len(rows)] == sorted(rows, key=_in_order) and len(expected) > len(rows)
        if not cut or any(map(_may_be_cut, routed)):
            continue
        broker, queue = expected[len(rows)]
        turns = {*topic_turns.get(topic, ()), *(() if queue else broker_turns)}
        if _of_one_state(file, route, turns):
            yield file.name, f"{CUT_OFF}before {broker}:{queue}, which {route.name} has"


def _of_one_state(one: CollectedFile, other: CollectedFile, turns: AnyCollection[int]) -> bool:
    """Return whether both belong to the same round, and no queue or broker came or went in
    between.
    """
    first_ms, last_ms = sorted((_written_ms(one), _written_ms(other)))
    turned = any(first_ms - _EXPIRY_MS <= turn_ms <= last_ms for turn_ms in turns)
    return last_ms - first_ms <= ROUND_MS and not turned


def _witnessed(stats: FileStats, what: str) -> dict[str, int]:
    return {
        name.removeprefix(what): value
        for name, ((_, value), *_) in stats.witnessed.items()
        if name.startswith(what)
    }


def _written_ms(file: CollectedFile) -> int:
    assert file.written_ms is not None
    return file.written_ms


def _may_be_cut(broker: str) -> bool:
    return is_truncated(broker, BROKER_WIDTH)


def _queues(routed: Mapping[str, int]) -> Iterator[_Row]:
    for broker, queues in routed.items():
        yield from ((broker, queue) for queue in range(queues))


def _in_order(row: _Row) -> tuple[object, int]:
    broker, queue = row
    return java_string_key(broker), queue
