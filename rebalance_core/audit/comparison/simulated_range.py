"""How late a live difference is, against the simulated futures of the change before it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.formatting import plural
from rebalance_core.model.times import SECOND_MS


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Queues seen otherwise than predicted while a change may not have reached everybody.

    Attributes:
        change_ms: the change, epoch ms.
        seen_ms: the last look that differed, epoch ms.
        queues: how many differed then.
    """

    change_ms: int
    seen_ms: int
    queues: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """What the simulation says of it.

    Attributes:
        words: for the summary; begins with a space.
        evidence: what was compared.
        late: later than every simulated future.
    """

    words: str
    evidence: dict[str, str]
    late: bool


def lateness(case: GroupCase, unsettled: Unsettled) -> Lateness | None:
    """How late the queues are; None where ``propagation`` has no row of the change.

    The windows of the ledger hold for every future, lost notifications left out. The simulation
    tells how usual such a delay is: within its range it is what the change does, beyond it few
    futures or none of them are so late.
    """
    row = next(
        (row for row in case.rows("propagation") if row["change_ms"] == unsettled.change_ms), None
    )
    if row is None:
        return None
    age_ms = unsettled.seen_ms - unsettled.change_ms
    what, late = _how_late(row, age_ms)
    queues = plural(unsettled.queues, "queue")
    words = f" {queues} differed {_seconds(age_ms)} after the change, {what}."
    evidence = {
        "differed_after_s": _seconds(age_ms).removesuffix(" s"),
        "simulated_p99_s": _seconds(row["convergence_ms_p99"]).removesuffix(" s"),
        "simulated_max_s": _seconds(row["convergence_ms_max"]).removesuffix(" s"),
    }
    return Lateness(words, evidence, late)


def _how_late(row: Row, age_ms: int) -> tuple[str, bool]:
    longest = _seconds(row["convergence_ms_max"])
    slowest = f"the slowest of its simulated futures settles within {longest}"
    for share, words in (
        ("p50", "as in more than half of its simulated futures"),
        ("p95", "as in 1 of 20 of its simulated futures or more"),
        ("p99", "as in 1 of 100 of its simulated futures or more"),
    ):
        if age_ms <= row[f"convergence_ms_{share}"]:
            return words, False
    if age_ms <= row["convergence_ms_max"]:
        return f"which fewer than 1 of 100 of its simulated futures are; {slowest}", False
    return f"later than all of its simulated futures: {slowest}", True


def _seconds(span_ms: int) -> str:
    return f"{span_ms / SECOND_MS:.1f} s"
