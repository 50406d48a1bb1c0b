"""The rules, in a module for each subject, and the list of all of them.

A rule is a `Rule` with a function from a `GroupSnapshot`, or a `ClusterSnapshot`, to findings. A
new rule goes to the module of its subject, with its test, and into `RULES` or `CLUSTER_RULES`.

May import: what `audit` may, `audit.group_snapshot`, `audit.evidence`, `audit.comparison`.
Begin with `balance`.
"""

from rebalance_core.audit import completeness
from rebalance_core.audit.group_snapshot import Rule
from rebalance_core.audit.rules import (
    above_end,
    balance,
    brokers_down,
    client_logs,
    cluster,
    comings_and_goings,
    consumption,
    differing_subscriptions,
    group_settings,
    held_queues,
    left_behind,
    masters_gone,
    member_lists,
    mixtures,
    notices,
    offset_rollback,
    order,
    owners,
    parameters,
    pop,
    receive,
    revive,
    start_offsets,
    topics,
    unsettled,
)

RULES: tuple[Rule, ...] = (
    # members
    differing_subscriptions.INCONSISTENT_SUBSCRIPTION,
    differing_subscriptions.UNSUBSCRIBED_SHARE,
    differing_subscriptions.INCONSISTENT_TAGS,
    owners.DUPLICATE,
    owners.HALF_OPEN,
    owners.MULTIPLIED,
    balance.IDLE_MEMBER,
    unsettled.SUSPENDED,
    comings_and_goings.FLAPPING_MEMBERS,
    comings_and_goings.EXPIRED_ALIVE,
    notices.REBALANCE_STORM,
    client_logs.RESTLESS_PASSES,
    notices.NOTICES_OFF,
    notices.RARE,
    member_lists.DIFFER,
    member_lists.NOT_LISTED,
    member_lists.NO_LIST,
    comings_and_goings.MEMBERS_APART,
    mixtures.STRATEGIES,
    mixtures.VERSIONS,
    mixtures.LANGUAGES,
    mixtures.MODELS,
    # queues
    brokers_down.DOWN,
    owners.ORPHAN_QUEUES,
    owners.DOUBLE_OWNER,
    unsettled.FROZEN_GROUP,
    unsettled.TRANSIENT_OWNERSHIP,
    balance.SKEW,
    balance.HASH,
    parameters.UNMATCHED_ROOMS,
    parameters.GAP,
    parameters.OVERLAP,
    parameters.FOREIGN,
    parameters.RETRY,
    topics.FEWER,
    topics.MORE,
    topics.READ_ONLY,
    topics.TOPIC_GONE,
    topics.IMBALANCE,
    topics.UNREAD,
    # shared queues
    pop.POPPED_AND_PULLED,
    balance.UNREACHED_QUEUES,
    pop.IGNORED_MODE,
    client_logs.GAVE_UP_ASKING,
    order.BLOCKED_ORDER,
    pop.INVISIBLE_TIME,
    revive.REPEATS,
    receive.STARVES,
    pop.MISSING_POP_RETRY_TOPIC,
    comings_and_goings.UNSEEN_MEMBERS,
    comings_and_goings.UNLISTED,
    # clients
    order.STUCK,
    order.WAIT,
    held_queues.BLOCKED,
    held_queues.ZOMBIE,
    held_queues.NOT_PULLING,
    held_queues.EXPIRED,
    notices.SUBSCRIPTION_NOT_LATEST,
    consumption.STANDS_STILL,
    consumption.FALLS,
    consumption.NEVER_COMMITTED,
    # offsets
    start_offsets.SKIPPED,
    start_offsets.REPLAYED,
    start_offsets.FAILED,
    offset_rollback.RULE,
    offset_rollback.NOT_KEPT,
    above_end.RULE,
    masters_gone.NOT_READ,
    masters_gone.LOCKS,
    masters_gone.FELL_BACK,
    left_behind.LEFTOVER,
    left_behind.OFFLINE,
    # the group itself
    left_behind.MISSING,
    left_behind.BACK,
    group_settings.DISABLED,
    group_settings.UNUSUAL,
    group_settings.DIFFERING,
    mixtures.REFUSED,
    mixtures.START,
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
    client_logs.STARVED_TIMERS,
    client_logs.NO_BROKER_ADDRESS,
    cluster.SLAVE_NOT_READABLE,
)
"""Every rule on a cluster as a whole, in the order of the documentation."""


def rules_by_id(rules: tuple[Rule, ...] = (*RULES, *CLUSTER_RULES)) -> dict[str, Rule]:
    """Return the rules by id.

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
