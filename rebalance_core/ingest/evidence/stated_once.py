"""What two files of one log both state: a log copied twice, or copied again after its rotation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from rebalance_core.ingest.evidence.evidence import Evidence

FILE_BITS = 40
"""Of a position the lower bits are the place in the file, those above the turn of the file."""

_Span = tuple[int, int]


def stated_once(pieces: Iterable[Evidence]) -> list[Evidence]:
    """The evidence without what an earlier file of the same log has stated already.

    What one file states twice stays twice. Two pieces of a log that were rotated share at most the
    second of the rotation.

    Cost: linear; only what lies in the time of two files is compared.
    """
    pieces = list(pieces)
    shared = _shared_spans(pieces)
    if not shared:
        return pieces
    copies = set()
    before: Counter[str] = Counter()
    here: Counter[str] = Counter()
    turn = None
    for number in sorted(range(len(pieces)), key=lambda n: pieces[n].position >> FILE_BITS):
        piece = pieces[number]
        if not _in(piece, shared.get(piece.place, ())):
            continue
        if piece.position >> FILE_BITS != turn:
            turn = piece.position >> FILE_BITS
            before |= here
            here = Counter()
        said = _said(piece)
        here[said] += 1
        if here[said] <= before[said]:
            copies.add(number)
    return [piece for number, piece in enumerate(pieces) if number not in copies]


def _shared_spans(pieces: list[Evidence]) -> dict[str, list[_Span]]:
    """By place the times that more than one file covers."""
    if not any(piece.position >> FILE_BITS for piece in pieces):
        return {}
    spans: dict[str, dict[int, _Span]] = {}
    for piece in pieces:
        if piece.at_ms is not None:
            of_place = spans.setdefault(piece.place, {})
            turn = piece.position >> FILE_BITS
            first, last = of_place.get(turn, (piece.at_ms, piece.at_ms))
            of_place[turn] = (min(first, piece.at_ms), max(last, piece.at_ms))
    shared: dict[str, list[_Span]] = {}
    for place, of_place in spans.items():
        end = None
        for _, (first, last) in sorted(of_place.items()):
            if end is not None and first <= end:
                shared.setdefault(place, []).append((first, end))
            end = last if end is None else max(end, last)
    return shared


def _in(piece: Evidence, spans: Iterable[_Span]) -> bool:
    return piece.at_ms is not None and any(a <= piece.at_ms <= b for a, b in spans)


def _said(piece: Evidence) -> str:
    values = json.dumps(dict(piece.values), sort_keys=True, default=str)
    return json.dumps([piece.place, piece.kind, piece.part, piece.key, piece.at_ms, values])
