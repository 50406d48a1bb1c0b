"""Summarises a group's health in one word for on-call engineers: is every queue read by one member,
and fast enough?
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.audit.completeness import is_unsure
from rebalance_core.audit.rules import brokers_down
from rebalance_core.model.verdicts import (
    BEHIND,
    FALLS_BEHIND,
    IDLE,
    INFO,
    OFFLINE,
    OK,
    STALLED,
    STANDS_STILL,
    TWICE,
    UNKNOWN,
    UNREAD,
    Health,
    Progress,
    Verdict,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun

_BY_RULES: tuple[tuple[Health, frozenset[str]], ...] = (
    (
        UNREAD,
        frozenset(
            {
                "CONFIG_GAP",
                "MACHINE_ROOM_UNMATCHED",
                "ORPHAN_QUEUES",
                "QUEUES_NOT_READ",
                "READ_FEWER_THAN_WRITTEN",
                "UNSUBSCRIBED_SHARE",
            }
        ),
    ),
    (TWICE, frozenset({"DOUBLE_OWNER", "DUPLICATE_CLIENT_ID"})),
    (
        STALLED,
        frozenset(
            {
                "COMMIT_STANDS_STILL",
                "CONSUMER_BLOCKED",
                "GROUP_DISABLED",
                "POP_ORDER_BLOCKED",
                "STUCK_ORDER_LOCK",
            }
        ),
    ),
    (BEHIND, frozenset({"FALLS_BEHIND"})),
)
"""The rules whose findings above INFO determine the health, worst value first."""
_RUNNING = "RUNNING_NOT_LISTED"
_BROKER_DOWN = "BROKER_DOWN"
"""Its finding about a group names queues that no member can read, and is always INFO."""


def health_of(verdict: Verdict, progress: Progress, findings: Iterable[FindingsBegun]) -> Health:
    """Return the health of a group at the end of the audited period.

    The comparison with predicted owners does not count, but accepted findings do. UNREAD includes
    queues on a broker that is down, unless it was taken out and nothing waits there. OK and IDLE
    require that owners could be compared, that it is known what waits there, and that no finding
    that determines the health is INFO only for lack of evidence.

    Args:
        verdict: the comparison's verdict.
        progress: the group's progress.
        findings: the group's rows.
    """
    rows = list(findings)
    rules = {row["rule_id"] for row in rows if row["severity"] != INFO}
    if verdict == OFFLINE:
        return UNKNOWN if _RUNNING in rules else OFFLINE
    down = {_of_broker_down(row) for row in rows if row["rule_id"] == _BROKER_DOWN}
    if UNREAD in down:
        return UNREAD
    shown = next((word for word, of_word in _BY_RULES if rules & of_word), None)
    if shown is not None:
        return shown
    if progress == STANDS_STILL:
        return STALLED
    if progress == FALLS_BEHIND:
        return BEHIND
    unsure = {row["rule_id"] for row in rows if is_unsure(row)}
    if UNKNOWN in (verdict, progress, *down) or any(unsure & of_word for _, of_word in _BY_RULES):
        return UNKNOWN
    return IDLE if progress == IDLE else OK


def _of_broker_down(row: FindingsBegun) -> Health:
    """Return what a broker that is down makes of the health: OK if it was taken out empty."""
    if "planned" not in row["evidence"]:
        return UNREAD
    behind = row["evidence"]["behind"]
    return OK if behind == "0" else UNKNOWN if behind == brokers_down.UNKNOWN else UNREAD
