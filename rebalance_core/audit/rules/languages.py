"""Clients in several languages, each with its own allocation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rebalance_core.audit import dumps, listings, stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.known_shares import stated_strategies, strategy_is_known
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.rules.mixtures import CONFIG, clients_by_value
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.languages import NODE
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_queues
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.protocol.client_libraries import ALI_ONS
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.protocol.shares import MemberStrategy, Owners


def find_languages(group: GroupSnapshot) -> Iterator[Finding]:
    """Find members in several languages at the end and the consequences, or otherwise earlier
    losses.
    """
    of_client = dumps.languages(group)
    now = list(_at_end(group, of_client))
    yield from now or _before(group, of_client)


def _at_end(group: GroupSnapshot, of_client: Mapping[str, str]) -> Iterator[Finding]:
    joined_ms = {row["client_id"]: row["from_ms"] for row in group.members if not is_proxied(row)}
    proxied = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    empty_ms = group.emptied["from_ms"] if group.emptied is not None else 0
    listed_ms: dict[str, int] = {}
    for row in sorted(listings.listed_members(group), key=lambda row: row["observed_ms"]):
        if row["observed_ms"] >= empty_ms:  # members listed before all were gone are gone, too
            listed_ms.setdefault(row["client_id"], row["observed_ms"])
    since = {client_id: ms for client_id, ms in listed_ms.items() if client_id not in proxied}
    if joined_ms:
        since = {client_id: listed_ms.get(client_id, ms) for client_id, ms in joined_ms.items()}
    who = _by_language(since, of_client)
    if len(who) > 1:
        now = _consequence(group, of_client)
        yield Finding(
            f"Members are clients in different languages: {clients_by_value(who)}. {now.text}",
            {name: listed(ids) for name, ids in who.items()} | now.evidence,
            severity=now.severity,
            first_ms=min(since[client_id] for ids in who.values() for client_id in ids),
            remedy=now.remedy,
        )


def _before(group: GroupSnapshot, of_client: Mapping[str, str]) -> Iterator[Finding]:
    """Yield long, ended stretches in which queues were left out or read twice."""
    if not strategy_is_known(group):
        return
    rows = [
        row
        for row in group.tables["memberships"]
        if row["client_id"] in of_client and not is_proxied(row)
    ]
    for span in stretches.mixed_spans(rows, lambda row: of_client[row["client_id"]]):
        if span.last_ms is None or not stretches.is_persistent(group, span):
            continue
        mixed = _group_of(group, of_client, span.last_ms - 1)
        differs = _difference(mixed)
        if differs is not None:
            who = _by_language((member.client_id for member in mixed.members), of_client)
            yield Finding(
                "Members used clients in different languages for "
                f"{lasting(span.last_ms - span.first_ms)} from {utc(span.first_ms)}: "
                f"{clients_by_value(who)}. {differs.text}",
                {name: listed(ids) for name, ids in who.items()} | differs.evidence,
                first_ms=span.first_ms,
                last_ms=span.last_ms,
                remedy=differs.remedy,
            )


def _by_language(client_ids: Iterable[str], of_client: Mapping[str, str]) -> dict[str, list[str]]:
    """Return client ids by the names of their libraries."""
    who: dict[str, list[str]] = {}
    for client_id in sorted({*client_ids} & of_client.keys()):
        language = of_client[client_id]
        who.setdefault(ALI_ONS if language == NODE else language, []).append(client_id)
    return dict(sorted(who.items()))


class _Consequence(NamedTuple):
    """What follows from members in several languages; its remedy, if not the rule's."""

    severity: Severity
    text: str
    evidence: dict[str, str]
    remedy: str | None = None


def _consequence(group: GroupSnapshot, of_client: Mapping[str, str]) -> _Consequence:
    """Return what the present members' languages lead to."""
    mixed = _group_of(group, of_client, None)
    if not strategy_is_known(group) or not mixed.members:
        rows = (r for r in group.tables["findings"] if r["rule_id"] == "INGEST_STRATEGY_UNKNOWN")
        lacking = {row["severity"] for row in rows} == {INFO}  # no dump existed to compare with
        severity: Severity = INFO if lacking or not mixed.members else WARNING
        return _Consequence(severity, "Their strategy is unknown.", {})
    differs = _difference(mixed)
    if differs is not None:
        return differs
    evidence = _named(mixed)
    if not mixed.queues:
        return _Consequence(INFO, "Their queues are unknown.", evidence)
    if mixed.unsure:
        return _Consequence(WARNING, _doubt(mixed), evidence)
    how = "alike" if mixed.is_alike else "differently, yet every queue has exactly one reader"
    what = f"With {_by(mixed)} they divide the current {plural(len(mixed.queues), 'queue')} {how}."
    return _Consequence(
        INFO, what, evidence, "Nothing; check again before you change the strategy."
    )


def _difference(mixed: MixedGroup) -> _Consequence | None:
    """Find members with different allocations, and the queues; None if no queue is known to
    differ.
    """
    unowned, several = mixed.unowned, mixed.several
    if not (unowned or several):
        return None
    parts = [f"no member reads {_counted(unowned)}"] if unowned else []
    parts += [f"several read {_counted(several)}"] if several else []
    evidence = _named(mixed)
    evidence |= {"no_owner": _names(unowned)} if unowned else {}
    evidence |= {"several": _readers(several)} if several else {}
    what = (
        f"With {_by(mixed)} they divide the queues differently: {', '.join(parts)}. {_doubt(mixed)}"
    )
    return _Consequence(ERROR, what.strip(), evidence, _remedy(mixed))


def _named(mixed: MixedGroup) -> dict[str, str]:
    unsure = [member.client_id for member in mixed.unsure]
    return {"strategy": _by(mixed)} | ({"unknown": listed(unsure)} if unsure else {})


def _doubt(mixed: MixedGroup) -> str:
    names = listed(sorted({str(member.language) for member in mixed.unsure}))
    return f"Which queues a client of {names} takes is unknown." if names else ""


def _group_of(group: GroupSnapshot, of_client: Mapping[str, str], at_ms: int | None) -> MixedGroup:
    """Return the members that take a share, at the end or at this time; one process per id."""
    stated = stated_strategies(group)
    rows = group.members if at_ms is None else group.tables["memberships"]
    present = [row for row in rows if not is_proxied(row) and (at_ms is None or holds(row, at_ms))]
    members: dict[str, tuple[MemberStrategy, frozenset[str] | None]] = {}
    for row in present:
        client_id = row["client_id"]
        if row["message_model"] != BROADCASTING and client_id not in members:
            topics = None if row["subscriptions"] is None else frozenset(row["subscriptions"])
            language, version = of_client.get(client_id), str(row["version"])
            members[client_id] = (MemberStrategy(client_id, stated(row), language, version), topics)
    prediction = Prediction(group)
    topics_read = {topic for row in present for topic in known_topics(row)}
    queues = sort_queues(
        queue
        for topic in topics_read
        if not is_retry_topic(topic)
        for queue in prediction.queues(topic, group.run.end_ms if at_ms is None else at_ms)
    )
    return MixedGroup(dict(members.values()), [row["client_id"] for row in present], queues)


def _remedy(mixed: MixedGroup) -> str | None:
    """Return the strategies on which all members agree, or None."""
    alike = mixed.alike_by()
    return (
        (
            f"Set {' or '.join(alike)} in every member: with it, all members divide queues "
            "identically."
        )
        if alike
        else None
    )


def _by(mixed: MixedGroup) -> str:
    """Return the strategies; for CONFIG, whose lists are long, only the name."""
    texts = {member.text for member in mixed.members}
    return listed(sorted({CONFIG if text.startswith(CONFIG) else text for text in texts}), 3)


def _names(queues: Iterable[MessageQueue]) -> str:
    topics: dict[str, list[tuple[str, int]]] = {}
    for queue in queues:
        topics.setdefault(queue.topic, []).append((queue.broker_name, queue.queue_id))
    return ", ".join(f"{topic} {queue_names(topics[topic])}" for topic in sorted(topics))


def _counted(queues: Iterable[MessageQueue]) -> str:
    queues = list(queues)
    return f"{plural(len(queues), 'queue')} ({_names(queues)})"


def _readers(several: Owners) -> str:
    return listed(f"{_names([queue])} by {' and '.join(several[queue])}" for queue in several)


LANGUAGES = Rule(
    "MIXED_LANGUAGES",
    WARNING,
    "Members use clients in different languages, which divide queues by different rules. ERROR if "
    "queues are left out or read twice (WARNING once it is over), INFO if the current shares "
    "agree, WARNING if a share is unknown.",
    "observed_members, memberships, ownership",
    "Use clients in one language per group, or a strategy with which all of them divide queues "
    "identically.",
    find_languages,
    files=("consumerConnection",),
    reads=(MEMBERS,),
    state=True,
)
