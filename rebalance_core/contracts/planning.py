"""The tables of plans: their inputs besides those of a simulation, and their outputs."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from rebalance_core.contracts.propagation import HANDOVERS, HELD, HOLDERS
from rebalance_core.contracts.table import QUEUE_KEY, Column, Table, columns
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.verdicts import EPOCH_STATUSES, UNKNOWN

QUEUE_RATES = Table(
    "queue_rates",
    "Messages per second into a queue over a period.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_ms BIGINT start of the period
        to_ms? BIGINT end (exclusive); null: open
        messages_per_second DOUBLE mean rate, 0 or more
        """
    ),
    key=("cluster", *QUEUE_KEY, "from_ms"),
    required=False,
)

PLAN_INPUT_TABLES = {QUEUE_RATES.name: QUEUE_RATES}
"""What `plan` reads besides the input tables."""


CANNOT_POP = ("PROXY", BROADCASTING, "ORDERLY", "PULL", "VERSION")
"""Why a group cannot pop from brokers; the first reason that applies counts: it is behind proxies,
which share its queues already; it broadcasts; its listener is orderly; it pulls; a client is older
than 5.0."""

_VARIANT = columns(
    """
    cluster STRING the RocketMQ cluster
    consumer_group STRING the group
    scenario STRING the scenario; baseline = the history without edits
    strategy STRING strategy text; recorded = every member's own
    of_rocketmq BOOLEAN false: RocketMQ has no such strategy
    seed BIGINT seed of the scenario's random choices
    """
)


def _of_variant(text: str, **allowed: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a table about groups under each variant."""
    return _VARIANT + columns(text, **allowed)


VARIANT_KEY = ("cluster", "consumer_group", "scenario", "strategy", "seed")

PLAN_STEPS = Table(
    "plan_steps",
    "Queue moves and balance in each epoch of each group under each variant.",
    _of_variant(
        """
        epoch INT the epoch that starts with this change
        change_ms BIGINT when the event happened
        causes ARRAY<STRING> distinct types of the epoch's events, by sequence
        status STRING EMPTY (no member), FROZEN (a member could not allocate a topic) or SETTLED
        counted BOOLEAN the summary counts this step
        members INT distinct client ids that subscribe
        queues INT readable queues, without retry topics
        moved? INT queues with an ADD; null if all queues are shared
        voluntary_moves? INT queues with a VOLUNTARY ADD; null if moved is null
        minimum_moves? INT proven minimum for a balanced result; null where it has no meaning
        amplification? DOUBLE moved / minimum_moves; null at 0 or without owners
        stickiness? DOUBLE share of previously held queues that keep their holder
        max_queues? INT most and fewest queues of one member; null if moved is null
        min_queues? INT most and fewest queues of one member; null if moved is null
        peak_ratio? DOUBLE max_queues x members / queues
        idle_members INT members without a queue
        orphaned INT readable queues without an owner, including retry topics
        shared INT queues held by more than one process, including retry topics
        pop_queues INT readable queues of topics that members share; not in any other count
        min_clients_per_queue? INT clients that may take messages from a shared queue
        max_clients_per_queue? INT clients that may take messages from a shared queue
        unreached? INT shared queues from which no client may take messages
        min_redelivery_s? DOUBLE until a dead client's messages, invisible for 60 s, are redelivered
        max_redelivery_s? DOUBLE until a dead client's messages, invisible for 60 s, are redelivered
        cannot_pop? STRING why POP changes nothing: {allowed}
        """,
        status=EPOCH_STATUSES,
        cannot_pop=CANNOT_POP,
    ),
    key=(*VARIANT_KEY, "epoch"),
)

PLAN_SUMMARY = Table(
    "plan_summary",
    "A group before the first edit (baseline: in its first epoch) and at the end, with the steps "
    "between them. Expected figures are means over simulated futures. They are null if none was "
    "simulated: for a strategy that RocketMQ lacks, POP, a frozen topic, or a group that is not "
    "simulated.",
    _of_variant(
        """
        rebalances INT steps counted
        members_before INT number of members; 0 before: the group did not exist yet
        members_after INT number of members; 0 before: the group did not exist yet
        queues_before INT readable queues
        queues_after INT readable queues
        moved? BIGINT sum of moved
        minimum_moves? BIGINT sum of minimum_moves; null where a step has none
        amplification? DOUBLE moved / minimum_moves; null at 0 or with a caveat
        stickiness? DOUBLE mean over the steps
        peak_queues_before? INT most queues of one member
        peak_queues_after? INT most queues of one member
        peak_ratio_before? DOUBLE max_queues x members / queues
        peak_ratio_after? DOUBLE max_queues x members / queues
        idle_before INT members without a queue
        idle_after INT members without a queue
        orphaned_before INT readable queues without an owner
        orphaned_after INT readable queues without an owner
        frozen BOOLEAN a member could not allocate a topic
        caveat? STRING why amplification has no meaning here
        skipped_messages? BIGINT messages never read; null: a start is unknown
        left_unread? BIGINT messages in queues that are no longer readable; null: not known
        peak_messages_per_second? DOUBLE highest rate of one member after the change
        pop_queues_before INT readable queues of topics that members share
        pop_queues_after INT readable queues of topics that members share
        min_clients_per_queue? INT as in plan_steps, after
        max_clients_per_queue? INT as in plan_steps, after
        unreached? INT as in plan_steps, after
        min_redelivery_s? DOUBLE as in plan_steps, after
        max_redelivery_s? DOUBLE as in plan_steps, after
        cannot_pop? STRING why POP changes nothing: {allowed}
        proxy_clients? BIGINT clients whose proxy restarts; null: no proxy restarts
        proxy_wait_s? DOUBLE longest wait of a message, invisible for 60 s, because of the restart
        proxy_repeat_s? DOUBLE time from a stop until messages just delivered may be redelivered
        orphan_queue_seconds? DOUBLE queues x seconds without an owner until steps settle
        double_queue_seconds? DOUBLE seconds x (owners - 1) until steps settle
        read_again? DOUBLE messages read again at handovers or starts below a commit; null: unknown
        convergence_ms_p99? BIGINT time within which the slowest step settles in 99 % of the futures
        start_up_ms_p50? BIGINT time within which start() returns in half of the futures
        start_up_brokers? BIGINT number of brokers with which start() registers
        """,
        cannot_pop=CANNOT_POP,
    ),
    key=VARIANT_KEY,
)

PLAN_LEAGUE = Table(
    "plan_league",
    "A strategy over all groups, scenarios and seeds. Means cover sound steps: counted, with a "
    "proven minimum and an owner for every queue. They exclude BROADCASTING, frozen topics, "
    "members that subscribe differently, and groups without a member.",
    columns(
        """
        strategy STRING strategy text; recorded = every member's own
        of_rocketmq BOOLEAN false: RocketMQ has no such strategy
        groups BIGINT groups
        rebalances BIGINT steps counted
        moved? BIGINT queues moved in the counted steps; null under POP
        moved_per_rebalance? DOUBLE mean over the sound steps
        minimum_moves? BIGINT proven minimum, where amplification has a meaning
        amplification? DOUBLE moved / minimum_moves, both where amplification has a meaning
        stickiness? DOUBLE mean over the sound steps
        mean_peak_ratio? DOUBLE mean over the sound steps; 1 = even
        worst_peak_ratio? DOUBLE the largest peak_ratio of the sound steps
        idle_members BIGINT sum of members without a queue, after
        orphaned BIGINT sum of queues without an owner, after
        caveat? STRING what the means exclude, and why
        pop_queues BIGINT sum of shared readable queues, after
        min_clients_per_queue? INT over plan_summary
        max_clients_per_queue? INT over plan_summary
        unreached? BIGINT sum over plan_summary
        min_redelivery_s? DOUBLE over plan_summary
        max_redelivery_s? DOUBLE over plan_summary
        cannot_pop BIGINT groups that POP does not change
        """
    ),
    key=("strategy",),
)

PLAN_OWNERSHIP = Table(
    "plan_ownership",
    "The owners of each queue before and after, for the requested groups.",
    _of_variant(
        """
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        owners_before ARRAY<STRING> client ids; empty: no owner, or no such queue
        owners_after ARRAY<STRING> client ids; empty: no owner, or no such queue
        """
    ),
    key=(*VARIANT_KEY, *QUEUE_KEY),
)

ExpectedFigure = Literal[
    "no_owner_s",
    "orphaned",
    "peak_queues",
    "moved",
    "read_again",
    "left_unread",
    "late_s",
]
EXPECTED_FIGURES: tuple[ExpectedFigure, ...] = get_args(ExpectedFigure)
"""The figures that ``[[expect]]`` tables limit."""
KEPT: Final = "KEPT"
BROKEN: Final = "BROKEN"
EXPECTATION_VERDICTS = (KEPT, BROKEN, UNKNOWN)

EXPECTATIONS = Table(
    "expectations",
    "What an [[expect]] table requires of a group under a variant of its file, and the computed "
    "figure. For a search, the figure of the chosen plan.",
    _of_variant(
        """
        expectation INT number of the [[expect]] table in the file, from 1
        figure STRING {allowed}
        percentile? DOUBLE share of futures within value, in percent; null: value is a mean
        at_most DOUBLE the expected maximum
        value? DOUBLE the figure; null: not known
        verdict STRING {allowed}
        reason? STRING the reason why the value is not known
        """,
        figure=EXPECTED_FIGURES,
        verdict=EXPECTATION_VERDICTS,
    ),
    key=(*VARIANT_KEY, "expectation", "figure"),
)

LOST_OBJECTS = ("broker", "master", "host", "zone", "member")
"""Values of ``each`` in an edit, which makes a scenario for each object that may be lost."""

LOSSES = Table(
    "losses",
    "The effects on a group of losing one object, from a scenario with `each`. The figures are "
    "those of plan_summary, after. Ranks count the queues that lose their owner.",
    _of_variant(
        """
        each STRING {allowed}
        object STRING the name of the object
        rank INT 1 = the worst loss of the group under this strategy and seed
        orphaned INT readable queues without an owner
        left_unread? BIGINT messages that stay in lost queues; null: not known
        no_owner_s? DOUBLE queues x seconds without an owner; null: not simulated
        read_again? DOUBLE messages read again; null: not known
        moved? BIGINT queues that received an owner
        members INT remaining members
        peak_queues? INT most queues of one member
        idle INT members without a queue
        orphaned_before INT readable queues without an owner before the loss
        """,
        each=LOST_OBJECTS,
    ),
    key=VARIANT_KEY,
)

PLAN_HOLDERS = Table(
    "plan_holders",
    "When a process holds a queue in one simulated future of a variant, from its first edit on. "
    "Covers simulated groups only; columns as in holders.",
    _of_variant(
        f"""
        future BIGINT number of the simulated future, from 0
        {HELD.strip()}
        """
    ),
    key=(*VARIANT_KEY, "future", *QUEUE_KEY, "client_id", "channel_id", "from_ms"),
)

PLAN_OUTPUT_TABLES = {
    table.name: table
    for table in (
        PLAN_STEPS,
        PLAN_SUMMARY,
        PLAN_LEAGUE,
        PLAN_OWNERSHIP,
        PLAN_HOLDERS,
        EXPECTATIONS,
        LOSSES,
    )
}
"""What `plan` writes, besides `rejected`."""

SizeBound = Literal["THREADS", "QUEUES", "ORDERED", "SPARE", "UNKNOWN"]
SIZE_BOUNDS: tuple[SizeBound, ...] = get_args(SizeBound)
GIVEN: Final = "GIVEN"
COMMITS: Final = "COMMITS"

SIZES = Table(
    "sizes",
    "How many members and queues a group needs while any one member or broker is missing.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        ordered BOOLEAN the listener is orderly: one thread reads a queue
        members_now INT members at the end of the history
        queues_now INT readable queues, without retry topics
        rate? DOUBLE messages that arrive per second; null: not known
        unread? BIGINT waiting messages; null: not known
        capacity? DOUBLE messages that a member reads per second; null: not known
        measured? STRING the source of the capacity: {allowed}
        members? INT members needed, including the spare
        queues? INT queues needed
        bound STRING what determines the size: {allowed}; SPARE: one member carries all
        reason STRING the same, in words
        catch_up_s? DOUBLE catch-up time after an outage of a member's queues; null: not known
        """,
        measured=(GIVEN, COMMITS),
        bound=SIZE_BOUNDS,
    ),
    key=("cluster", "consumer_group"),
)

SIZE_TABLES = {SIZES.name: SIZES}
"""What `size` writes, besides `rejected`."""

ROLLOUT_PLANS = Table(
    "rollout_plans",
    "A deployment plan, for each group and for all groups together (null): means over simulated "
    "futures; p99 is the value that 99 % of them do not exceed. The front compares finish_s_p50 "
    "and cost.",
    columns(
        """
        plan_id STRING the plan
        consumer_group? STRING the group; null: all groups together
        surge STRING processes that join before others stop, as maxSurge
        unavailable STRING members that stop before others join, as maxUnavailable
        pause_ms BIGINT pause between the last ready member of a step and the next step
        order STRING random, by client id first_first or last_first, replica_set, ordinal
        start_median_ms BIGINT median time from the creation of a pod to its join
        start_spread_ms BIGINT one pod in six takes longer than the median plus this time
        ready STRING when a pod is Ready: join, container, or how long after the join
        finish_s_p50 DOUBLE time until the last queue is revoked or assigned
        finish_s_p99 DOUBLE time until the last queue is revoked or assigned
        read_again? DOUBLE messages read again; null: a rate is not known
        read_again_p99? DOUBLE messages read again; null: a rate is not known
        no_owner_queue_seconds DOUBLE queues x seconds without an owner
        no_owner_queue_seconds_p99 DOUBLE queues x seconds without an owner
        double_queue_seconds DOUBLE seconds x (owners - 1) of queues; suspended owners count
        moves DOUBLE queues passed from one client to another
        peak_members INT most members at once
        peak_pods INT most pods at once, from their creation on
        cost DOUBLE by the prices; else late_messages + read_again, or queue-seconds unread
        cost_p99 DOUBLE the same
        late_messages? DOUBLE arrivals while no client reads (lower bound); null: a rate is unknown
        late_messages_p99? DOUBLE arrivals while no client reads (lower bound); null: as above
        on_front BOOLEAN no other plan is as good in both and better in one, by more than 5 %
        within_budget BOOLEAN 99 % of the futures keep the budgets
        cluster? STRING cluster of the group; null: all groups together
        double_queue_seconds_p99 DOUBLE seconds x (owners - 1) of queues
        fewest_members INT fewest members of a group at once
        futures BIGINT number of simulated futures
        suspend_ms BIGINT time from a member's suspension to its stop
        finish_s_p5 DOUBLE time until the last queue is revoked or assigned
        finish_s_p95 DOUBLE time until the last queue is revoked or assigned
        cost_p5 DOUBLE cost, as above
        cost_p95 DOUBLE cost, as above
        """
    ),
    key=("plan_id", "cluster", "consumer_group"),
)

ROLLOUT_DECISIONS = Table(
    "rollout_decisions",
    "The plan chosen for a group, and its cost compared with the Kubernetes default; means over "
    "simulated futures, p99 as in rollout_plans.",
    columns(
        """
        cluster STRING
        consumer_group STRING
        members INT number of deployed members
        plan_id STRING the plan, as in rollout_plans
        surge STRING as maxSurge
        unavailable STRING as maxUnavailable
        pause_ms BIGINT pause between the last ready member of a step and the next step
        is_default BOOLEAN the plan is the Kubernetes default
        within_budget BOOLEAN 99 % of the futures keep the budgets
        plans INT number of plans whose turns differ
        futures BIGINT number of simulated futures of the plan
        finish_s_p50 DOUBLE time until the last queue is revoked or assigned
        finish_s_p99 DOUBLE time until the last queue is revoked or assigned
        read_again? DOUBLE messages read again; null: a rate is not known
        read_again_p99? DOUBLE messages read again; null: a rate is not known
        late_messages? DOUBLE arrivals while no client reads (lower bound); null: a rate is unknown
        late_messages_p99? DOUBLE arrivals while no client reads (lower bound); null: as above
        no_owner_queue_seconds DOUBLE queues x seconds without an owner
        no_owner_queue_seconds_p99 DOUBLE queues x seconds without an owner
        cost DOUBLE as in rollout_plans
        default_cost DOUBLE cost of the Kubernetes default
        """
    ),
    key=("cluster", "consumer_group"),
)

SEARCH_TABLES = {
    table.name: table
    for table in (ROLLOUT_PLANS, ROLLOUT_DECISIONS, HANDOVERS, HOLDERS, EXPECTATIONS)
}
"""What `plan --search` writes, besides `rejected`; ``handovers`` and ``holders`` belong to the
chosen plan."""
