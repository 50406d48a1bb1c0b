"""Members that only brokers know alongside members that only proxies know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rebalance_core.audit import dumps, listings
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.listings import Answer
from rebalance_core.audit.recovery import Recovery, went_after
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR


@dataclass(frozen=True, slots=True)
class _Sides:
    """Members that allocate queues and appear in only one side's lists in a round of dumps."""

    at_ms: int
    at_brokers: tuple[str, ...]
    behind_proxies: tuple[str, ...]

    @property
    def apart(self) -> bool:
        return bool(self.at_brokers and self.behind_proxies)


def find_members_apart(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group's last round that shows it (rocketmq.md §14).

    A proxy with a broker around it (LOCAL) has that broker's list, so no member is apart there.
    gRPC clients allocate no queues, and a BROADCASTING member reads all queues anyway.
    """
    rounds = [] if is_broadcasting(group) else list(_rounds(group))
    shown = [round_ for round_ in rounds if round_.apart]
    if not shown:
        return
    last = shown[-1]
    again = next((round_.at_ms for round_ in rounds if round_.at_ms > last.at_ms), None)
    over = None
    if again is not None:
        over = Recovery(again, "a later round of dumps lists each of them on both sides")
    for side in (last.at_brokers, last.behind_proxies):
        went = [went_after(group, client_id, last.at_ms) for client_id in side]
        gone = [ms for ms in went if ms is not None]
        if over is None and len(gone) == len(went):
            over = Recovery(max(gone), f"{listed(side, 3)} left")
    yield Finding(
        f"{plural(len(last.at_brokers), 'member')} at brokers ({listed(last.at_brokers, 3)}) and "
        f"{len(last.behind_proxies)} behind proxies ({listed(last.behind_proxies, 3)}) do not see "
        f"each other (dumps of {utc(last.at_ms)}): each side divides all queues among its own "
        "members, so messages are consumed twice.",
        {"at_brokers": listed(last.at_brokers), "behind_proxies": listed(last.behind_proxies)},
        first_ms=shown[0].at_ms,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


def _rounds(group: GroupSnapshot) -> Iterator[_Sides]:
    """Yield every round of dumps in which brokers and proxies were asked."""
    answers = [(answer, False) for answer in listings.broker_answers(group)]
    answers += [(answer, True) for answer in listings.proxy_answers(group)]
    grpc = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    for together in listings.each_asked_once(
        dumps.fresh(group, answers, _answered_ms), lambda row: row[0]["asked_broker"], _answered_ms
    ):
        sides = [
            [answer for answer, of_proxy in together if of_proxy == proxied]
            for proxied in (False, True)
        ]
        brokers, proxies = (_listed(side) - grpc for side in sides)
        if all(sides):
            yield _Sides(
                _answered_ms(together[0]),
                tuple(sorted(brokers - proxies)),
                tuple(sorted(proxies - brokers)),
            )


def _answered_ms(row: tuple[Answer, bool]) -> int:
    return dumps.seen_ms(row[0])


def _listed(rows: Iterable[Answer]) -> set[str]:
    return {row["client_id"] for row in rows if row["client_id"] is not None}


MEMBERS_APART = Rule(
    "MEMBERS_APART",
    ERROR,
    "Some members connect to brokers, others to proxies in CLUSTER mode. Each side divides all "
    "queues among its own members, so messages are consumed twice.",
    "observed_members, GROUP_AT_BROKER, GROUP_AT_PROXY, CONNECTION, memberships",
    "Connect all members in the same way, or give the members behind proxies their own group.",
    find_members_apart,
    files=("consumerConnection",),
    reads=(MEMBERS,),
    state=True,
)
