"""The rules, in one module per subject, and the list of all rules.

A rule is a `Rule` with a function from a `GroupSnapshot`, or a `ClusterSnapshot`, to findings. A
new rule goes to the module of its subject, with its test, and into `RULES` or `CLUSTER_RULES`.

May import: the imports of `audit`, `audit.group_snapshot`, `audit.evidence`, `audit.comparison`.
Begin with `balance`.
"""

from rebalance_core.audit import completeness
from rebalance_core.audit.group_snapshot import Rule
from rebalance_core.audit.rules import (
    above_end,
    balance,
    broadcasting,
    broker_addresses,
    brokers_down,
    cluster,
    consumption,
    deleted_topics,
    differing_subscriptions,
    differing_tags,
    double_owners,
    duplicate_clients,
    expired_members,
    fifo_groups,
    flapping_members,
    frozen_groups,
    gave_up_asking,
    group_settings,
    held_queues,
    idle_members,
    ignored_modes,
    invisible_times,
    languages,
    left_behind,
    lost_resets,
    machine_rooms,
    masters_gone,
    member_lists,
    members_apart,
    mixtures,
    notices,
    offset_rollback,
    order,
    orphan_queues,
    parameters,
    pop_retry_topics,
    popped_and_pulled,
    queue_numbers,
    rebalance_storm,
    receive,
    refused_subscriptions,
    repeated_messages,
    restless_passes,
    retry_topics,
    revive,
    start_offsets,
    starved_timers,
    suspended_members,
    transient_ownership,
    unconfigured_groups,
    unlisted_members,
    unreached_queues,
    unsubscribed_shares,
)

RULES: tuple[Rule, ...] = (
    # members
    differing_subscriptions.INCONSISTENT_SUBSCRIPTION,
    unsubscribed_shares.UNSUBSCRIBED_SHARE,
    differing_tags.INCONSISTENT_TAGS,
    duplicate_clients.DUPLICATE,
    duplicate_clients.HALF_OPEN,
    duplicate_clients.MULTIPLIED,
    idle_members.IDLE_MEMBER,
    suspended_members.SUSPENDED,
    flapping_members.FLAPPING_MEMBERS,
    expired_members.EXPIRED_ALIVE,
    rebalance_storm.REBALANCE_STORM,
    restless_passes.RESTLESS_PASSES,
    notices.NOTICES_OFF,
    notices.RARE,
    member_lists.DIFFER,
    member_lists.NOT_LISTED,
    member_lists.NO_LIST,
    members_apart.MEMBERS_APART,
    mixtures.STRATEGIES,
    mixtures.VERSIONS,
    languages.LANGUAGES,
    mixtures.MODELS,
    # queues
    brokers_down.DOWN,
    orphan_queues.ORPHAN_QUEUES,
    double_owners.DOUBLE_OWNER,
    frozen_groups.FROZEN_GROUP,
    transient_ownership.TRANSIENT_OWNERSHIP,
    balance.SKEW,
    balance.HASH,
    machine_rooms.UNMATCHED_ROOMS,
    parameters.GAP,
    parameters.OVERLAP,
    parameters.FOREIGN,
    parameters.RETRY,
    queue_numbers.FEWER,
    queue_numbers.MORE,
    queue_numbers.READ_ONLY,
    deleted_topics.TOPIC_GONE,
    retry_topics.IMBALANCE,
    retry_topics.UNREAD,
    # shared queues
    popped_and_pulled.POPPED_AND_PULLED,
    unreached_queues.UNREACHED_QUEUES,
    ignored_modes.IGNORED_MODE,
    gave_up_asking.GAVE_UP_ASKING,
    fifo_groups.BLOCKED_ORDER,
    invisible_times.INVISIBLE_TIME,
    repeated_messages.REPEATS,
    receive.STARVES,
    pop_retry_topics.MISSING_POP_RETRY_TOPIC,
    unlisted_members.UNSEEN_MEMBERS,
    unlisted_members.UNLISTED,
    # clients
    order.STUCK,
    order.WAIT,
    held_queues.BLOCKED,
    held_queues.ZOMBIE,
    held_queues.NOT_PULLING,
    held_queues.EXPIRED,
    refused_subscriptions.SUBSCRIPTION_NOT_LATEST,
    consumption.STANDS_STILL,
    consumption.FALLS,
    consumption.NEVER_COMMITTED,
    # offsets
    start_offsets.SKIPPED,
    start_offsets.REPLAYED,
    start_offsets.FAILED,
    offset_rollback.RULE,
    lost_resets.NOT_KEPT,
    above_end.RULE,
    masters_gone.NOT_READ,
    masters_gone.LOCKS,
    masters_gone.FELL_BACK,
    left_behind.LEFTOVER,
    left_behind.OFFLINE,
    # the group itself
    unconfigured_groups.MISSING,
    unconfigured_groups.BACK,
    group_settings.DISABLED,
    group_settings.UNUSUAL,
    group_settings.DIFFERING,
    broadcasting.REFUSED,
    broadcasting.START,
)
"""Every rule, in the order of the documentation."""


CLUSTER_RULES: tuple[Rule, ...] = (
    completeness.COLLECTION_INCOMPLETE,
    completeness.COVERAGE_UNKNOWN,
    cluster.TAKEN,
    cluster.NAME_SERVERS_DIFFER,
    cluster.BROKER_FLAPS,
    revive.STUCK,
    revive.BEHIND,
    starved_timers.STARVED_TIMERS,
    broker_addresses.NO_BROKER_ADDRESS,
    cluster.SLAVE_NOT_READABLE,
)
"""Every rule about a whole cluster, in the order of the documentation."""


def rules_by_id(rules: tuple[Rule, ...] = (*RULES, *CLUSTER_RULES)) -> dict[str, Rule]:
    """Return the rules by id.

    Raises:
        ValueError: two rules have the same id.
    """
    by_id: dict[str, Rule] = {}
    for rule in rules:
        if rule.rule_id in by_id:
            raise ValueError(f"{rule.rule_id}: two rules have this id; each id must be unique")
        by_id[rule.rule_id] = rule
    return by_id


rules_by_id()
