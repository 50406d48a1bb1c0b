"""Rules about the group's settings on brokers (updateSubGroup): disabled, unusual, or
inconsistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot, Rule, listed
from rebalance_core.audit.offsets import backlog, messages
from rebalance_core.audit.topic_settings import configurations
from rebalance_core.contracts.fact_declaration import EPISODE_MS
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RequestFailedFact


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a broker's SubscriptionGroupConfig.

    Attributes:
        name: in the details of GROUP_CONFIG.
        upstream: RocketMQ's name, as in stores and logs.
        is_unusual: whether the value deserves a finding; None: only differences between brokers do.
        effect: the effect of the value, with ``{value}``.
        severity: the severity of that finding.
        remedy: what to do.
    """

    name: str
    upstream: str
    is_unusual: Callable[[str], bool] | None = None
    effect: str = ""
    severity: Severity = INFO
    remedy: str = ""


CONSUME_ENABLE = Setting("consume_enable", "consumeEnable")
SETTINGS = (
    CONSUME_ENABLE,
    Setting(
        "retry_queue_nums",
        "retryQueueNums",
        lambda value: number(value, 1) <= 0,
        "brokers drop the messages that a listener returns: they are neither delivered again nor "
        "stored in %DLQ%",
        WARNING,
        "Set it to 1 (updateSubGroup -q 1) if failed messages matter.",
    ),
    Setting(
        "retry_max_times",
        "retryMaxTimes",
        lambda value: number(value, 16) == 0,
        "a message that fails goes to %DLQ% without a retry, unless the client sends its own "
        "maxReconsumeTimes (Java's push consumer does, clients of a proxy do not)",
        INFO,
        "Nothing if this is intended; otherwise run updateSubGroup -r 16.",
    ),
    Setting(
        "which_broker_when_consume_slowly",
        "whichBrokerWhenConsumeSlowly",
        lambda value: number(value, 1) != 1,
        "where slaveReadEnable is on, a group that lags is sent to the replica with id {value}; a "
        "client without its address asks the master",
        INFO,
        "Nothing if each broker has that replica; otherwise run updateSubGroup -w 1.",
    ),
    Setting(
        "broker_id",
        "brokerId",
        lambda value: number(value, 0) != 0,
        "where slaveReadEnable is on, pulls are sent to the replica with id {value} even while "
        "the group keeps up",
        INFO,
        "Nothing if this is intended; otherwise run updateSubGroup -i 0.",
    ),
    Setting(
        "consume_timeout_minute",
        "consumeTimeoutMinute",
        lambda value: number(value, 15) != 15,
        "the value is {value} instead of 15; a client's own consumeTimeout decides when it gives "
        "up on a message",
        INFO,
        "If messages time out too early or too late, check the consumer's consumeTimeout.",
    ),
    Setting("consume_broadcast_enable", "consumeBroadcastEnable"),
    Setting("consume_from_min_enable", "consumeFromMinEnable"),
    Setting("consume_message_orderly", "consumeMessageOrderly"),
    Setting("notify_consumer_ids_changed_enable", "notifyConsumerIdsChangedEnable"),
)
"""Every setting that is checked (SubscriptionGroupConfig, 4.9 to 5.5)."""

MANY = 3
"""This many refusals are enough to show how often a client repeats its pulls."""
DISABLED_WORDS = "subscription group no permission"
"""A broker's answer to each pull of a group with consumeEnable=false (CODE 16)."""


def setting_at_end(group: GroupSnapshot, setting: Setting) -> dict[str, tuple[str, int | None]]:
    """Return each broker's value at the end, and since when by a logged change, epoch ms.

    None: no line has the change. Brokers of versions without the setting are left out.
    """
    value_of: dict[str, tuple[str, int | None]] = {}
    stored_ms: dict[str, int] = {}
    for broker, fact in configurations(group).items():
        value = str(dict(fact["details"]).get(setting.name, ""))
        stored_ms[broker] = fact["last_ms"]
        if value:
            value_of[broker] = value, None
    for change in sorted(group.facts["GROUP_UPDATED"], key=lambda fact: fact["last_ms"]):
        broker, at_ms = change["broker_name"], change["last_ms"]
        new = _new_value(change["details"].get("changes", ""), setting.upstream)
        newer = at_ms > stored_ms.get(broker, 0)
        if new is not None and (newer or value_of.get(broker, ("", 0))[0] == new):
            value_of[broker] = new, at_ms
    return value_of


def _values(changes: str, name: str) -> tuple[str, str] | None:
    """Return the values before and after the arrow of ``name: old → new`` among the changes."""
    for change in changes.split(", "):
        what, _, values = change.partition(": ")
        if what == name:
            old, _, new = values.rpartition(" → ")
            return old, new
    return None


def _new_value(changes: str, name: str) -> str | None:
    values = _values(changes, name)
    return None if values is None else values[1]


def _differ_since(group: GroupSnapshot, setting: Setting) -> int | None:
    """Return since when brokers have had different values of a setting, epoch ms; None: no logged
    change shows it.
    """
    values = {broker: value for broker, (value, _) in setting_at_end(group, setting).items()}
    for change in sorted(group.facts["GROUP_UPDATED"], key=lambda fact: -fact["last_ms"]):
        broker = change["broker_name"]
        changed = _values(change["details"].get("changes", ""), setting.upstream)
        if changed is None or broker not in values:
            continue
        old, new = changed
        if values[broker] != new:
            return None  # not all changes are logged
        values[broker] = old
        if len({*values.values()}) == 1:
            return change["last_ms"]
    return None


def _enabled_again(group: GroupSnapshot) -> Finding | None:
    """Return the last period in which brokers had the group disabled, if they logged its end."""
    since: dict[str, int] = {}
    until: dict[str, int] = {}
    began: dict[str, int | None] = {}
    for change in sorted(group.facts["GROUP_UPDATED"], key=lambda fact: fact["last_ms"]):
        broker, at_ms = change["broker_name"], change["last_ms"]
        new = _new_value(change["details"].get("changes", ""), CONSUME_ENABLE.upstream)
        if new == "false":
            since[broker] = at_ms
        elif new is not None:
            until[broker], began[broker] = at_ms, since.pop(broker, None)
    if not until:
        return None
    brokers = listed(sorted(until), 5)
    return Finding(
        f"consumeEnable=false at {brokers}: brokers refused every pull of the group (CODE 16).",
        {"brokers": brokers},
        first_ms=min((at_ms for at_ms in began.values() if at_ms is not None), default=None),
        last_ms=max(until.values()),
        ended_by="an administrator set consumeEnable=true",
    )


def find_disabled(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, about the brokers that refuse the group's pulls."""
    if is_system_group(group.consumer_group):
        return
    values = setting_at_end(group, CONSUME_ENABLE)
    off = {broker: since for broker, (value, since) in values.items() if value == "false"}
    refusals = _refusals(group)
    if not off and (values or not refusals):
        over = _enabled_again(group)
        if over is not None:
            yield over
        return
    waiting = {
        queue: lag for queue, lag in backlog(group).items() if not off or queue.broker_name in off
    }
    by_topic: dict[str, int] = {}
    for queue, lag in waiting.items():
        by_topic[queue.topic] = by_topic.get(queue.topic, 0) + lag
    topics = [f"{topic} {count}" for topic, count in sorted(by_topic.items())]
    begins = [at_ms for at_ms in off.values() if at_ms is not None]
    begins = begins or [fact["first_ms"] for fact in refusals]
    addresses = sorted({fact["details"]["address"] for fact in refusals} - {""})
    where = listed(sorted(off), 5) if off else listed(addresses, 5) or "a broker"
    others = sorted(values.keys() - off.keys()) if off else []
    summary = f"consumeEnable=false at {where}: brokers refuse every pull of the group (CODE 16)"
    summary += f", set by an administrator at {utc(min(begins))}" if any(off.values()) else ""
    summary += _refused(refusals)
    summary += (
        f"; {messages(sum(waiting.values()))} not read: {listed(topics, 5)}" if topics else ""
    )
    summary += f"; {listed(others, 5)} allow the group to read" if others else ""
    yield Finding(
        f"{summary}.",
        {"brokers": listed(sorted(off)) or listed(addresses), "behind": listed(topics)},
        severity=ERROR if topics else WARNING,
        broker_name=next(iter(off)) if len(off) == 1 else None,
        first_ms=min(begins, default=None),
    )


def _refusals(group: GroupSnapshot) -> list[RequestFailedFact]:
    """Return refusals of a disabled group that continue until the end, or until their log's end."""
    until_ms = group.run.coverage.logged_until or group.run.end_ms
    return [
        fact
        for fact in group.facts["REQUEST_FAILED"]
        if DISABLED_WORDS in fact["details"]["reason"]
        and fact["last_ms"] >= until_ms - EPISODE_MS
        and not _has_ended(group, fact)
    ]


def _has_ended(group: GroupSnapshot, fact: RequestFailedFact) -> bool:
    """Return True if the client logged no refusal for three times as long as was usual before."""
    log = group.run.coverage.clients.get(fact["details"]["log"])
    if log is None or fact["times"] < MANY:
        return False
    usual_ms = (fact["last_ms"] - fact["first_ms"]) // (fact["times"] - 1)
    return log.end_ms - fact["last_ms"] > 3 * max(usual_ms, SECOND_MS)


def _refused(refusals: list[RequestFailedFact]) -> str:
    if not refusals:
        return ""
    logs = sorted({f"clients/{fact['details']['log']}" for fact in refusals})
    last_ms = max(fact["last_ms"] for fact in refusals)
    return (
        f"; {listed(logs, 3)} {'has' if len(logs) == 1 else 'have'} refusals until {utc(last_ms)}"
    )


def find_unusual(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per setting whose value has an effect that is easily overlooked."""
    if is_system_group(group.consumer_group):
        return
    for setting in SETTINGS:
        is_unusual = setting.is_unusual
        if is_unusual is None:
            continue
        values = setting_at_end(group, setting)
        unusual = {broker: pair for broker, pair in values.items() if is_unusual(pair[0])}
        for value in sorted({value for value, _ in unusual.values()}):
            brokers = sorted(broker for broker, pair in unusual.items() if pair[0] == value)
            begins = [since for broker in brokers if (since := unusual[broker][1]) is not None]
            dated = f", since {utc(min(begins))}" if begins else ""
            yield Finding(
                f"{setting.upstream}={value} at {listed(brokers, 5)}{dated}: "
                f"{setting.effect.format(value=value)}.",
                {"setting": setting.upstream, "value": value, "brokers": listed(brokers)},
                severity=setting.severity,
                broker_name=brokers[0] if len(brokers) == 1 else None,
                first_ms=min(begins, default=None),
                remedy=setting.remedy,
            )


def find_differing(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, about the settings that differ between the group's brokers."""
    if is_system_group(group.consumer_group):
        return
    differing: list[str] = []
    dated: list[str] = []
    begins: list[int | None] = []
    for setting in SETTINGS:
        values = setting_at_end(group, setting)
        if setting is CONSUME_ENABLE or len({value for value, _ in values.values()}) < 2:
            continue  # GROUP_DISABLED has the first
        by_value = sorted((value, broker) for broker, (value, _) in values.items())
        shown = [f"{value} at {broker}" for value, broker in by_value]
        since = _differ_since(group, setting)
        differing.append(f"{setting.upstream} is {listed(shown, 6)}")
        dated.append(differing[-1] + ("" if since is None else f", since {utc(since)}"))
        begins.append(since)
    if differing:
        known = [since for since in begins if since is not None]
        yield Finding(
            f"Brokers have different settings for the group: {'; '.join(dated)}.",
            {"settings": "; ".join(differing)},
            first_ms=min(known) if len(known) == len(begins) else None,
        )


DISABLED = Rule(
    "GROUP_DISABLED",
    ERROR,
    "An administrator set consumeEnable=false: brokers refuse every pull of the group, so its "
    "members stay listed and keep their queues but receive nothing. WARNING while no message "
    "waits.",
    "GROUP_CONFIG, GROUP_UPDATED, REQUEST_FAILED; committed_offsets, queue_offsets",
    "When the group may read again, enable consumption (updateSubGroup -c <cluster> -g <group> "
    "-s true); it continues at its commits.",
    find_disabled,
    files=("subscription_group_json",),
    state=True,
)
UNUSUAL = Rule(
    "GROUP_SETTING_UNUSUAL",
    INFO,
    "A setting of the group in the brokers' stores changes retries, replicas or time limits in a "
    "way that is easily overlooked. WARNING if messages are lost.",
    "GROUP_CONFIG, GROUP_UPDATED",
    "Nothing if the setting is intended; otherwise configure the group again with mqadmin "
    "updateSubGroup.",
    find_unusual,
    files=("subscription_group_json",),
    state=True,
)
DIFFERING = Rule(
    "GROUP_SETTINGS_DIFFER",
    WARNING,
    "The group's brokers have different settings for it, so what happens to a message depends on "
    "its queue.",
    "GROUP_CONFIG, GROUP_UPDATED",
    "Configure the group identically on all brokers (updateSubGroup -c <cluster> instead of -b "
    "<address>).",
    find_differing,
    files=("subscription_group_json",),
    state=True,
)
