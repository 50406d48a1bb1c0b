"""Facts grouped by use before they are addressed, so that mypy knows their fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeGuard

from rebalance_core.contracts.document_facts import FACT_SUBJECTS
from rebalance_core.ingest.fact import Fact, Stated, Unread

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import AnswerFact, DatingFact

_DATING, _ANSWER = map(frozenset, (FACT_SUBJECTS["dating"], FACT_SUBJECTS["answer"]))


def is_dating(fact: Fact) -> TypeGuard[DatingFact]:
    """Return True for facts that date a file or show the clock with which it was written."""
    return fact.kind in _DATING


def answers(results: Iterable[Fact | Unread]) -> Iterator[AnswerFact]:
    """Yield the facts by which an mqadmin output is judged as a whole."""
    return (piece for piece in results if isinstance(piece, Stated) and is_answer(piece))


def is_answer(fact: Fact) -> TypeGuard[AnswerFact]:
    """Return True for rows, totals and failures by which an mqadmin output is judged."""
    return fact.kind in _ANSWER
