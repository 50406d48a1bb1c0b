"""The tables of plans: what they read beside a simulation's input, and what they write."""

from collections.abc import Sequence

from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.contracts.table import Column, Table, columns
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.verdicts import EPOCH_STATUSES

QUEUE_RATES = Table(
    "queue_rates",
    "How many messages a second came into a queue over a stretch of time.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_ms BIGINT start of the stretch
        to_ms? BIGINT end (exclusive); null: until further notice
        messages_per_second DOUBLE mean rate, 0 or more
        """
    ),
    key=("cluster", "topic", "broker_name", "queue_id", "from_ms"),
    required=False,
)

PLAN_INPUT_TABLES = {QUEUE_RATES.name: QUEUE_RATES}
"""What `plan` reads beside the input tables."""


CANNOT_POP = ("PROXY", BROADCASTING, "ORDERLY", "PULL", "VERSION")
"""Why a group cannot pop from brokers, the first that applies: it is behind proxies, which share
its queues already; it broadcasts; its listener is orderly; it pulls; a client older than 5.0."""

_VARIANT = columns(
    """
    cluster STRING the RocketMQ cluster
    consumer_group STRING the group
    scenario STRING the scenario; baseline = the history as it was given
    strategy STRING strategy text; recorded = every member's own
    of_rocketmq BOOLEAN false: RocketMQ has no such strategy
    seed BIGINT seed of what the scenario leaves to chance
    """
)


def _of_variant(text: str, **allowed: Sequence[str]) -> tuple[Column, ...]:
    """Columns of a table that says something of a group under each variant."""
    return _VARIANT + columns(text, **allowed)


VARIANT_KEY = ("cluster", "consumer_group", "scenario", "strategy", "seed")

PLAN_STEPS = Table(
    "plan_steps",
    "Every epoch of every group under every variant: movement beside balance.",
    _of_variant(
        """
        epoch INT the epoch that starts with this change
        change_ms BIGINT the event
        causes ARRAY<STRING> distinct types, by sequence, of the events that changed the state
        status STRING EMPTY = no member; FROZEN = a member could not allocate a topic; SETTLED
        counted BOOLEAN the summary counts it: it comes after the state called before
        members INT distinct ids that subscribe; where members share all queues: distinct ids
        queues INT readable queues, retry topics not counted
        moved? INT queues with an ADD, new ones included; null where members share all queues
        voluntary_moves? INT queues with a VOLUNTARY ADD; null as moved
        minimum_moves? INT proven minimum for a balanced result; null where it means nothing
        amplification? DOUBLE moved / minimum_moves; null at 0 and where queues have no owner
        stickiness? DOUBLE share of the queues held before that keep a holder
        max_queues? INT most and fewest queues of one member; null as moved
        min_queues? INT most and fewest queues of one member; null as moved
        peak_ratio? DOUBLE max_queues x members / queues
        idle_members INT members without a queue, owned or shared
        orphaned INT readable queues without an owner, retry queues counted
        shared INT queues held by more than one process, retry queues counted
        pop_queues INT readable queues of topics that members share; in no other count
        min_clients_per_queue? INT clients that may take from a shared queue; null: there is none
        max_clients_per_queue? INT clients that may take from a shared queue; null: there is none
        unreached? INT shared queues that no client may take from; null: there is none
        min_redelivery_s? DOUBLE from a death until its messages come again, invisible for 60 s
        max_redelivery_s? DOUBLE from a death until its messages come again, invisible for 60 s
        cannot_pop? STRING of strategy POP: why the group stays as it is: {allowed}
        """,
        status=EPOCH_STATUSES,
        cannot_pop=CANNOT_POP,
    ),
    key=(*VARIANT_KEY, "epoch"),
)

PLAN_SUMMARY = Table(
    "plan_summary",
    "A group before the first edit (baseline: in its first epoch) and after, at the end, with the "
    "steps in between. Expected figures are means over simulated futures; null without any: a "
    "strategy that RocketMQ lacks, POP, a frozen topic, a group that is not simulated.",
    _of_variant(
        """
        rebalances INT steps counted
        members_before INT 0 before: the group was not there yet
        members_after INT 0 before: the group was not there yet
        queues_before INT readable queues
        queues_after INT readable queues
        moved? BIGINT sum of moved; null where members share all queues
        minimum_moves? BIGINT sum of the proven minimum; null where a step has none
        amplification? DOUBLE moved / minimum_moves; null at 0 and where a caveat says why
        stickiness? DOUBLE mean of the steps
        peak_queues_before? INT most queues of one member; null where all are shared
        peak_queues_after? INT most queues of one member; null where all are shared
        peak_ratio_before? DOUBLE max_queues x members / queues
        peak_ratio_after? DOUBLE max_queues x members / queues
        idle_before INT members without a queue
        idle_after INT members without a queue
        orphaned_before INT readable queues without an owner
        orphaned_after INT readable queues without an owner
        frozen BOOLEAN in a counted step, or after, a member could not allocate a topic
        caveat? STRING why amplification means nothing here
        replayed_messages? BIGINT read twice: commits above the new start; null: a start is unknown
        skipped_messages? BIGINT never read: skipped by starts without a commit; null: as before
        peak_messages_per_second? DOUBLE most of one member after; null without queue_rates
        pop_queues_before INT readable queues of topics that members share
        pop_queues_after INT readable queues of topics that members share
        min_clients_per_queue? INT as in plan_steps, after
        max_clients_per_queue? INT as in plan_steps, after
        unreached? INT as in plan_steps, after
        min_redelivery_s? DOUBLE as in plan_steps, after
        max_redelivery_s? DOUBLE as in plan_steps, after
        cannot_pop? STRING of strategy POP: why the group stays as it is: {allowed}
        orphan_queue_seconds? DOUBLE expected time x queues without an owner until steps settle, s
        double_queue_seconds? DOUBLE expected time x (owners - 1) until steps settle, s
        expected_replayed_messages? DOUBLE messages read again meanwhile; null: a rate is not known
        convergence_ms_p99? BIGINT the slowest step settles by then in 99 % of the futures, ms
        """,
        cannot_pop=CANNOT_POP,
    ),
    key=VARIANT_KEY,
)

PLAN_LEAGUE = Table(
    "plan_league",
    "A strategy over all groups, scenarios and seeds. Means are of sound steps: counted, with a "
    "proven minimum and an owner for every queue; no BROADCASTING, no frozen topic, no members "
    "that subscribe differently, no group without a member.",
    columns(
        """
        strategy STRING strategy text; recorded = every member's own
        of_rocketmq BOOLEAN false: RocketMQ has no such strategy
        groups BIGINT groups
        rebalances BIGINT steps counted, sound or not
        moved? BIGINT queues moved in them (BROADCASTING: got another reader); null under POP
        moved_per_rebalance? DOUBLE mean of moved, of the sound steps
        minimum_moves? BIGINT proven minimum, where amplification means something
        amplification? DOUBLE moved / minimum_moves, both where it means something
        stickiness? DOUBLE mean of the sound steps
        mean_peak_ratio? DOUBLE mean of the sound steps; 1 = even
        worst_peak_ratio? DOUBLE largest of these
        idle_members BIGINT members without a queue after, sum
        orphaned BIGINT queues without an owner after, sum
        caveat? STRING what amplification and the means leave out, and why
        pop_queues BIGINT readable queues of topics that members share, after, sum
        min_clients_per_queue? INT over plan_summary
        max_clients_per_queue? INT over plan_summary
        unreached? BIGINT sum over plan_summary
        min_redelivery_s? DOUBLE over plan_summary
        max_redelivery_s? DOUBLE over plan_summary
        cannot_pop BIGINT of strategy POP: groups that stay as they are, per variant
        """
    ),
    key=("strategy",),
)

PLAN_OWNERSHIP = Table(
    "plan_ownership",
    "Who holds each queue before and after, of the groups that were asked for.",
    _of_variant(
        """
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        owners_before ARRAY<STRING> client ids; empty: no owner, or no such queue
        owners_after ARRAY<STRING> client ids; empty: no owner, or no such queue
        """
    ),
    key=(*VARIANT_KEY, "topic", "broker_name", "queue_id"),
)

PLAN_OUTPUT_TABLES = {
    table.name: table for table in (PLAN_STEPS, PLAN_SUMMARY, PLAN_LEAGUE, PLAN_OWNERSHIP)
}
"""What `plan` writes, beside `rejected`."""

ROLLOUT_PLANS = Table(
    "rollout_plans",
    "A way to deploy, in one group and in all groups together (null): means over simulated "
    "futures; p99 is what 99 % of them do not exceed. On the front count finish_s_p50 and cost, "
    "or without prices read_again and no_owner_queue_seconds.",
    columns(
        """
        plan_id STRING the plan
        consumer_group? STRING the group; null: all groups together
        surge STRING processes that join before others stop, a number or a percentage (maxSurge)
        unavailable STRING members that stop before others join (maxUnavailable)
        pause_ms BIGINT from when those of a step are ready to the next step, ms
        order STRING in which members are replaced: random, first_first, last_first by client id
        finish_s_p50 DOUBLE from the begin to the last queue given up or taken, s
        finish_s_p99 DOUBLE from the begin to the last queue given up or taken, s
        read_again? DOUBLE messages read again; null: a rate is not known
        read_again_p99? DOUBLE messages read again; null: a rate is not known
        no_owner_queue_seconds DOUBLE queues x seconds without an owner
        no_owner_queue_seconds_p99 DOUBLE queues x seconds without an owner
        double_queue_seconds DOUBLE time x (owners - 1) of queues, s
        moves DOUBLE queues passed from one client to another
        peak_members INT most members at once; of several groups their sum
        cost? DOUBLE copies, seconds without an owner, hours of more pods x prices; null: no prices
        on_front BOOLEAN no other plan is as good in all figures that count and better in one
        within_budget BOOLEAN 99 % of the futures keep the budgets
        cluster? STRING of the group; null: all groups together
        double_queue_seconds_p99 DOUBLE time x (owners - 1) of queues, s
        fewest_members INT fewest members of a group at once
        futures BIGINT how many were simulated; plans that fall behind are given up early
        """
    ),
    key=("plan_id", "cluster", "consumer_group"),
)

SEARCH_TABLES = {ROLLOUT_PLANS.name: ROLLOUT_PLANS, HANDOVERS.name: HANDOVERS}
"""What `plan --search` writes, beside `rejected`; ``handovers`` is of the plan that is chosen."""
