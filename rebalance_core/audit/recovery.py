"""What shows that trouble which clients logged is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.audit.case import PERSISTENT_MS, GroupCase
from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.dumps import broker_answers, is_deleted
from rebalance_core.audit.orphans import SEEN_BEFORE_LOGGED_MS
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import EMPTY

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import NoMemberListFact, NotInMemberListFact, PopTimedOutFact

Trouble: TypeAlias = "NoMemberListFact | NotInMemberListFact | PopTimedOutFact"
"""What a client's log says, with its folder."""

RECOVERED_MS = PERSISTENT_MS
"""Each pass (20 s) logs the trouble anew. A client may ask another broker in each, so that a few
passes without it prove nothing; these are eight."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """When a client's trouble ended, epoch ms, and what shows that."""

    at_ms: int
    shown_by: str


def recovery(
    case: GroupCase, facts: Iterable[Trouble], *, by_lists: bool = False
) -> Recovery | None:
    """When the last client got over what it logged; None: of one of them nothing shows it.

    Args:
        case: the group.
        facts: of clients' logs, with the detail ``log``.
        by_lists: it is over, too, where all brokers list the client later.
    """
    newest: dict[tuple[str | None, str], Trouble] = {}
    for fact in sorted(facts, key=lambda one: one["last_ms"]):
        newest[fact["client_id"], fact["details"]["log"]] = fact
    last: Recovery | None = None
    for fact in newest.values():
        over = _went(case, fact) or _goes_on(case, fact)
        if over is None and by_lists:
            over = _listed(case, fact)
        if over is None:
            return None
        last = over if last is None or over.at_ms > last.at_ms else last
    return last


def goes_on_until(covered: Coverage, log: str, last_ms: int) -> int | None:
    """When the log of a client ends that has lines for `RECOVERED_MS` after a time, without a hole;
    None: it does not go on so long.
    """
    stretches = covered.clients.get(log, ())
    if not stretches or stretches[-1].to_ms - max(stretches[-1].from_ms, last_ms) <= RECOVERED_MS:
        return None
    return stretches[-1].to_ms


def went_after(case: GroupCase, client_id: str | None, last_ms: int) -> int | None:
    """When the client, or the last of all where it is not known, went after its last sign; None: it
    is a member still, or nothing shows its end.
    """
    if client_id is None:
        last = case.last_epoch
        stays: list[int | None] = (
            [last["from_ms"]] if last is not None and last["status"] == EMPTY else []
        )
    else:
        rows = case.tables["memberships"]
        stays = [row["to_ms"] for row in rows if row["client_id"] == client_id]
    ends = [ms for ms in stays if ms is not None]
    if not ends or len(ends) < len(stays) or max(ends) < last_ms - SEEN_BEFORE_LOGGED_MS:
        return None
    return max(last_ms, *ends)


def _went(case: GroupCase, fact: Trouble) -> Recovery | None:
    at_ms = went_after(case, fact["client_id"], fact["last_ms"])
    return None if at_ms is None else Recovery(at_ms, f"{fact['client_id'] or 'all members'} went")


def _goes_on(case: GroupCase, fact: Trouble) -> Recovery | None:
    """The client's log has lines for long after the last one on this."""
    client_id, last_ms, covered = fact["client_id"], fact["last_ms"], case.run.coverage
    log = fact["details"]["log"]
    until_ms = goes_on_until(covered, log, last_ms)
    if until_ms is not None:
        return Recovery(last_ms, f"the log in clients/{log} goes on until {utc(until_ms)} without")
    commits = [
        row["observed_ms"]
        for row in case.tables["committed_offsets"]
        if client_id is not None and row["client_id"] == client_id
    ]
    if covered.known or max(commits, default=0) - last_ms <= RECOVERED_MS:
        return None
    return Recovery(last_ms, f"{client_id} commits until {utc(max(commits))} without")


def _listed(case: GroupCase, fact: Trouble) -> Recovery | None:
    """Each broker of the group's topics lists the client in its newest answer, later than that."""
    brokers = {row["broker_name"] for row in case.tables["topics"] if not is_deleted(row)}
    newest: dict[str, int] = {}
    answers = [row for row in broker_answers(case) if row["observed_ms"] > fact["last_ms"]]
    for row in answers:
        broker = row["asked_broker"]
        newest[broker] = max(row["observed_ms"], newest.get(broker, 0))
    listing = {
        row["asked_broker"]
        for row in answers
        if row["client_id"] == fact["client_id"]
        and row["observed_ms"] == newest[row["asked_broker"]]
    }
    if fact["client_id"] is None or not brokers or not brokers <= listing:
        return None
    at_ms = max(newest[broker] for broker in brokers)
    return Recovery(at_ms, f"all brokers of its topics list {fact['client_id']}")
