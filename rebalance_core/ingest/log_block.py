"""Lines of a log, block by block: the lines that its parser must read, and the counts of all.

Most lines of a log contain nothing of interest and are never looked at individually.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache, cached_property

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.ingest import collection
from rebalance_core.ingest.parse import log_lines, zones
from rebalance_core.ingest.parse.broker_log import WORDS as BROKER_WORDS
from rebalance_core.ingest.parse.client_log import WORDS as CLIENT_WORDS
from rebalance_core.ingest.parse.failed_requests import EXCEPTIONS
from rebalance_core.ingest.parse.lock_and_pop_logs import LOCK_TEMPLATES, POP_WORDS
from rebalance_core.ingest.parse.server_logs import NAMESRV_TEMPLATES, PROXY_WORDS

WORDS = {
    collection.NAMESRV_LOG: NAMESRV_TEMPLATES.words,
    collection.BROKER_LOG: BROKER_WORDS,
    collection.LOCK_LOG: LOCK_TEMPLATES.words,
    collection.POP_LOG: POP_WORDS,
    collection.CLIENT_LOG: (*CLIENT_WORDS, *EXCEPTIONS),
    collection.PROXY_LOG: PROXY_WORDS,
}
"""Every line of a log with a relevant fact contains one of these."""
HEADS = {
    kind: log_lines.CLIENT_HEAD if kind == collection.CLIENT_LOG else log_lines.SERVER_HEAD
    for kind in WORDS
}
"""The beginning of every line of a log; lines from another kind of log are not understood."""
STEP_CHARACTERS = len("yyyy-MM-dd HH:mm:s")
HOUR_CHARACTERS = len("yyyy-MM-dd HH")


def lines_in(block: bytes) -> pa.StringArray:
    """Return the lines of a block in UTF-8, broken characters as U+FFFD."""
    whole = pa.array([block], pa.binary())
    try:
        text = whole.cast(pa.string())
    except pa.ArrowInvalid:
        text = pa.array([block.decode("utf-8", "replace")], pa.string())
    lines = pc.split_pattern(text, "\n").flatten()
    return lines[:-1] if block.endswith(b"\n") else lines


@dataclass(frozen=True)
class LogBlock:
    """Lines of a log without the characters that copying leaves at their ends.

    Attributes:
        lines: the lines as RocketMQ writes them; blank ones are ignored.
        kind: the kind of the log.
    """

    lines: pa.StringArray
    kind: str

    @cached_property
    def written(self) -> pa.BooleanArray:
        """The lines that are not blank; no line with a head is."""
        without_head = pc.invert(self.headed)
        others = self.lines.filter(without_head)
        blank = pc.or_(pc.equal(others, ""), pc.utf8_is_space(others))
        return pc.replace_with_mask(self.headed, without_head, pc.invert(blank))

    @cached_property
    def headed(self) -> pa.BooleanArray:
        """Mask of the lines that have the head of their log."""
        return pc.match_substring_regex(self.lines, HEADS[self.kind])

    @cached_property
    def times(self) -> pa.StringArray:
        """The times of the lines with a head, as written."""
        return self._of_heads(0, log_lines.SECOND_CHARACTERS)

    @cached_property
    def local(self) -> pa.BooleanArray:
        """Mask of the times that are in the host's time zone; those of servers are not."""
        if self.kind != collection.CLIENT_LOG:
            return pa.repeat(False, len(self.times))
        column = log_lines.SECOND_CHARACTERS
        return pc.equal(self._of_heads(column, column + 1), log_lines.LOCAL_MARK)

    @cached_property
    def _heads(self) -> pa.BinaryArray:
        headed = self.lines.filter(self.headed) if self.headed.false_count else self.lines
        return headed.view(pa.binary())

    def _of_heads(self, start: int, stop: int) -> pa.StringArray:
        """Return some characters of the lines with a head, in which all are ASCII."""
        return pc.binary_slice(self._heads, start, stop).view(pa.string())

    def steps(self) -> dict[str, int]:
        """Count the routine lines, below WARN, in every 10 s, by the time as written."""
        of_client = self.kind == collection.CLIENT_LOG
        column = log_lines.CLIENT_LEVEL if of_client else log_lines.SERVER_LEVEL
        levels = self._of_heads(column, column + log_lines.ALARM_CHARACTERS)
        routine = pc.invert(pc.is_in(levels, pa.array(log_lines.ALARMS)))
        steps = self._of_heads(0, STEP_CHARACTERS).filter(routine)
        values, counts = pc.value_counts(steps).flatten()
        return dict(zip(values.to_pylist(), counts.to_pylist(), strict=True))

    def rows_to_read(self, zone: tzinfo | None) -> list[int]:
        """Return the lines that the parser has to read, in order.

        They are those that contain one of our words, and those without one that determine the time
        or meaning of a line that does.

        Args:
            zone: the zone of a client's host; None for a server.
        """
        worded = pc.match_substring_regex(self.lines, _any_of(WORDS[self.kind]))
        rows: list[int] = pc.indices_nonzero(worded).to_pylist()
        if self.kind == collection.PROXY_LOG:
            return self._with_neighbours(rows)
        repeated = () if zone is None else self._in_repeated_hours(zone)
        return sorted({*rows, *repeated}) if repeated else rows

    def _with_neighbours(self, rows: Sequence[int]) -> list[int]:
        """Return these lines and, for each, the previous and the next line with a head.

        A line without a head has the time of the previous head, and a multi-line entry ends at the
        next head. Heads of the neighbouring blocks count at the ends of this block.
        """
        heads: list[int] = pc.indices_nonzero(self.headed).to_pylist()
        around = {*rows, *heads[:1], *heads[-1:]}
        for row in rows:
            after = bisect_right(heads, row)
            around.update(heads[max(after - 1, 0) : after + 1])
        return sorted(around)

    def _in_repeated_hours(self, zone: tzinfo) -> list[int]:
        """Return the lines in an hour that the time zone repeats; earlier lines show to which pass
        they belong.
        """
        hours = pc.utf8_slice_codeunits(self.times, 0, HOUR_CHARACTERS)
        repeated = [
            hour
            for hour in pc.unique(hours.filter(self.local)).to_pylist()
            if zones.is_repeated(hour, zone)
        ]
        if not repeated:
            return []
        within = pc.and_(self.local, pc.is_in(hours, pa.array(repeated)))
        heads = pc.indices_nonzero(self.headed)
        rows: list[int] = heads.filter(within).to_pylist()
        return rows

    def understood(self, refused: Sequence[int]) -> pa.BooleanArray:
        """Return for each non-blank line whether it is understood; null for lines of a stack trace.

        Args:
            refused: lines with a refused part.
        """
        without_head = pc.invert(self.headed)
        stack = pc.match_substring_regex(self.lines.filter(without_head), log_lines.STACK_LINE)
        of_stack = pc.if_else(stack, pa.scalar(None, pa.bool_()), False)
        understood = pc.replace_with_mask(self.headed, without_head, of_stack)
        if refused:
            kept = [True] * len(self.lines)
            for row in refused:
                kept[row] = False
            understood = pc.and_kleene(understood, pa.array(kept))
        return understood.filter(self.written)

    def trace(self, row: int | None) -> tuple[int, bool]:
        """Count the lines that are understood together with a line with a head: the line and its
        stack trace.

        Args:
            row: the line; None if it is in an earlier block, so that its trace may continue here.

        Returns:
            The number of such lines in this block, and whether the trace may continue in the next
            one.
        """
        behind = LogBlock(self.lines.slice(0 if row is None else row + 1), self.kind)
        others = behind.understood(())
        end = pc.index(pc.is_valid(others), True).as_py()
        return (row is not None) + (len(others) if end < 0 else end), end < 0


@cache
def _any_of(words: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, sorted(set(words))))
