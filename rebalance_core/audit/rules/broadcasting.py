"""BROADCASTING_REFUSED and BROADCAST_START: groups whose members each read everything."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural
from rebalance_core.audit.dumps import configs, configurations, subscribed_topics
from rebalance_core.audit.orphans import messages
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING


def find_refused(case: GroupCase) -> Iterator[Finding]:
    """One finding for the brokers that refuse broadcasting pulls (rocketmq.md §13 no. 8)."""
    members = [row for row in case.members if row["message_model"] == BROADCASTING]
    facts = case.facts("BROADCAST_REFUSED")
    has_topic = {
        row["broker_name"] for topic in subscribed_topics(case) for row in configs(case, topic)
    }
    forbids = sorted(
        broker
        for broker, fact in configurations(case).items()
        if fact["details"].get("consume_broadcast_enable") == "false" and broker in has_topic
    )
    if not facts and not (members and forbids):
        return
    ids = sorted({row["client_id"] for row in members}
                 | {fact["client_id"] for fact in facts if fact["client_id"]})  # fmt: skip
    said = f", refused {sum(f['times'] for f in facts)} times" if facts else ""
    where = f"{listed(forbids, 5)} forbid it" if forbids else "a broker forbids it"
    first = [fact["first_ms"] for fact in facts] + [row["from_ms"] for row in members]
    gone = bool(facts) and not (members and forbids)
    yield Finding(
        f"{listed(ids, 3) or 'Members'} read by BROADCASTING, and {where} "
        f"(consumeBroadcastEnable=false){said}.",
        {"brokers": listed(forbids), "clients": listed(ids)},
        broker_name=forbids[0] if len(forbids) == 1 else None,
        first_ms=min(first),
        last_ms=max(fact["last_ms"] for fact in facts) if gone else None,
    )


def find_start(case: GroupCase) -> Iterator[Finding]:
    """One finding for members without a local store that left messages out
    (rocketmq.md §11 no. 31).
    """
    broadcasting = {
        row["client_id"] for row in case.rows("memberships") if row["message_model"] == BROADCASTING
    }
    by_client: dict[str, list[Row]] = {}
    for row in case.rows("pull_starts"):
        jumped = row["rule"] not in (None, "LOCAL_STORE") and (row["skipped"] or 0) > 0
        if jumped and row["client_id"] in broadcasting:
            by_client.setdefault(row["client_id"], []).append(row)
    if not by_client:
        return
    renamed = sorted(client for client in by_client if _had_other_id(case, client))
    skipped = sum(row["skipped"] for rows in by_client.values() for row in rows)
    starts = [row["change_ms"] for rows in by_client.values() for row in rows]
    why = (
        f"; {listed(renamed, 3)} ran before under another client id, so its store is not found"
        if renamed
        else "; they are new"
    )
    yield Finding(
        f"{plural(len(by_client), 'broadcasting member')} without a local store began at the end "
        f"of the queues and left out {messages(skipped)}: {listed(sorted(by_client), 3)}{why} "
        f"(from {utc(min(starts))}).",
        {"clients": listed(sorted(by_client)), "skipped": str(skipped)},
        severity=WARNING if renamed else INFO,
        client_id=next(iter(by_client)) if len(by_client) == 1 else None,
        first_ms=min(starts),
        last_ms=max(starts),
    )


def _had_other_id(case: GroupCase, client_id: str) -> bool:
    """True if a client of the same host was there before and is gone: the store's path changed."""
    host = client_id.partition("@")[0]
    begins = min(r["from_ms"] for r in case.rows("memberships") if r["client_id"] == client_id)
    return any(
        row["client_id"] != client_id
        and row["client_id"].partition("@")[0] == host
        and row["to_ms"] is not None
        and row["to_ms"] <= begins
        for row in case.rows("memberships")
    )


REFUSED = Rule(
    "BROADCASTING_REFUSED",
    ERROR,
    "Members consume by BROADCASTING, and the group's configuration on a broker forbids it: every "
    "pull is refused. mqadmin updateSubGroup sets consumeBroadcastEnable=false by default.",
    "memberships (message_model), facts GROUP_CONFIG and BROADCAST_REFUSED",
    "Run updateSubGroup -g <group> -d true on the brokers named, with the other settings repeated.",
    find_refused,
)
START = Rule(
    "BROADCAST_START",
    INFO,
    "A broadcasting member keeps its offsets in a local file whose path holds its client id. "
    "Without the file it begins where ConsumeFromWhere says, and messages in between are left out.",
    "pull_starts, memberships (BROADCASTING)",
    "Keep the client id (instanceName) and the folder .rocketmq_offsets across restarts; in "
    "containers mount the folder.",
    find_start,
)
