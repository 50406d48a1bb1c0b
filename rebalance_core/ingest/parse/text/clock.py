"""Clocks of log files: text of a time to epoch milliseconds UTC.

Servers and 5.1+ clients write GMT+8 whatever the host's zone is (pattern ``%d{…,GMT+8}``); 4.9 and
5.0 clients write the host's local time (rocketmq.md §10.1).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

SERVER_ZONE = timezone(timedelta(hours=8))
SECOND_CHARACTERS = 19  # yyyy-MM-dd HH:mm:ss
FIRST_YEAR, LAST_YEAR = 1990, 2200


class Clock:
    """Reads times written in one zone.

    In the hour that a zone lives twice, when its summer time ends, the first pass is taken unless
    the file has been there already: lines of one file must be given in order.
    """

    def __init__(self, zone: tzinfo = SERVER_ZONE) -> None:
        self.zone = zone
        self._text = ""
        self._ms: int | None = None
        self._last = 0

    def second_ms(self, text: str) -> int | None:
        """Epoch milliseconds of ``yyyy-MM-dd HH:mm:ss``, or None if the text is no such time."""
        if text != self._text:
            self._text, self._ms = text, self._read(text)
        return self._ms

    def _read(self, text: str) -> int | None:
        if len(text) != SECOND_CHARACTERS or text[4] != "-" or text[10] != " " or text[13] != ":":
            return None
        try:
            local = datetime.fromisoformat(text)
        except ValueError:
            return None
        if not FIRST_YEAR <= local.year < LAST_YEAR:
            return None
        at_ms = _ms(local.replace(tzinfo=self.zone))
        if at_ms < self._last:
            again = _ms(local.replace(tzinfo=self.zone, fold=1))
            at_ms = again if again >= self._last else at_ms
        self._last = at_ms
        return at_ms


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp()) * 1000
