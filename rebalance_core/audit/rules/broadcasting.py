"""BROADCASTING groups whose pulls are refused or whose members start again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit import offsets
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.rules.group_settings import Setting, setting_at_end
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.topic_settings import configs, configurations, subscribed_topics
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PullStartsRow


_ALLOWED = Setting("consume_broadcast_enable", "consumeBroadcastEnable")


class _End(NamedTuple):
    """When refusals ended, and what shows it."""

    at_ms: int
    shown_by: str


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
    ids = sorted(
        {row["client_id"] for row in members}
        | {fact["client_id"] for fact in facts if fact["client_id"]}
    )
    said = f", which refused pulls {sum(f['times'] for f in facts)} times" if facts else ""
    first = [fact["first_ms"] for fact in facts] + [row["from_ms"] for row in members]
    last_ms = max((fact["last_ms"] for fact in facts), default=None)
    end = None
    if last_ms is not None and not (members and forbids):
        end = _no_more_refused(group, has_topic, last_ms)
    forbids = forbids or sorted({f["broker_name"] for f in facts if f["broker_name"]})
    verb = "forbade" if end else "forbid" if len(forbids) > 1 else "forbids"
    yield Finding(
        f"{listed(ids, 3) or 'Members'} consume by BROADCASTING, and "
        f"{listed(forbids, 5) or 'a broker'} {verb} it (consumeBroadcastEnable=false){said}.",
        {"brokers": listed(forbids), "clients": listed(ids)},
        broker_name=forbids[0] if len(forbids) == 1 else None,
        first_ms=min(first),
        last_ms=None if end is None else end.at_ms,
        ended_by="" if end is None else end.shown_by,
    )


def _no_more_refused(group: GroupSnapshot, brokers: Collection[str], last_ms: int) -> _End | None:
    """Return the end of refusals, or None without evidence.

    Either every broker allows broadcasting in a later file, or the broadcasting members left.
    """
    configs = configurations(group)
    values = setting_at_end(group, _ALLOWED)
    allowed = {name: since for name, (value, since) in values.items() if value == "true"}
    later = {
        name
        for name in allowed.keys() & brokers
        if max(configs[name]["last_ms"] if name in configs else 0, allowed[name] or 0) > last_ms
    }
    if brokers and len(later) == len(brokers):
        logged = [since for name in later if (since := allowed[name]) and since > last_ms]
        if len(logged) == len(later):
            return _End(max(logged), "an administrator set consumeBroadcastEnable=true")
        shown = (configs[name]["first_ms"] for name in later & configs.keys())
        at_ms = max(last_ms, *shown, *logged)
        do = "allows" if len(later) == 1 else "allow"
        return _End(
            last_ms,
            f"no later refusal is logged, and {listed(sorted(later), 5)} {do} it by the "
            f"configuration of {utc(at_ms)}",
        )
    ends = [
        row["to_ms"] for row in group.tables["memberships"] if row["message_model"] == BROADCASTING
    ]
    gone = [end_ms for end_ms in ends if end_ms is not None]
    if ends and len(gone) == len(ends):
        return _End(max(last_ms, *gone), "the last broadcasting member left")
    return None


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
        f"; {listed(renamed, 3)} ran earlier under another client id, so the client cannot find "
        "its store"
        if renamed
        else "; these members are new"
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
