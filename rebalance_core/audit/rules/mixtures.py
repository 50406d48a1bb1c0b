"""MIXED_STRATEGIES, MIXED_VERSIONS, MIXED_MESSAGE_MODELS: unlike members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed
from rebalance_core.audit.orphans import (
    Span,
    has_settled,
    is_persistent,
    is_rolling,
    mixed_spans,
    there_in,
)
from rebalance_core.audit.subscriptions import is_proxied, stated_strategies
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.languages import is_java

CONFIG = "CONFIG"


def find_strategies(case: GroupCase) -> Iterator[Finding]:
    """Members that compute shares by different strategies or parameters of one."""
    stated = stated_strategies(case)

    def value(row: Row) -> str:
        """CONFIG lists differ by design; how languages divide, MIXED_LANGUAGES tells."""
        text = stated(row)
        return CONFIG if text.partition("(")[0] == CONFIG else text

    for span, severity in _stretches(case, value):
        yield _finding(case, span, value, "use different strategies", severity or ERROR)


def find_models(case: GroupCase) -> Iterator[Finding]:
    """CLUSTERING and BROADCASTING members in one group."""
    value = _column("message_model")
    for span, severity in _stretches(case, value):
        yield _finding(case, span, value, "have different message models", severity or ERROR)


def find_versions(case: GroupCase) -> Iterator[Finding]:
    """Client versions that differ at the end; only 4.9 with 5.x allocate and hand over unlike.

    What clients of other languages send is no version of RocketMQ's.
    """
    value = _version
    java = [row for row in _dividing(case) if is_java(row.get("language"))]
    for span in mixed_spans(java, value):
        if span.last_ms is None and has_settled(case, span.epoch):
            there = there_in(java, None)
            lines = {parse_version(str(row["version"])).is_v4 for row in there}
            severity = WARNING if len(lines) > 1 else INFO
            yield _finding(case, span, value, "run different client versions", severity, java)


def _stretches(case: GroupCase, value: Callable[[Row], str]) -> Iterator[tuple[Span, str | None]]:
    """Standing stretches; those that are over are warnings, rolling changes less."""
    for span in mixed_spans(_dividing(case), value):
        if is_persistent(case, span):
            over = INFO if is_rolling(case, span) else WARNING
            yield span, None if span.last_ms is None else over


def _dividing(case: GroupCase) -> list[Row]:
    """Memberships but of gRPC clients: they divide nothing, and no file tells their version."""
    return [row for row in case.rows("memberships") if not is_proxied(row)]


def _version(row: Row) -> str:
    """The release: 5.3 is its last patch."""
    return str(parse_version(str(row["version"])))


def _column(name: str) -> Callable[[Row], str]:
    return lambda row: str(row[name])


def _finding(
    case: GroupCase,
    span: Span,
    value: Callable[[Row], str],
    what: str,
    severity: str,
    among: list[Row] | None = None,
) -> Finding:
    among = _dividing(case) if among is None else among
    rows = there_in(among, None if span.last_ms is None else span.epoch)
    who = _who(rows, value)
    until = "" if span.last_ms is None else f", for {lasting(span.last_ms - span.first_ms)}"
    return Finding(
        f"Members {what} since {utc(span.first_ms)}{until}: {_parts(who)}.",
        {name: listed(ids) for name, ids in list(who.items())[:20]},
        severity=severity,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _who(rows: Iterable[Row], value: Callable[[Row], str]) -> dict[str, list[str]]:
    clients: dict[str, set[str]] = {}
    for row in rows:
        clients.setdefault(value(row), set()).add(row["client_id"])
    return {name: sorted(clients[name]) for name in sorted(clients)}


def _parts(who: dict[str, list[str]]) -> str:
    return listed((f"{name} ({listed(ids, 3)})" for name, ids in who.items()), 5)


STRATEGIES = Rule(
    "MIXED_STRATEGIES",
    ERROR,
    "Members divide the queues by different strategies, or by one with different parameters. Each "
    "computes its own share alone, so some queues are read twice and some by nobody.",
    "memberships (strategy)",
    "Set the same AllocateMessageQueueStrategy, with the same parameters, in all members.",
    find_strategies,
)
VERSIONS = Rule(
    "MIXED_VERSIONS",
    WARNING,
    "Members run different client versions. 4.9 and 5.x hand over, lock and hash differently: "
    "slower hand-overs, and with CONSISTENT_HASH and non-ASCII names other shares. Within 5.x this "
    "is for information.",
    "memberships (version)",
    "Finish the upgrade: bring all members to one version.",
    find_versions,
)
MODELS = Rule(
    "MIXED_MESSAGE_MODELS",
    ERROR,
    "CLUSTERING and BROADCASTING members in one group. Broadcasting members read every queue and "
    "still count in the others' division, so part of the queues has no owner among the rest, and "
    "the broker keeps the model of the last heartbeat.",
    "memberships (message_model)",
    "Put the broadcasting members into a group of their own.",
    find_models,
)
