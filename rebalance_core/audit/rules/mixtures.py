"""Members of one group that differ in strategy, version or message model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit import stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
)
from rebalance_core.audit.known_shares import stated_strategies
from rebalance_core.audit.stretches import Span
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.model.clients import is_java
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.model.versions import parse_version

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow


CONFIG = "CONFIG"


def find_strategies(group: GroupSnapshot) -> Iterator[Finding]:
    """Find members that compute shares by different strategies, or with different parameters."""
    stated = stated_strategies(group)

    def value(row: MembershipsRow) -> str:
        """Return the stated strategy; only the name of CONFIG, whose lists differ by design.

        MIXED_LANGUAGES covers the allocations of languages.
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
    """Find client versions that differ at the end; only 4.9 and 5.x allocate and hand over
    differently.

    Clients of other languages do not send RocketMQ's versions.
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
    """Return all memberships except those of gRPC clients, which allocate no queues and have no
    known version.
    """
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
        f"Members {what} since {utc(span.first_ms)}{until}: {clients_by_value(who)}.",
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


def clients_by_value(who: Mapping[str, list[str]]) -> str:
    """Return each value with the clients that have it, at most five values."""
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
    "differently: hand-overs are slower, and shares differ with CONSISTENT_HASH or non-ASCII "
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
