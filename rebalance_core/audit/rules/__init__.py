"""The rules: a module for each pathology or family of pathologies, and the list of all rules.

A rule is a `Rule` with a function from a `GroupCase` to findings. A new one is a module here with
its test, and a line in `RULES`.

May import: what `audit` may, `audit.case`, `audit.evidence`, `audit.comparison`.
Begin with `idle_member`, which is short.
"""

from __future__ import annotations

from rebalance_core.audit.case import Rule
from rebalance_core.audit.rules import (
    above_end,
    balance,
    blocked_order,
    broadcasting,
    config_lists,
    double_owner,
    duplicate_client_id,
    expired_alive,
    flapping_members,
    frozen_group,
    gave_up_asking,
    group_existence,
    held_queues,
    idle_member,
    ignored_mode,
    inconsistent_subscription,
    inconsistent_tags,
    invisible_time,
    leftover_offsets,
    masters,
    member_lists,
    members_apart,
    missing_pop_retry_topic,
    mixed_languages,
    mixtures,
    notices_off,
    offset_rollback,
    order_locks,
    orphan_queues,
    popped_and_pulled,
    read_write_queues,
    rebalance_storm,
    restless_passes,
    retry_queues,
    start_offsets,
    subscription_not_latest,
    suspended,
    topic_gone,
    transient_ownership,
    unmatched_rooms,
    unreached_queues,
    unseen_members,
    unsubscribed_share,
)

RULES: tuple[Rule, ...] = (
    # members
    inconsistent_subscription.RULE,
    unsubscribed_share.RULE,
    inconsistent_tags.RULE,
    duplicate_client_id.DUPLICATE,
    duplicate_client_id.HALF_OPEN,
    duplicate_client_id.MULTIPLIED,
    idle_member.RULE,
    suspended.RULE,
    flapping_members.RULE,
    expired_alive.RULE,
    rebalance_storm.RULE,
    restless_passes.RULE,
    notices_off.RULE,
    notices_off.RARE,
    member_lists.DIFFER,
    member_lists.NOT_LISTED,
    member_lists.NO_LIST,
    members_apart.RULE,
    mixtures.STRATEGIES,
    mixtures.VERSIONS,
    mixed_languages.LANGUAGES,
    mixtures.MODELS,
    # queues
    orphan_queues.RULE,
    double_owner.RULE,
    frozen_group.RULE,
    transient_ownership.RULE,
    balance.SKEW,
    balance.HASH,
    unmatched_rooms.RULE,
    config_lists.GAP,
    config_lists.OVERLAP,
    config_lists.FOREIGN,
    config_lists.RETRY,
    read_write_queues.FEWER,
    read_write_queues.MORE,
    read_write_queues.READ_ONLY,
    topic_gone.RULE,
    retry_queues.IMBALANCE,
    retry_queues.UNREAD,
    # shared queues
    popped_and_pulled.RULE,
    unreached_queues.RULE,
    ignored_mode.RULE,
    gave_up_asking.RULE,
    blocked_order.RULE,
    invisible_time.RULE,
    missing_pop_retry_topic.RULE,
    unseen_members.RULE,
    unseen_members.UNLISTED,
    # clients
    order_locks.STUCK,
    order_locks.WAIT,
    held_queues.BLOCKED,
    held_queues.ZOMBIE,
    held_queues.NOT_PULLING,
    held_queues.EXPIRED,
    subscription_not_latest.RULE,
    # offsets
    start_offsets.SKIPPED,
    start_offsets.REPLAYED,
    start_offsets.FAILED,
    offset_rollback.RULE,
    above_end.RULE,
    masters.NOT_READ,
    masters.LOCKS,
    masters.FELL_BACK,
    leftover_offsets.LEFTOVER,
    leftover_offsets.OFFLINE,
    # the group itself
    group_existence.MISSING,
    group_existence.BACK,
    broadcasting.REFUSED,
    broadcasting.START,
)
"""Every rule, in the order of the documentation."""


def rules_by_id(rules: tuple[Rule, ...] = RULES) -> dict[str, Rule]:
    """The rules by id.

    Raises:
        ValueError: two rules have the same id.
    """
    by_id: dict[str, Rule] = {}
    for rule in rules:
        if rule.rule_id in by_id:
            raise ValueError(f"{rule.rule_id}: two rules have this id; an id means one thing")
        by_id[rule.rule_id] = rule
    return by_id


rules_by_id()
