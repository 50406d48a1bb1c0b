"""Members of one group that differ in strategy, version, language or message model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, listings, offsets, stretches
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
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.stretches import Span
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.subscriptions import is_proxied, stated_strategies, strategy_is_known
from rebalance_core.audit.topic_settings import configs, configurations, subscribed_topics
from rebalance_core.model.clients import is_java
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.languages import NODE
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_queues
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.client_libraries import ALI_ONS
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.protocol.shares import MemberStrategy, Owners

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow, PullStartsRow

# MIXED_STRATEGIES, MIXED_VERSIONS, MIXED_MESSAGE_MODELS: unlike members.

CONFIG = "CONFIG"


def find_strategies(group: GroupSnapshot) -> Iterator[Finding]:
    """Find members that compute shares by different strategies, or with different parameters."""
    stated = stated_strategies(group)

    def value(row: MembershipsRow) -> str:
        """Return the stated strategy; of CONFIG, whose lists differ by design, only the name.

        MIXED_LANGUAGES covers how languages divide.
        """
        text = stated(row)
        return CONFIG if text.partition("(")[0] == CONFIG else text

    for span in _stretches(group, value):
        yield _finding(group, span, value, "use different strategies", ERROR)


def find_models(group: GroupSnapshot) -> Iterator[Finding]:
    """Find CLUSTERING and BROADCASTING members in one group."""
    for span in _stretches(group, _model):
        yield _finding(group, span, _model, "have different message models", ERROR)


def find_versions(group: GroupSnapshot) -> Iterator[Finding]:
    """Find client versions that differ at the end; only 4.9 and 5.x divide and hand over
    differently.

    What clients of other languages send is no version of RocketMQ's.
    """
    value = _version
    java = [row for row in _dividing(group) if is_java(row.get("language"))]
    for span in stretches.mixed_spans(java, value):
        if span.last_ms is None and stretches.has_settled(group, span.epoch):
            members = stretches.rows_in_epoch(java, None)
            lines = {parse_version(str(row["version"])).is_v4 for row in members}
            severity: Severity = WARNING if len(lines) > 1 else INFO
            yield _finding(group, span, value, "run different client versions", severity, java)


def _stretches(group: GroupSnapshot, value: Callable[[MembershipsRow], str]) -> Iterator[Span]:
    """Return the stretches that last longer than any transient."""
    spans = stretches.mixed_spans(_dividing(group), value)
    return (span for span in spans if stretches.is_persistent(group, span))


def _dividing(group: GroupSnapshot) -> list[MembershipsRow]:
    """Return all memberships but gRPC clients', which divide nothing and have no known version."""
    return [row for row in group.tables["memberships"] if not is_proxied(row)]


def _model(row: MembershipsRow) -> str:
    return row["message_model"]


def _version(row: MembershipsRow) -> str:
    """Return the release, such as 5.3 for its last patch."""
    return str(parse_version(str(row["version"])))


def _finding(
    group: GroupSnapshot,
    span: Span,
    value: Callable[[MembershipsRow], str],
    what: str,
    severity: Severity,
    among: list[MembershipsRow] | None = None,
) -> Finding:
    among = _dividing(group) if among is None else among
    rows = stretches.rows_in_epoch(among, None if span.last_ms is None else span.epoch)
    who = _who(rows, value)
    until = "" if span.last_ms is None else f", for {lasting(span.last_ms - span.first_ms)}"
    return Finding(
        f"Members {what} since {utc(span.first_ms)}{until}: {_mixtures_parts(who)}.",
        {name: listed(ids) for name, ids in list(who.items())[:20]},
        severity=severity,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _who(
    rows: Iterable[MembershipsRow], value: Callable[[MembershipsRow], str]
) -> dict[str, list[str]]:
    clients: dict[str, set[str]] = {}
    for row in rows:
        clients.setdefault(value(row), set()).add(row["client_id"])
    return {name: sorted(clients[name]) for name in sorted(clients)}


def _mixtures_parts(who: Mapping[str, list[str]]) -> str:
    return listed((f"{name} ({listed(ids, 3)})" for name, ids in who.items()), 5)


STRATEGIES = Rule(
    "MIXED_STRATEGIES",
    ERROR,
    "Members divide the queues by different strategies or parameters. Each computes its own "
    "share, so some queues are read twice and some not at all.",
    "memberships",
    "Set the same AllocateMessageQueueStrategy, with the same parameters, in all members.",
    find_strategies,
    reads=(MEMBERS,),
    state=True,
)
VERSIONS = Rule(
    "MIXED_VERSIONS",
    WARNING,
    "Members run different client versions. 4.9 and 5.x clients hand over, lock and hash "
    "differently: hand-overs are slower, and shares differ with CONSISTENT_HASH and non-ASCII "
    "names. INFO within 5.x.",
    "memberships (version)",
    "Finish the upgrade: move all members to one version.",
    find_versions,
    reads=(MEMBERS,),
    state=True,
)
MODELS = Rule(
    "MIXED_MESSAGE_MODELS",
    ERROR,
    "A group has CLUSTERING and BROADCASTING members. Broadcasting members read every queue and "
    "still count when the others divide, so some queues have no owner among the others.",
    "memberships",
    "Move the broadcasting members into their own group.",
    find_models,
    reads=(MEMBERS,),
    state=True,
)


# MIXED_LANGUAGES: clients of several languages, each of which divides the queues by itself.


def find_languages(group: GroupSnapshot) -> Iterator[Finding]:
    """Find members in several languages at the end and the consequences, else earlier losses."""
    of_client = dumps.languages(group)
    now = list(_at_end(group, of_client))
    yield from now or _before(group, of_client)


def _at_end(group: GroupSnapshot, of_client: Mapping[str, str]) -> Iterator[Finding]:
    joined_ms = {row["client_id"]: row["from_ms"] for row in group.members if not is_proxied(row)}
    proxied = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    empty_ms = group.emptied["from_ms"] if group.emptied is not None else 0
    listed_ms: dict[str, int] = {}
    for row in sorted(listings.listed_members(group), key=lambda row: row["observed_ms"]):
        if row["observed_ms"] >= empty_ms:  # who was listed before all went is gone, too
            listed_ms.setdefault(row["client_id"], row["observed_ms"])
    since = {client_id: ms for client_id, ms in listed_ms.items() if client_id not in proxied}
    if joined_ms:
        since = {client_id: listed_ms.get(client_id, ms) for client_id, ms in joined_ms.items()}
    who = _by_language(since, of_client)
    if len(who) > 1:
        severity, what, remedy, evidence = _judged(group, of_client)
        yield Finding(
            f"Members are clients in different languages: {_mixtures_parts(who)}. {what}",
            {name: listed(ids) for name, ids in who.items()} | evidence,
            severity=severity,
            first_ms=min(since[client_id] for ids in who.values() for client_id in ids),
            remedy=remedy,
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
        what = _difference(mixed)
        if what is not None:
            who = _by_language((member.client_id for member in mixed.members), of_client)
            yield Finding(
                "Members were clients in different languages for "
                f"{lasting(span.last_ms - span.first_ms)} from {utc(span.first_ms)}: "
                f"{_mixtures_parts(who)}. {what[0]}",
                {name: listed(ids) for name, ids in who.items()} | what[1],
                first_ms=span.first_ms,
                last_ms=span.last_ms,
                remedy=_remedy(mixed),
            )


def _by_language(client_ids: Iterable[str], of_client: Mapping[str, str]) -> dict[str, list[str]]:
    """Return client ids by the names of their libraries."""
    who: dict[str, list[str]] = {}
    for client_id in sorted({*client_ids} & of_client.keys()):
        language = of_client[client_id]
        who.setdefault(ALI_ONS if language == NODE else language, []).append(client_id)
    return dict(sorted(who.items()))


def _judged(
    group: GroupSnapshot, of_client: Mapping[str, str]
) -> tuple[Severity, str, str | None, dict[str, str]]:
    """Return severity, consequence, remedy if not the rule's, and more evidence."""
    mixed = _group_of(group, of_client, None)
    if not strategy_is_known(group) or not mixed.members:
        rows = (r for r in group.tables["findings"] if r["rule_id"] == "INGEST_STRATEGY_UNKNOWN")
        lacking = {row["severity"] for row in rows} == {INFO}  # no dump was there to fit one to
        severity: Severity = INFO if lacking or not mixed.members else WARNING
        return severity, "Their strategy is unknown.", None, {}
    differs = _difference(mixed)
    if differs is not None:
        return ERROR, differs[0], _remedy(mixed), differs[1]
    evidence = _named(mixed)
    if not mixed.queues:
        return INFO, "Their queues are unknown.", None, evidence
    if mixed.unsure:
        return WARNING, _doubt(mixed), None, evidence
    how = "alike" if mixed.is_alike else "differently, yet every queue has exactly one reader"
    what = f"By {_by(mixed)} they divide the current {plural(len(mixed.queues), 'queue')} {how}."
    return INFO, what, "Nothing; check again before you change the strategy.", evidence


def _difference(mixed: MixedGroup) -> tuple[str, dict[str, str]] | None:
    """Find members that do not divide alike, with the queues; None: no queue is known to differ."""
    unowned, several = mixed.unowned, mixed.several
    if not (unowned or several):
        return None
    parts = [f"no member reads {_counted(unowned)}"] if unowned else []
    parts += [f"several read {_counted(several)}"] if several else []
    evidence = _named(mixed)
    evidence |= {"no_owner": _names(unowned)} if unowned else {}
    evidence |= {"several": _readers(several)} if several else {}
    what = f"By {_by(mixed)} they do not divide alike: {', '.join(parts)}. {_doubt(mixed)}"
    return what.strip(), evidence


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
    return f"Set {' or '.join(alike)} in every member: with it all divide alike." if alike else None


# In words.


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
    "Members are clients in different languages, which divide by different rules. ERROR if queues "
    "are left out or read twice (WARNING once it is over), INFO if the current shares agree, "
    "WARNING if a share is unknown.",
    "observed_members, memberships, ownership",
    "Use clients in one language per group, or a strategy by which all of them divide alike.",
    find_languages,
    files=("consumerConnection",),
    reads=(MEMBERS,),
    state=True,
)


# BROADCASTING_REFUSED and BROADCAST_START: groups whose members each read everything.


def find_refused(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the brokers that refuse broadcasting pulls (rocketmq.md §13 no. 8)."""
    members = [row for row in group.members if row["message_model"] == BROADCASTING]
    facts = group.facts["BROADCAST_REFUSED"]
    has_topic = {
        row["broker_name"] for topic in subscribed_topics(group) for row in configs(group, topic)
    }
    forbids = sorted(
        broker
        for broker, fact in configurations(group).items()
        if fact["details"].get("consume_broadcast_enable") == "false" and broker in has_topic
    )
    if not facts and not (members and forbids):
        return
    ids = sorted({row["client_id"] for row in members}
                 | {fact["client_id"] for fact in facts if fact["client_id"]})  # fmt: skip
    said = f", refused {sum(f['times'] for f in facts)} times" if facts else ""
    where = f"{listed(forbids, 5)} forbid it" if forbids else "a broker forbids it"
    first = [fact["first_ms"] for fact in facts] + [row["from_ms"] for row in members]
    ended_by = ""
    last_ms = max((fact["last_ms"] for fact in facts), default=None)
    if last_ms is not None and not (members and forbids):
        ended_by = _no_more_refused(group, has_topic, last_ms)
    yield Finding(
        f"{listed(ids, 3) or 'Members'} consume by BROADCASTING, and {where} "
        f"(consumeBroadcastEnable=false){said}.",
        {"brokers": listed(forbids), "clients": listed(ids)},
        broker_name=forbids[0] if len(forbids) == 1 else None,
        first_ms=min(first),
        last_ms=last_ms if ended_by else None,
        ended_by=ended_by,
    )


def _no_more_refused(group: GroupSnapshot, brokers: Collection[str], last_ms: int) -> str:
    """Return what shows that refusals have ended, or an empty text.

    Either every broker allows broadcasting in a later file, or the broadcasting members left.
    """
    configs = configurations(group)
    later = [
        configs[name] for name in brokers if name in configs and configs[name]["last_ms"] > last_ms
    ]
    allow = [
        config for config in later if config["details"].get("consume_broadcast_enable") == "true"
    ]
    if brokers and len(allow) == len(brokers):
        names = listed(sorted(config["broker_name"] for config in allow), 5)
        at_ms = max(max(config["first_ms"], last_ms) for config in allow)
        do = "allows" if len(allow) == 1 else "allow"
        return f"{names} {do} it by the configuration of {utc(at_ms)}"
    ends = [
        row["to_ms"] for row in group.tables["memberships"] if row["message_model"] == BROADCASTING
    ]
    gone = [end_ms for end_ms in ends if end_ms is not None]
    if ends and len(gone) == len(ends):
        return f"the last broadcasting member left at {utc(max(gone))}"
    return ""


def find_start(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for members without a local store that skipped messages.

    See rocketmq.md §5.2.
    """
    broadcasting = {
        row["client_id"]
        for row in group.tables["memberships"]
        if row["message_model"] == BROADCASTING
    }
    by_client: dict[str, list[PullStartsRow]] = {}
    for row in group.tables["pull_starts"]:
        jumped = row["rule"] not in (None, "LOCAL_STORE") and (row["skipped"] or 0) > 0
        if jumped and row["client_id"] in broadcasting:
            by_client.setdefault(row["client_id"], []).append(row)
    if not by_client:
        return
    renamed = sorted(client for client in by_client if _had_other_id(group, client))
    skipped = sum(row["skipped"] or 0 for rows in by_client.values() for row in rows)
    starts = [row["change_ms"] for rows in by_client.values() for row in rows]
    why = (
        f"; {listed(renamed, 3)} ran before under another client id, so it cannot find its store"
        if renamed
        else "; they are new"
    )
    yield Finding(
        f"{plural(len(by_client), 'broadcasting member')} without a local store began at the end "
        f"of the queues and skipped {offsets.messages(skipped)}: "
        f"{listed(sorted(by_client), 3)}{why} (from {utc(min(starts))}).",
        {"clients": listed(sorted(by_client)), "skipped": str(skipped)},
        severity=WARNING if renamed else INFO,
        client_id=next(iter(by_client)) if len(by_client) == 1 else None,
        first_ms=min(starts),
        last_ms=max(starts),
    )


def _had_other_id(group: GroupSnapshot, client_id: str) -> bool:
    """Return True if a client of the same host existed before and is gone, so the store's path
    changed.
    """
    host = client_id.partition("@")[0]
    begins = min(r["from_ms"] for r in group.tables["memberships"] if r["client_id"] == client_id)
    return any(
        row["client_id"] != client_id
        and row["client_id"].partition("@")[0] == host
        and row["to_ms"] is not None
        and row["to_ms"] <= begins
        for row in group.tables["memberships"]
    )


REFUSED = Rule(
    "BROADCASTING_REFUSED",
    ERROR,
    "Members consume by BROADCASTING, and the group's configuration on a broker forbids it, so "
    "the broker refuses every pull. mqadmin updateSubGroup sets consumeBroadcastEnable=false by "
    "default.",
    "memberships, GROUP_CONFIG, BROADCAST_REFUSED",
    "Run updateSubGroup -g <group> -d true on the named brokers, and repeat the other settings.",
    find_refused,
    reads=(MEMBERS,),
    state=True,
)
START = Rule(
    "BROADCAST_START",
    INFO,
    "A broadcasting member keeps its offsets in a local file under its client id. Without that "
    "file it starts according to ConsumeFromWhere and skips the messages in between.",
    "pull_starts, memberships (BROADCASTING)",
    "Keep the client id (instanceName) and the folder .rocketmq_offsets across restarts; in "
    "containers, mount the folder.",
    find_start,
    reads=(MEMBERS,),
)
