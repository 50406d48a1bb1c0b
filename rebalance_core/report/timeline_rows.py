"""The rows of a timeline: one per queue, or one for all queues with the same history."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rebalance_core.report.audit_report import QueueHistory
from rebalance_core.report.segments import NOBODY, Segment, is_shared
from rebalance_core.strategies.pop import WHOLE_BROKER

MOST_ROWS = 60


RANGES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Queues of one topic on one broker that have the same history."""

    topic: str
    broker_name: str
    queue_ids: tuple[int, ...]
    history: tuple[Segment, ...]
    named: bool = False  # a finding names one of the queues

    @property
    def troubled(self) -> bool:
        """Whether no process, or more than one, held the queue at some time."""
        return any(s.state == NOBODY or is_shared(s.state) for s in self.history)

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """The precedence in drawing: rows that a finding names, then troubled rows, then rows with
        any change.
        """
        return not self.named, not self.troubled, len(self.history) <= 1

    @property
    def label(self) -> str:
        """The queue ids: ``7``, or ``0-63 (64 queues)``."""
        ids = ranges(self.queue_ids)
        count = len(self.queue_ids)
        return ids if count == 1 else f"{ids} ({count:,} queues)"


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """The drawn rows, and the number left out.

    Attributes:
        shown: the drawn rows, in the order of the queues.
        folded: whether a row may stand for several queues.
        left_out: the rows not drawn.
    """

    shown: tuple[TimelineRow, ...]
    folded: bool
    left_out: tuple[TimelineRow, ...]


def rows_of(
    histories: Iterable[tuple[QueueHistory, tuple[Segment, ...]]],
    named: frozenset[tuple[str, str, int]] = frozenset(),
    most: int = MOST_ROWS,
) -> TimelineRows:
    """Return at most `most` rows, in order.

    If there are more, neighbouring queues with the same history become one row; if that is not
    enough, all queues of a topic and broker with the same history do. Then rows are left out, first
    those without any change and last those that a finding names.
    """
    rows = [
        TimelineRow(q.topic, q.broker_name, (q.queue_id,), history, _key(q) in named)
        for q, history in histories
    ]
    folded = len(rows) > most
    if folded:
        rows = fold_neighbours(rows)
    if len(rows) > most:
        rows = fold_equal(rows)
    order = sorted(range(len(rows)), key=lambda place: (rows[place].rank, place))
    keep = set(order[:most])
    return TimelineRows(
        tuple(row for place, row in enumerate(rows) if place in keep),
        folded,
        tuple(row for place, row in enumerate(rows) if place not in keep),
    )


def fold_neighbours(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Merge consecutive rows of a topic and broker that have the same history."""
    return [_folded(list(run)) for _, run in groupby(rows, key=_same)]


def fold_equal(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Merge all rows of a topic and broker that have the same history, at the position of the
    first.
    """
    together: dict[Hashable, list[TimelineRow]] = {}
    for row in rows:
        together.setdefault(_same(row), []).append(row)
    return [_folded(group) for group in together.values()]


def ranges(queue_ids: Iterable[int]) -> str:
    """Return queue ids in short form; -1 stands for any queue on the broker.

    >>> ranges([0, 1, 2, 3, 7]), ranges(range(0, 5000, 3)), ranges([-1, 0])
    ('0-3, 7', '0, 3, 6 … 4998', 'any, 0')
    """
    ids = set(queue_ids)
    runs: list[list[int]] = []
    for queue_id in sorted(ids - {WHOLE_BROKER}):
        if runs and runs[-1][1] == queue_id - 1:
            runs[-1][1] = queue_id
        else:
            runs.append([queue_id, queue_id])
    texts = ["any"] if WHOLE_BROKER in ids else []
    texts += [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    if len(texts) <= RANGES_SHOWN + 1:
        return ", ".join(texts)
    return ", ".join(texts[:RANGES_SHOWN]) + " … " + texts[-1]


def _key(queue: QueueHistory) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id


def _same(row: TimelineRow) -> tuple[str, str, tuple[Segment, ...]]:
    return row.topic, row.broker_name, row.history


def _folded(rows: Sequence[TimelineRow]) -> TimelineRow:
    return TimelineRow(
        rows[0].topic,
        rows[0].broker_name,
        tuple(queue_id for row in rows for queue_id in row.queue_ids),
        rows[0].history,
        any(row.named for row in rows),
    )
