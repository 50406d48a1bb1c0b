"""MIXED_LANGUAGES: clients of several languages, each of which divides the queues by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import languages, listed_members, subscribed_topics
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.subscriptions import is_proxied, stated_strategies, strategy_is_known
from rebalance_core.model.group_settings import BROADCASTING, NODE
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.members import ALI_ONS
from rebalance_core.protocol.shares import Divider, MixedGroup, Owners


def find_languages(case: GroupCase) -> Iterator[Finding]:
    """One finding if the members at the end are of several languages, with what comes of it."""
    there = {row["client_id"]: row["from_ms"] for row in case.members if not is_proxied(row)}
    proxied = {row["client_id"] for row in case.rows("memberships") if is_proxied(row)}
    listed_ms: dict[str, int] = {}
    for row in sorted(listed_members(case), key=lambda row: row["observed_ms"]):
        listed_ms.setdefault(row["client_id"], row["observed_ms"])
    of_client = languages(case)
    since = {one: ms for one, ms in listed_ms.items() if one not in proxied}
    if there:
        since = {one: listed_ms.get(one, ms) for one, ms in there.items()}
    who: dict[str, list[str]] = {}
    for client_id in sorted(since.keys() & of_client.keys()):
        language = of_client[client_id]
        who.setdefault(ALI_ONS if language == NODE else language, []).append(client_id)
    if len(who) > 1:
        parts = listed((f"{name} ({listed(who[name], 3)})" for name in sorted(who)), 5)
        severity, what, remedy, evidence = _judged(case, of_client)
        yield Finding(
            f"Members are clients of different languages: {parts}. {what}",
            {name: listed(who[name]) for name in sorted(who)} | evidence,
            severity=severity,
            first_ms=min(since[one] for ids in who.values() for one in ids),
            remedy=remedy,
        )


def _judged(
    case: GroupCase, of_client: Mapping[str, str]
) -> tuple[str, str, str | None, dict[str, str]]:
    """Severity, what comes of it, the remedy if it is not the rule's, and more evidence."""
    group = _group_of(case, of_client)
    if not strategy_is_known(case) or not group.members:
        return WARNING, "By which strategy they divide is not known.", None, {}
    by = listed(sorted({_plain(member.text) for member in group.members}), 3)
    evidence = {"strategy": by}
    doubt = ""
    if group.unsure:
        evidence["unknown"] = listed(member.client_id for member in group.unsure)
        names = listed(sorted({str(member.language) for member in group.unsure}))
        doubt = f"Which queues a client of {names} takes is not known."
    nobody, several = group.nobody, group.several
    if nobody or several:
        parts = [f"nobody reads {_counted(nobody)}"] if nobody else []
        parts += [f"several read {_counted(several)}"] if several else []
        evidence |= {"nobody": _names(nobody)} if nobody else {}
        evidence |= {"several": _readers(several)} if several else {}
        what = f"By {by} they do not divide alike: {', '.join(parts)}. {doubt}"
        return ERROR, what.strip(), _remedy(group), evidence
    if group.unsure or not group.queues:
        return WARNING, doubt or "None of their queues is known.", None, evidence
    how = "alike" if group.is_alike else "differently, yet none is left out or read twice"
    what = f"By {by} they divide the {plural(len(group.queues), 'queue')} at hand {how}."
    return INFO, what, "Nothing; look again before the strategy changes.", evidence


def _group_of(case: GroupCase, of_client: Mapping[str, str]) -> MixedGroup:
    """The members at the end that take a share each; of a repeated id its first process."""
    members: dict[str, tuple[Divider, frozenset[str] | None]] = {}
    there = [row for row in case.members if not is_proxied(row)]
    stated = stated_strategies(case)
    for row in there:
        client_id = row["client_id"]
        if row["message_model"] != BROADCASTING and client_id not in members:
            topics = None if row["subscriptions"] is None else frozenset(row["subscriptions"])
            divider = Divider(client_id, stated(row), of_client.get(client_id), str(row["version"]))
            members[client_id] = (divider, topics)
    at_end = Prediction(case)
    queues = sort_queues(
        queue
        for topic in subscribed_topics(case)
        for queue in at_end.queues(topic, case.run.end_ms)
    )
    return MixedGroup(dict(members.values()), [row["client_id"] for row in there], queues)


def _remedy(group: MixedGroup) -> str | None:
    """Names the strategies on which all members agree; None: on none."""
    alike = group.alike_by()
    return f"Set {' or '.join(alike)} in every member: all divide alike by it." if alike else None


# In words.


def _plain(text: str) -> str:
    """The strategy; of CONFIG, whose lists are long, its name."""
    name = text.partition("(")[0]
    return name if name == "CONFIG" else text


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
    "own client. An error where queues are left out or read twice for it; for information where "
    "the shares of the members and queues at hand agree; a warning where a share is not known.",
    "observed_members (language, version), memberships (strategy, language), ownership",
    "Use clients of one language in a group, or a strategy by which all of them divide alike.",
    find_languages,
    files=("consumerConnection",),
)
