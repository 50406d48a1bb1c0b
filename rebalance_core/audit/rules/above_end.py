"""COMMITS_ABOVE_END: the end of a queue moved back, and commits are above it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.audit import unknowns
from rebalance_core.audit.dumps import number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import BETWEEN_READS, messages
from rebalance_core.audit.rules.deleted_topics import deletions_of
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_settings import is_deleted
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, is_system_topic
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.protocol.first_pull import first_pull_correction

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CommittedOffsetsRow,
        OffsetCorrectedFact,
        OffsetIllegalFact,
    )

    SentFact: TypeAlias = OffsetCorrectedFact | OffsetIllegalFact

TopicBroker = tuple[str, str]
"""Topic and broker."""


@dataclass(frozen=True, slots=True)
class EndOffsetFall:
    """The end of a queue was seen at one offset, and later at a lower one."""

    high: int
    low: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Above:
    """The newest commit of a queue, and its end at that time or later."""

    commit: int
    end: int


def find(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic and broker (rocketmq.md §5.5)."""
    if is_broadcasting(group):
        return
    ends = _ends(group)
    falls = {queue: fall for queue, seen in ends.items() if (fall := _fall(seen))}
    above = _above(group, ends)
    sent = _sent_back(group)
    deleted = {
        (row["topic"], row["broker_name"]) for row in group.tables["topics"] if is_deleted(row)
    }
    places = {queue[:2] for queue in (*falls, *above)} | sent.keys()
    places = {place for place in places - deleted if not is_system_topic(place[0])}
    for topic, of_topic in sorted(grouped(sorted(places), lambda place: place[0]).items()):
        anew = _made_anew(group, topic, of_topic, falls)
        alone = [[place] for place in of_topic if place[1] not in anew]
        for together in (*([[(topic, broker) for broker in sorted(anew)]] if anew else ()), *alone):
            yield _finding(
                group,
                together,
                {queue: fall for queue, fall in falls.items() if queue[:2] in together},
                {queue: offsets for queue, offsets in above.items() if queue[:2] in together},
                [fact for place in together for fact in sent.get(place, ())],
                anew if together[0][1] in anew else {},
            )


def _made_anew(
    group: GroupSnapshot,
    topic: str,
    places: Iterable[TopicBroker],
    falls: Mapping[MessageQueue, EndOffsetFall],
) -> dict[str, int]:
    """Return the brokers on which the topic was deleted while its ends fell, and when.

    A deletion without an earlier observation of the ends counts, too.
    """
    deletions = deletions_of(group, topic)
    anew = {}
    for _, broker in places:
        of_place = [fall for queue, fall in falls.items() if queue[:2] == (topic, broker)]
        at_ms = deletions.get(broker)
        if at_ms is not None and all(fall.first_ms <= at_ms <= fall.last_ms for fall in of_place):
            anew[broker] = at_ms
    return anew


def _ends(group: GroupSnapshot) -> dict[MessageQueue, list[tuple[int, int]]]:
    """Return when and where the end of each queue was seen, in order of time."""
    ends: dict[MessageQueue, list[tuple[int, int]]] = {}
    for row in group.tables["queue_offsets"]:
        ends.setdefault(queue_of(row), []).append((row["observed_ms"], row["max_offset"]))
    for fact in group.facts["QUEUE_PROGRESS"]:
        if fact["details"].get("names_cut") != "true":
            seen = (fact["first_ms"], number(fact["details"].get("broker_offset"), 0))
            ends.setdefault(queue_of(fact), []).append(seen)
    return {queue: sorted(seen) for queue, seen in ends.items()}


def _fall(seen: list[tuple[int, int]]) -> EndOffsetFall | None:
    """Return the deepest fall between two observations; normally an end only grows."""
    falls = [
        EndOffsetFall(before, after, first_ms, last_ms)
        for (first_ms, before), (last_ms, after) in pairwise(seen)
        if after < before and first_ms < last_ms
    ]
    return max(falls, key=lambda fall: fall.high - fall.low, default=None)


def _above(
    group: GroupSnapshot, ends: dict[MessageQueue, list[tuple[int, int]]]
) -> dict[MessageQueue, Above]:
    """Return the queues whose commits lie above every end seen at the commit's time or later.

    The newest commit with such an end counts, and so do later ones, which a reset may have lowered.
    Commits in clients' logs have another clock, and do not count. Messages that the group may have
    read between the two offsets of one answer do not count either.
    """
    commits: dict[MessageQueue, list[CommittedOffsetsRow]] = {}
    for row in group.tables["committed_offsets"]:
        if row["client_id"] is None:
            commits.setdefault(queue_of(row), []).append(row)
    above = {}
    for queue, rows in commits.items():
        since: list[int] = []
        for row in sorted(rows, key=lambda row: row["observed_ms"], reverse=True):
            at_ms = row["observed_ms"]
            since.append(row["committed_offset"])
            later = [(ms, end) for ms, end in ends.get(queue, ()) if ms >= at_ms]
            if later:
                if min(since) > max(end + BETWEEN_READS * (ms == at_ms) for ms, end in later):
                    above[queue] = Above(min(since), max(end for _, end in later))
                break
    return above


def _sent_back(group: GroupSnapshot) -> dict[TopicBroker, list[SentFact]]:
    """Return pulls beyond the end that brokers sent back; pulls below the minimum go forward.

    Clients log them by queue; what a place's clients log is not also taken from its broker's log.
    """
    sent: dict[TopicBroker, list[SentFact]] = {}
    for fact in group.facts["OFFSET_ILLEGAL"]:
        if _is_back(fact):
            sent.setdefault((fact["topic"], fact["broker_name"]), []).append(fact)
    logged = set(sent)
    for corrected in group.facts["OFFSET_CORRECTED"]:
        place = corrected["topic"], corrected["broker_name"]
        if place not in logged and _is_back(corrected):
            sent.setdefault(place, []).append(corrected)
    return sent


def _is_back(fact: SentFact) -> bool:
    return number(fact["details"].get("asked")) > number(fact["details"].get("given"))


def _was_read(group: GroupSnapshot, fact: SentFact) -> bool:
    """Return whether the client had read the queue before, up to the offset that is gone.

    A client that has just taken over a queue asks for its commit, which may have been set above the
    end by hand.
    """
    if fact["kind"] != "OFFSET_ILLEGAL":
        return False
    return any(
        queue_of(row) == queue_of(fact)
        and row["client_id"] == fact["client_id"]
        and row["from_ms"] + MINUTE_MS < fact["first_ms"]
        and (row["to_ms"] is None or row["to_ms"] > fact["first_ms"])
        for row in group.tables["ownership"]
    )


def _given_up(sent: Iterable[SentFact]) -> set[MessageQueue]:
    """Return the queues that, according to their logs, clients dropped for an offset that the
    broker lacks.
    """
    return {queue_of(fact) for fact in sent if fact["kind"] == "OFFSET_ILLEGAL"}


def _finding(
    group: GroupSnapshot,
    places: Sequence[TopicBroker],
    falls: dict[MessageQueue, EndOffsetFall],
    above: dict[MessageQueue, Above],
    sent: list[SentFact],
    anew: Mapping[str, int],
) -> Finding:
    topic, broker = places[0]
    parts = []
    if anew:
        parts.append(f"{topic} was deleted at {utc(min(anew.values()))}{_and_again(group, places)}")
    if falls:
        deepest = max(falls.values(), key=lambda fall: fall.high - fall.low)
        when = "" if anew else f" ({_when(group, places[0], deepest)})"
        parts.append(
            f"the end of {topic} {_names(falls)} moved back from {deepest.high} to "
            f"{deepest.low}{when}"
        )
    if above:
        most = max(offsets.commit - offsets.end for offsets in above.values())
        parts.append(
            f"commits of {plural(len(above), 'queue')} of {topic} ({_names(above)}) are up to "
            f"{messages(most)} above the end"
        )
    target = _sent_to(group, places, above, sent)
    if target:
        parts.append(target)
    expected = len(places) == 1 and _is_expected(group, broker, falls)
    outdated = bool(falls) and not (above or anew or sent or expected)
    outdated = outdated and _in_one_round(group, places, falls)
    settled = (
        not above
        and not falls
        and not any(_was_read(group, fact) for fact in sent)
        and all(number(fact["details"].get("given")) > 0 for fact in sent)
    )
    follows = bool(anew) and not sent and _follows(group, falls, anew)
    severity: Severity = ERROR if above and group.members else WARNING
    if not above and (expected or settled or follows):
        severity = INFO
    times = [ms for fall in falls.values() for ms in (fall.first_ms, fall.last_ms)]
    times += [ms for fact in sent for ms in (fact["first_ms"], fact["last_ms"])]
    return Finding(
        f"{listed(name for _, name in places)}: {'; '.join(parts)}.",
        ({"deleted_from": listed(sorted(deletions_of(group, topic)))} if anew else {})
        | {
            "queues": _names({*falls, *above, *_given_up(sent)}) or "unknown",
            "asked": listed(sorted({f["details"]["asked"] for f in sent}), 5) or "unknown",
            "given": listed(sorted({f["details"]["given"] for f in sent}), 5) or "unknown",
        },
        severity=severity,
        topic=topic,
        broker_name=broker if len(places) == 1 else None,
        first_ms=min(times, default=None),
        last_ms=None if above else max(times, default=None),
        remedy=FOLLOWED if follows and not above else SET_OFFSETS if anew else None,
        unknown=unknowns.answer_outdated(topic, broker) if outdated else None,
    )


def _follows(
    group: GroupSnapshot,
    falls: Mapping[MessageQueue, EndOffsetFall],
    anew: Mapping[str, int],
) -> bool:
    """Return whether the group has committed on each queue since its topic was deleted.

    A later file may show the earlier commit, or a higher one. A lower commit is newer; if no file
    has an earlier commit, so is one at or below the end that fell.
    """
    before = {queue: fall.low + 1 for queue, fall in falls.items()}
    since: dict[MessageQueue, int] = {}
    for row in sorted(group.tables["committed_offsets"], key=lambda row: row["observed_ms"]):
        queue, offset = queue_of(row), row["committed_offset"]
        if queue not in falls:
            continue
        if row["observed_ms"] <= anew[queue.broker_name]:
            before[queue] = offset
        else:
            since[queue] = min(offset, since.get(queue, offset))
    return bool(falls) and all(queue in since and since[queue] < before[queue] for queue in falls)


def _and_again(group: GroupSnapshot, places: Collection[TopicBroker]) -> str:
    """Return when the topic was recreated, if its last configuration shows it."""
    made = [
        row["event_ms"]
        for row in group.tables["topics"]
        if (row["topic"], row["broker_name"]) in places and not is_deleted(row)
    ]
    return f" and recreated at {utc(min(made))}" if made else ""


def _when(group: GroupSnapshot, place: TopicBroker, fall: EndOffsetFall) -> str:
    """Describe what happened in between, and when."""
    made = [
        row["event_ms"]
        for row in group.tables["topics"]
        if (row["topic"], row["broker_name"]) == place
        and fall.first_ms <= row["event_ms"] <= fall.last_ms
    ]
    if made:
        return f"store lost or topic recreated at {utc(made[0])}"
    return f"store lost or topic recreated between {utc(fall.first_ms)} and {utc(fall.last_ms)}"


def _sent_to(
    group: GroupSnapshot,
    places: Sequence[TopicBroker],
    above: dict[MessageQueue, Above],
    sent: list[SentFact],
) -> str:
    """Return where pulls beyond the end are sent, according to the log or else the broker's
    version.
    """
    if sent:
        asked = sorted(number(fact["details"].get("asked")) for fact in sent)
        sent_to = sorted({number(fact["details"].get("given")) for fact in sent})
        span = f"{asked[0]}" if asked[0] == asked[-1] else f"{asked[0]} to {asked[-1]}"
        given_up = _given_up(sent)
        where = f" of {places[0][0]} {_names(given_up)}" if given_up else ""
        was_read = any(_was_read(group, fact) for fact in sent)
        lost = f"; the store lost the messages between, or {places[0][0]} was recreated"
        return (
            f"pulls{where} from {span} were redirected to "
            f"{listed([str(offset) for offset in sent_to], 3)} at "
            f"{utc(sent[0]['first_ms'])}{lost if was_read and not above else ''}"
        )
    versions = {group.run.versions.get(broker) for _, broker in places}
    version = versions.pop()
    if not above or versions or version is None:
        return ""
    low = {queue_of(row): row["min_offset"] for row in group.tables["queue_offsets"]}
    try:
        to = {
            first_pull_correction(
                offset=offsets.commit,
                min_offset=low[queue],
                max_offset=offsets.end,
                version=version,
            )
            == offsets.end
            for queue, offsets in above.items()
            if queue in low
        }
    except UsageError:
        return ""
    if to == {True}:
        return f"{version} moves a reader there to the end: it skips the stored messages"
    return f"{version} moves a reader there to 0: it reads the stored messages again" if to else ""


def _is_expected(
    group: GroupSnapshot, broker: str, falls: dict[MessageQueue, EndOffsetFall]
) -> bool:
    """Return True if every fall lies around an outage of the master, as a slave has an older
    copy.
    """
    outages = group.run.masters.get(broker, ())
    return bool(falls) and all(
        any(outage.down_ms <= fall.last_ms and not outage.over(fall.first_ms) for outage in outages)
        for fall in falls.values()
    )


def _in_one_round(
    group: GroupSnapshot,
    places: Sequence[TopicBroker],
    falls: Mapping[MessageQueue, EndOffsetFall],
) -> bool:
    """Return True if the ends fell only between dumps of one round, in which nothing happened."""
    begin_ms = min(fall.first_ms for fall in falls.values())
    end_ms = max(fall.last_ms for fall in falls.values())
    happened = [ms for _, broker in places for ms, _ in group.run.moments.get(broker, ())]
    happened += [
        row["event_ms"]
        for row in group.tables["topics"]
        if (row["topic"], row["broker_name"]) in places
    ]
    return end_ms - begin_ms < MINUTE_MS and not any(
        begin_ms - SECOND_MS <= ms <= end_ms + SECOND_MS for ms in happened
    )


def _names(queues: Iterable[MessageQueue]) -> str:
    return queue_names(sorted(queue[1:] for queue in queues))


SET_OFFSETS = (
    "Reset the group's offsets for the topic (resetOffsetByTime). After you delete a topic, delete "
    "its groups' offsets before you create it again: 4.9 brokers keep them."
)

FOLLOWED = (
    "Nothing: the group has committed below the new ends since. Find out whether it had read all "
    "messages before the topic was deleted."
)

RULE = Rule(
    "COMMITS_ABOVE_END",
    WARNING,
    "Commits are above the end of a queue, or the end moved back: the broker lost its store, or "
    "the topic was deleted and recreated. The broker moves readers to 0, so they read messages "
    "again (4.9.0 to 4.9.3, a queue that begins at 0), or to the end, so they skip stored "
    "messages. ERROR while an online group's commits lie above the end; INFO if the broker only "
    "moved a pull to the end.",
    "queue_offsets, committed_offsets, QUEUE_PROGRESS, OFFSET_CORRECTED, OFFSET_ILLEGAL",
    "Find out what happened to the broker's store, then reset the group's offsets there "
    "(resetOffsetByTime).",
    find,
    reads=(CAUSES,),
)
