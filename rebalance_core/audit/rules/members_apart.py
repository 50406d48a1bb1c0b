"""MEMBERS_APART: some members are known to brokers alone, others to proxies alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural
from rebalance_core.audit.dumps import broker_answers, fresh, member_rounds, proxy_answers
from rebalance_core.audit.orphans import is_broadcasting
from rebalance_core.audit.subscriptions import is_proxied
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING

_BEHIND = "behind"


@dataclass(frozen=True, slots=True)
class _Sides:
    """Members that divide queues and stand on one side's lists alone, in one round of dumps."""

    at_ms: int
    at_brokers: tuple[str, ...]
    behind_proxies: tuple[str, ...]

    @property
    def apart(self) -> bool:
        return bool(self.at_brokers and self.behind_proxies)


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a group, of the last round that shows it (rocketmq.md §14).

    A proxy with a broker around it (LOCAL) has that broker's list, so nobody is apart there. Who
    speaks gRPC divides nothing, and a BROADCASTING member reads everything anyway.
    """
    rounds = [] if is_broadcasting(case) else list(_rounds(case))
    shown = [one for one in rounds if one.apart]
    if not shown:
        return
    last = shown[-1]
    again = next((one.at_ms for one in rounds if one.at_ms > last.at_ms), None)
    over = "" if again is None else f"; no longer at {utc(again)}"
    yield Finding(
        f"{plural(len(last.at_brokers), 'member')} at brokers ({listed(last.at_brokers, 3)}) and "
        f"{len(last.behind_proxies)} behind proxies ({listed(last.behind_proxies, 3)}) do not know "
        f"of each other (dumps of {utc(last.at_ms)}): each side divides all queues among its own, "
        f"so messages are consumed twice{over}.",
        {"at_brokers": listed(last.at_brokers), "behind_proxies": listed(last.behind_proxies)},
        severity=ERROR if again is None else WARNING,
        first_ms=shown[0].at_ms,
        last_ms=again,
    )


def _rounds(case: GroupCase) -> Iterator[_Sides]:
    """Every round of dumps in which brokers and proxies were asked."""
    answers: list[Row] = [{**row, _BEHIND: False} for row in broker_answers(case)]
    answers += [{**row, _BEHIND: True} for row in proxy_answers(case)]
    grpc = {row["client_id"] for row in case.rows("memberships") if is_proxied(row)}
    for together in member_rounds(fresh(case, answers, "observed_ms")):
        brokers, proxies = (_listed(together, behind) - grpc for behind in (False, True))
        if {row[_BEHIND] for row in together} == {False, True}:
            yield _Sides(
                together[0]["observed_ms"],
                tuple(sorted(brokers - proxies)),
                tuple(sorted(proxies - brokers)),
            )


def _listed(together: list[Row], behind: bool) -> set[str]:
    rows = (row for row in together if row[_BEHIND] == behind)
    return {row["client_id"] for row in rows if row["client_id"] is not None}


RULE = Rule(
    "MEMBERS_APART",
    ERROR,
    "Some members connect to brokers, others to proxies in CLUSTER mode. Brokers and proxies keep "
    "lists of their own, so each side divides all queues among its own members, and messages are "
    "consumed twice.",
    "observed_members (consumerConnection of brokers), facts GROUP_AT_BROKER, CONNECTION and "
    "GROUP_AT_PROXY (consumerConnection of proxies), memberships",
    "Connect all members of the group the same way, to the name servers or to the proxies, or "
    "give those behind proxies a group of their own.",
    find,
    files=("consumerConnection",),
)
