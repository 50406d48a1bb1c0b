"""MIXED_LANGUAGES: clients of several languages, each of which divides the queues by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rebalance_core.audit.case import (
    Finding,
    GroupCase,
    Rule,
    known_topics,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import languages, listed_members
from rebalance_core.audit.orphans import is_persistent, is_rolling, mixed_spans
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.subscriptions import is_proxied, stated_strategies, strategy_is_known
from rebalance_core.model.group_settings import BROADCASTING, NODE
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_queues
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.members import ALI_ONS
from rebalance_core.protocol.shares import Divider, MixedGroup, Owners

CONFIG = "CONFIG"


def find_languages(case: GroupCase) -> Iterator[Finding]:
    """Members at the end of several languages, with what comes of it; else losses before."""
    of_client = languages(case)
    found = list(_at_end(case, of_client))
    yield from found or _before(case, of_client)


def _at_end(case: GroupCase, of_client: Mapping[str, str]) -> Iterator[Finding]:
    there = {row["client_id"]: row["from_ms"] for row in case.members if not is_proxied(row)}
    proxied = {row["client_id"] for row in case.rows("memberships") if is_proxied(row)}
    listed_ms: dict[str, int] = {}
    for row in sorted(listed_members(case), key=lambda row: row["observed_ms"]):
        listed_ms.setdefault(row["client_id"], row["observed_ms"])
    since = {one: ms for one, ms in listed_ms.items() if one not in proxied}
    if there:
        since = {one: listed_ms.get(one, ms) for one, ms in there.items()}
    who = _by_language(since, of_client)
    if len(who) > 1:
        severity, what, remedy, evidence = _judged(case, of_client)
        yield Finding(
            f"Members are clients of different languages: {_parts(who)}. {what}",
            {name: listed(ids) for name, ids in who.items()} | evidence,
            severity=severity,
            first_ms=min(since[one] for ids in who.values() for one in ids),
            remedy=remedy,
        )


def _before(case: GroupCase, of_client: Mapping[str, str]) -> Iterator[Finding]:
    """Long stretches that are over, in which queues were left out or read twice."""
    if not strategy_is_known(case):
        return
    rows = [
        row
        for row in case.rows("memberships")
        if row["client_id"] in of_client and not is_proxied(row)
    ]
    for span in mixed_spans(rows, lambda row: of_client[row["client_id"]]):
        if span.last_ms is None or not is_persistent(case, span):
            continue
        group = _group_of(case, of_client, span.last_ms - 1)
        what = _difference(group)
        if what is not None:
            who = _by_language((one.client_id for one in group.members), of_client)
            yield Finding(
                f"Members were clients of different languages for "
                f"{lasting(span.last_ms - span.first_ms)} from {utc(span.first_ms)}: "
                f"{_parts(who)}. {what[0]}",
                {name: listed(ids) for name, ids in who.items()} | what[1],
                severity=INFO if is_rolling(case, span) else WARNING,
                first_ms=span.first_ms,
                last_ms=span.last_ms,
                remedy=_remedy(group),
            )


def _by_language(client_ids: Iterable[str], of_client: Mapping[str, str]) -> dict[str, list[str]]:
    """Client ids by the names of their libraries."""
    who: dict[str, list[str]] = {}
    for client_id in sorted({*client_ids} & of_client.keys()):
        language = of_client[client_id]
        who.setdefault(ALI_ONS if language == NODE else language, []).append(client_id)
    return dict(sorted(who.items()))


def _judged(
    case: GroupCase, of_client: Mapping[str, str]
) -> tuple[str, str, str | None, dict[str, str]]:
    """Severity, what comes of it, the remedy if it is not the rule's, and more evidence."""
    group = _group_of(case, of_client, None)
    if not strategy_is_known(case) or not group.members:
        return WARNING, "By which strategy they divide is not known.", None, {}
    differs = _difference(group)
    if differs is not None:
        return ERROR, differs[0], _remedy(group), differs[1]
    evidence = _named(group)
    if group.unsure or not group.queues:
        return WARNING, _doubt(group) or "None of their queues is known.", None, evidence
    how = "alike" if group.is_alike else "differently, yet none is left out or read twice"
    what = f"By {_by(group)} they divide the {plural(len(group.queues), 'queue')} at hand {how}."
    return INFO, what, "Nothing; look again before the strategy changes.", evidence


def _difference(group: MixedGroup) -> tuple[str, dict[str, str]] | None:
    """That members do not divide alike, with the queues; None: nobody knows of any queue."""
    nobody, several = group.nobody, group.several
    if not (nobody or several):
        return None
    parts = [f"nobody reads {_counted(nobody)}"] if nobody else []
    parts += [f"several read {_counted(several)}"] if several else []
    evidence = _named(group)
    evidence |= {"nobody": _names(nobody)} if nobody else {}
    evidence |= {"several": _readers(several)} if several else {}
    what = f"By {_by(group)} they do not divide alike: {', '.join(parts)}. {_doubt(group)}"
    return what.strip(), evidence


def _named(group: MixedGroup) -> dict[str, str]:
    unsure = [member.client_id for member in group.unsure]
    return {"strategy": _by(group)} | ({"unknown": listed(unsure)} if unsure else {})


def _doubt(group: MixedGroup) -> str:
    names = listed(sorted({str(member.language) for member in group.unsure}))
    return f"Which queues a client of {names} takes is not known." if names else ""


def _group_of(case: GroupCase, of_client: Mapping[str, str], at_ms: int | None) -> MixedGroup:
    """The members that take a share each, at the end or at this time; of an id one process."""
    stated = stated_strategies(case)
    rows = case.members if at_ms is None else case.rows("memberships")
    there = [row for row in rows if not is_proxied(row) and (at_ms is None or holds(row, at_ms))]
    members: dict[str, tuple[Divider, frozenset[str] | None]] = {}
    for row in there:
        client_id = row["client_id"]
        if row["message_model"] != BROADCASTING and client_id not in members:
            topics = None if row["subscriptions"] is None else frozenset(row["subscriptions"])
            language, version = of_client.get(client_id), str(row["version"])
            members[client_id] = (Divider(client_id, stated(row), language, version), topics)
    prediction = Prediction(case)
    topics_read = {topic for row in there for topic in known_topics(row)}
    queues = sort_queues(
        queue
        for topic in topics_read
        if not is_retry_topic(topic)
        for queue in prediction.queues(topic, case.run.end_ms if at_ms is None else at_ms)
    )
    return MixedGroup(dict(members.values()), [row["client_id"] for row in there], queues)


def _remedy(group: MixedGroup) -> str | None:
    """Names the strategies on which all members agree; None: on none."""
    alike = group.alike_by()
    return f"Set {' or '.join(alike)} in every member: all divide alike by it." if alike else None


# In words.


def _parts(who: Mapping[str, list[str]]) -> str:
    return listed((f"{name} ({listed(ids, 3)})" for name, ids in who.items()), 5)


def _by(group: MixedGroup) -> str:
    """The strategies; of CONFIG, whose lists are long, the name."""
    texts = {member.text for member in group.members}
    return listed(sorted({CONFIG if one.startswith(CONFIG) else one for one in texts}), 3)


def _names(queues: Iterable[MessageQueue]) -> str:
    topics: dict[str, list[tuple[str, int]]] = {}
    for queue in queues:
        topics.setdefault(queue.topic, []).append((queue.broker_name, queue.queue_id))
    return ", ".join(f"{topic} {queue_names(topics[topic])}" for topic in sorted(topics))


def _counted(queues: Iterable[MessageQueue]) -> str:
    queues = list(queues)
    return f"{plural(len(queues), 'queue')} ({_names(queues)})"


def _readers(several: Owners) -> str:
    return listed(f"{_names([one])} by {' and '.join(several[one])}" for one in several)


LANGUAGES = Rule(
    "MIXED_LANGUAGES",
    WARNING,
    "Members are clients of different languages, and each divides the queues by the rules of its "
    "own client. An error where queues are left out or read twice for it (a warning once it is "
    "over); for information where the shares of the members and queues at hand agree; a warning "
    "where a share is not known.",
    "observed_members (language, version), memberships (strategy, language), ownership",
    "Use clients of one language in a group, or a strategy by which all of them divide alike.",
    find_languages,
    files=("consumerConnection",),
)
