"""Finds mqadmin answers that are older than their names state, as from a cache or a wrong copy:
they repeat an earlier answer after what they show had changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rebalance_core.ingest.collection import CollectedFile
from rebalance_core.ingest.fact import OLD_ANSWER, Unreadable
from rebalance_core.ingest.file_reader import ANSWER, COMMIT, END, MOST_WITNESSES, FileStats
from rebalance_core.model.times import MINUTE_MS, SECOND_MS

PULLED_AGAIN_MS = 40 * SECOND_MS
"""A live client notes its next pull or pop within this time: a broker holds a pull for 15 s, and
the client gives a request up after 30 s and asks again within 3 s."""
CLOCKS_APART_MS = 10 * SECOND_MS
"""A greater difference between the clocks of a broker and of the machine that asks would be noticed
(`clock_offsets`)."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, with the time at which its command started (epoch ms)."""

    file: CollectedFile
    stats: FileStats
    at_ms: int


def old_answers(
    answers: Iterable[FileStats], files: Iterable[CollectedFile]
) -> dict[str, Unreadable]:
    """Return why each client's answer, and each answer with the ends of queues, is an earlier one.

    Args:
        answers: how each output of mqadmin was understood.
        files: the files of the collection.
    """
    by_name = {file.name: file for file in files}
    dated = [
        _Answer(file, stats, file.written_ms)
        for stats in answers
        if (file := by_name[stats.name]).written_ms is not None
    ]
    dated.sort(key=lambda answer: (answer.at_ms, answer.file.name))
    why = dict(chain(_of_clients(dated), _of_ends(dated)))
    return {name: Unreadable(OLD_ANSWER, message) for name, message in why.items()}


# A client records the time of each pull or pop, even of one that waits at the broker or is
# postponed because its cache is full. An answer with the text of an earlier one that showed a live
# client is that one, because otherwise the client would have stopped at that moment.
def _of_clients(answers: Iterable[_Answer]) -> Iterator[tuple[str, str]]:
    first: dict[tuple[str, str], _Answer] = {}
    for answer in answers:
        arguments = answer.file.arguments
        for text, ((pulled_ms, _), *_) in answer.stats.witnessed.items() if arguments[2:] else ():
            if text.startswith(ANSWER):
                earlier = first.setdefault((arguments[2], text), answer)
                was_live = pulled_ms > earlier.at_ms - PULLED_AGAIN_MS
                if was_live and answer.at_ms - earlier.at_ms > PULLED_AGAIN_MS:
                    message = f"it repeats {earlier.file.name}: no pull of the client is newer"
                    yield answer.file.name, message


# The end of a queue falls only if the broker loses messages or the topic is created anew. An answer
# that repeats all offsets of an earlier one to the same question is that one if another of the same
# minute still, or again, has the end to which the queue had grown. Commands of one round run beside
# each other, so that only an answer of a minute before shows how far it had grown, or topicStatus,
# which prints since when.
def _of_ends(answers: Iterable[_Answer]) -> Iterator[tuple[str, str]]:
    with_ends = [
        answer
        for answer in answers
        if any(_offsets(answer, END)) and len(answer.stats.witnessed) < MOST_WITNESSES
    ]
    seen: dict[str, list[_SeenEnd]] = defaultdict(list)
    for answer in with_ends:
        for queue, since_ms, end in _offsets(answer, END):
            by_ms = answer.at_ms + MINUTE_MS
            by_ms = min(since_ms + CLOCKS_APART_MS, by_ms) if since_ms else by_ms
            seen[queue].append(_SeenEnd(answer, end, by_ms))
    first: dict[tuple[object, ...], _Answer] = {}
    for answer in with_ends:
        ends = sorted((queue, end) for queue, _, end in _offsets(answer, END))
        commits = sorted(_offsets(answer, COMMIT))
        question = (answer.file.arguments, tuple(ends), tuple(commits))
        earlier = first.setdefault(question, answer)
        for queue, end in ends if earlier is not answer else ():
            if higher := _higher(seen[queue], earlier.at_ms, answer.at_ms, end):
                topic, queue_id, broker = queue.split(" ")
                yield (
                    answer.file.name,
                    f"it repeats {earlier.file.name}, and {higher.file.name}, of the same minute, "
                    f"has a higher end of {topic} {broker}:{queue_id}",
                )
                break


@dataclass(frozen=True, slots=True)
class _SeenEnd:
    """An end of a queue that an answer shows, and by when the queue had certainly reached it."""

    shown_by: _Answer
    end: int
    by_ms: int


def _offsets(answer: _Answer, what: str) -> Iterator[tuple[str, int, int]]:
    for name, ((since_ms, offset), *_) in answer.stats.witnessed.items():
        if name.startswith(what):
            yield name.removeprefix(what), since_ms, offset


def _higher(seen: Iterable[_SeenEnd], since_ms: int, at_ms: int, end: int) -> _Answer | None:
    """Return an answer of the same minute with the end to which a queue grew after a time; None if
    it did not, or if none shows it.

    Args:
        seen: the ends of the queue.
        since_ms: the time.
        at_ms: when it is ``end`` again.
        end: the lower end.
    """
    later = [each for each in seen if each.shown_by.at_ms > since_ms]
    grown = max((each.end for each in later if each.by_ms <= at_ms), default=end)
    near = (
        each.shown_by
        for each in later
        if each.end >= grown and abs(each.shown_by.at_ms - at_ms) <= MINUTE_MS
    )
    return next(near, None) if grown > end else None
