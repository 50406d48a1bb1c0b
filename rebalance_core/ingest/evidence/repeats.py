"""What logs repeat, second after second: the first of such statements is enough."""

from __future__ import annotations

from rebalance_core.contracts.fact_declaration import CLUSTER, GROUP, TOPIC
from rebalance_core.ingest.evidence.evidence import Evidence, thinning_of

_MOST_KNOWN = 100_000


class Repeats:
    """Tells what says something new from what repeats it, as `Thinning` has it.

    Of statements that are alike the first one counts. One that comes later and is of an earlier
    time, after a clock was set back, is new as well. Of more than 100,000 different ones some are
    new twice.
    """

    def __init__(self) -> None:
        self._thinning = {part: thinning_of(part) for part in (CLUSTER, GROUP, TOPIC)}
        self._first: dict[tuple[object, ...], tuple[object, ...]] = {}

    def is_new(self, piece: Evidence, fields: str) -> bool:
        """Whether the piece says something new.

        Args:
            piece: Any.
            fields: Its fields as one text.
        """
        thinning = self._thinning.get(piece.part, {}).get(piece.kind)
        if thinning is None:
            return True
        at_ms, window_ms = piece.at_ms, thinning.window_ms
        window = None if at_ms is None or window_ms is None else at_ms // window_ms
        place = piece.place if thinning.per_place else None
        alike = (piece.part, piece.key, piece.kind, fields, place, window)
        when = (at_ms or 0, piece.place, piece.position, piece.source)
        first = self._first.get(alike)
        if first is not None and first <= when:
            return False
        if len(self._first) >= _MOST_KNOWN:
            self._first.clear()
        self._first[alike] = when
        return True
