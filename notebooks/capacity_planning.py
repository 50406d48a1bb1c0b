# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Capacity planning: how many consumers, how many queues, which strategy
#
# **The question.** `order-service` reads `OrderTopic`: 8 queues on two brokers, a few consumers,
# `AVG`. A sale will bring three times the messages. A consumer copes with what the busiest one reads
# today, not with more, and that must hold while any one of them is missing.
# *How many consumers do we start, do they need more queues, do we change the strategy, and how many
# queues change hands when we do it?*
#
# The history is a recording of a real RocketMQ 5.3.3 cluster that comes with this repository
# (`rebalance_core/bundled/demo/join-leave`). Set `PLAN_INPUT` and `PLAN_GROUP` to plan for a group of yours: what `rebalance
# ingest` writes is enough. The text above is about the example; parts 1, 2 and 4 to 6 compute the
# group that was asked for; parts 3, 7 and 8 are examples whatever it is, and what they print says so.

# %%
import os
import tempfile
from pathlib import Path

import pandas as pd

try:
    HERE = Path(__file__).resolve().parent
except NameError:  # a notebook has no __file__; it runs in its own folder
    HERE = Path.cwd()
TREE = HERE.parent if HERE.name == "notebooks" else HERE

INPUT = os.environ.get("PLAN_INPUT", str(TREE / "rebalance_core/bundled/demo/join-leave/tables"))
GROUP = os.environ.get("PLAN_GROUP", "order-service")
GROWTH = 3.0  # messages in the sale / messages today
PICTURES = os.environ.get("PLAN_PICTURES")  # a folder: the pictures are written there too
STRATEGIES = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH(virtual_nodes=10)",
              "CONSISTENT_HASH(virtual_nodes=200)"]
NOT_OF_ROCKETMQ = ["STICKY_BALANCED", "CONSISTENT_HASH_BOUNDED(epsilon=0.25)"]

# %%
from rebalance_core import (
    MessageQueue, draw_convergence, draw_league, draw_load, draw_moves, draw_ownership,
    draw_producers, draw_what_if, draw_worst_future, growth_plans, growth_recommendation, movement,
    planning_strategy, read_tables, save_picture, simulate, what_if,
)
def show(figure, name):
    """The picture in the notebook, and as a file where PLAN_PICTURES says so."""
    if PICTURES:
        save_picture(figure, Path(PICTURES) / f"{name}.png")
    return figure


# %% [markdown]
# ## 1. The same history under each strategy
#
# `simulate` replays the history once as it was, and once for each strategy. `group_metrics` has
# movement and balance of every rebalance, and the proven minimum: the fewest queues that *any*
# balanced result must move.

# %%
tables = read_tables(INPUT)
# offsets say where new owners start to read; who owns what does not depend on them
inputs = {name: tables[name] for name in ("cluster_events", "consumer_groups") if name in tables}
KEYS = ["cluster", "consumer_group", "epoch"]


def steps_of(ledger, strategy, of_rocketmq=True):
    """Rows as `plan_steps` has them: movement and balance of each rebalance."""
    metrics = ledger.group_metrics.to_pandas()
    epochs = ledger.epochs.to_pandas().rename(columns={"from_ms": "change_ms"})
    epochs = epochs[[*KEYS, "change_ms", "causes", "orphaned", "shared"]]
    steps = metrics[metrics["topic"].isna()].merge(epochs, on=KEYS)
    # the first joins are the same under every strategy: one member takes all there is
    steps = steps[(steps["epoch"] > 0) & (steps["members"] > 0)]
    return steps.assign(strategy=strategy, of_rocketmq=of_rocketmq).sort_values(KEYS)


steps = []
recorded = simulate(inputs, group=GROUP)
ownership, load, memberships = (
    table.to_pandas()
    for table in (recorded.ownership, recorded.consumer_load, recorded.memberships)
)
used = sorted(memberships["strategy"].unique())  # what the members really had
for name in STRATEGIES:
    again = recorded if used == [name] else simulate(inputs, group=GROUP, strategy=name)
    steps.append(steps_of(again, name))

# %% [markdown]
# Two strategies that **RocketMQ does not have** say what would be possible. They need no Spark: each
# step takes the members and queues of the epoch and what was held before.


# %%
def during(table, epoch):
    """The rows of a table of intervals that hold in an epoch."""
    return table[(table["from_epoch"] <= epoch) & ~(table["to_epoch"] <= epoch)]


readable = ownership[~ownership["topic"].str.startswith("%RETRY%")]
for name in NOT_OF_ROCKETMQ:
    strategy, held, rows = planning_strategy(name), {}, []
    for base in steps[0].itertuples():
        if not held:  # the state before the first step
            held = {
                MessageQueue(row.topic, row.broker_name, row.queue_id): row.client_id
                for row in during(readable, base.epoch - 1).itertuples()
            }
        members = list(during(memberships, base.epoch)["client_id"])
        queues = [
            MessageQueue(row.topic, row.broker_name, row.queue_id)
            for row in during(readable, base.epoch).itertuples()
        ]
        owners = strategy.assign(held, queues, members)
        figures = movement(held, members, owners).group
        rows.append({
            **base._asdict(), "strategy": str(strategy), "of_rocketmq": False,
            **{key: getattr(figures, key) for key in (
                "moved", "minimum_moves", "max_queues", "min_queues", "peak_ratio", "idle_members",
            )},
        })
        held = {queue: clients[0] for queue, clients in owners.items() if clients}
    steps.append(pd.DataFrame(rows))
steps = pd.concat(steps, ignore_index=True)
show(draw_moves(steps), "moves")

# %% [markdown]
# A bar above the black line moved queues that could have stayed. CONSISTENT_HASH can lie **below**
# it: the minimum is that of a *balanced* result, and CONSISTENT_HASH does not balance. Moved / fewest
# means nothing for BROADCASTING, and where queues are left without an owner.
#
# ## 2. What the consumers had
#
# Queues per consumer in the recorded history, and who owned which queue. Consumers stand in the
# order in which RocketMQ sorts them, which decides what AVG gives to whom.

# %%
show(draw_load(load), "load")

# %%
show(draw_ownership(ownership), "ownership")

# %% [markdown]
# The same under every strategy: the band goes from the consumer with the fewest queues to the one
# with the most. What AVG moves more, it has more even.

# %%
show(draw_load(steps[steps["of_rocketmq"].astype(bool)]), "bands")

# %% [markdown]
# ## 3. Is it the group, or the strategy? A fleet
#
# One group and a handful of rebalances are an anecdote. A generated example fleet (`rebalance generate`) has
# hundreds of rebalances of groups of many sizes. One point is one strategy: to the right what it
# moves, upwards how uneven it is.


# %%
def league_of(steps):
    """Rows with the columns of `plan_league`, from simulated steps."""
    rows = []
    for name, of in steps.groupby("strategy", sort=False):
        compared = of[(of["orphaned"] == 0) & (of["shared"] == 0)]
        fewest = int(compared["minimum_moves"].sum())
        rows.append({
            "strategy": name, "of_rocketmq": bool(of["of_rocketmq"].iloc[0]),
            "groups": of["consumer_group"].nunique(), "rebalances": len(of),
            "moved": int(of["moved"].sum()), "moved_per_rebalance": of["moved"].mean(),
            "minimum_moves": fewest,
            "amplification": compared["moved"].sum() / fewest if fewest else None,
            "mean_peak_ratio": of["peak_ratio"].mean(), "worst_peak_ratio": of["peak_ratio"].max(),
            "idle_members": int(of.groupby(KEYS[:2])["idle_members"].last().sum()),
            "orphaned": int(of.groupby(KEYS[:2])["orphaned"].last().sum()),
            "caveat": None if len(compared) == len(of) else "some rebalances have no minimum",
        })
    return pd.DataFrame(rows)


from rebalance_core import FleetPlan, generate_and_write

with tempfile.TemporaryDirectory() as folder:
    generate_and_write(FleetPlan(groups=20, days=1, seed=7), Path(folder))
    fleet_tables = read_tables(folder)
fleet_inputs = {name: fleet_tables[name] for name in ("cluster_events", "consumer_groups")}
fleet = pd.concat([
    steps_of(simulate(fleet_inputs, strategy=name), name) for name in STRATEGIES
])
# under BROADCASTING every member owns everything: no strategy is asked, no minimum, no balance
fleet = fleet[fleet["minimum_moves"].notna()]
league = league_of(fleet)
show(draw_league(league), "league")

# %% [markdown]
# ## 4. How many
#
# Today's peak, times the growth, is what the busiest consumer may carry: fewer queues each, or
# queues with less in each. Either way the plan must hold with one consumer missing.

# %%
intervals = (ownership, load, memberships)
last = max(table[["from_epoch", "to_epoch"]].max().max() for table in intervals)
today = during(memberships, last)
members = sorted(today["client_id"])
now = during(readable, last).drop_duplicates(["topic", "broker_name", "queue_id"])
numbers = {
    topic: rows.groupby("broker_name").size().astype(int).to_dict()
    for topic, rows in now.groupby("topic")
}
if today.empty:
    raise SystemExit(f"{GROUP} has no member at the end of the history: there is nothing to plan from")
strategy_today = today["strategy"].iloc[0]
plans = growth_plans(
    members, numbers, strategy_today, GROWTH, (*STRATEGIES, *NOT_OF_ROCKETMQ),
    capacity=int(during(load, last)["queues"].max()),
    moved_per_rebalance=league.set_index("strategy")["moved_per_rebalance"].to_dict(),
)
for factor, count in plans.consumers.items():
    total = sum(sum(brokers.values()) for brokers in numbers.values()) * factor
    enough = "no number of consumers is enough: one of them always has more"
    if count is not None:
        enough = f"{count} consumers, one to spare"
    print(f"{total} queues: at most {plans.limits[factor]:.3g} each; {enough}")

# %% [markdown]
# ## 5. What if
#
# The plans side by side, computed by the replay's own pass, no Spark. Hatched cells are idle: a
# consumer that is paid for and reads nothing. New ids are made up to sort after the group's highest
# address; see how RocketMQ's order puts them *before* some of the old ones.

# %%
own_plans = [change for (_, name), change in plans.changes.items() if name == strategy_today]
lost = what_if(members, numbers, strategy_today, {"lose_broker": sorted(next(iter(numbers.values())))[0]})
hashed = [change for (factor, name), change in plans.changes.items()
          if factor == 2 and name == "CONSISTENT_HASH(virtual_nodes=10)"]
show(draw_what_if([lost, plans.trap, *own_plans, *hashed]), "what-if")

# %% [markdown]
# ## 6. The recommendation
#
# Of the plans whose busiest consumer stays inside the limit with any one consumer missing, idle consumers count against a plan
# first, then the queues that its strategy moved per rebalance over the fleet. Strategies that
# RocketMQ does not have are no choice; they only say what is lost by that.

# %%
verdicts = pd.DataFrame(plans.rows())
print("no plan to compare" if verdicts.empty else verdicts.round(2).to_string(index=False))

# %%
print("\n".join(growth_recommendation(plans, GROUP)))

# %% [markdown]
# ## 7. The other half, by an example: is `sendLatencyFaultEnable` worth it?
#
# Producers decide what consumers have to share. The model (`rebalance_core/bundled/producers/brown-out.toml`) has four
# brokers with 8 queues each and 200 producers, one thread each, that send 50 messages a second. For
# three minutes broker-b is slow: half of its answers take 0.8 s and more. The same producers with
# RocketMQ's default (off) and with fault tolerance (on), as 4.9.8 and as 5.3.3. A thread that waits
# for an answer sends nothing else: programs with more threads, or async sends, lose less.

# %%
from dataclasses import replace

from rebalance_core import (
    allocate_group, make_strategy, producer_variants, read_producer_model, simulate_producers,
)

model = read_producer_model(TREE / "rebalance_core/bundled/producers/brown-out.toml")
answers = simulate_producers(model)
outcomes, shares = (answers[n].to_pandas() for n in ("producer_outcomes", "producer_shares"))
show(draw_producers(outcomes), "producers")

# %% [markdown]
# Held back are messages that were due while the thread waited for a slow answer. The price of fault
# tolerance is an uneven load: up to 5.1.3 the turn of an avoided broker falls to the *first queue
# behind its own*, from 5.1.4 all others share it. What that means for consumers: 8 of them under AVG,
# by the rates of the queues in those three minutes.

# %%
slow = model.disturbances[0]
clients = [f"10.0.0.{number}@1" for number in range(8)]


def consumer_peak(variant):
    """Messages of the busiest of the consumers over their mean while the broker is slow."""
    groups = tuple(replace(group, clients=50, variant=variant) for group in model.groups)
    rates = simulate_producers(replace(model, groups=groups), ())["queue_rates"].to_pylist()
    rate = {
        MessageQueue(row["topic"], row["broker_name"], row["queue_id"]): row["messages_per_second"]
        for row in rates if row["from_ms"] == model.start_ms + slow.from_ms
    }
    load = dict.fromkeys(clients, 0.0)
    for queue, (owner,) in allocate_group(make_strategy("AVG"), list(rate), clients).items():
        load[owner] += rate[queue]
    return max(load.values()) * len(clients) / sum(load.values())


during_it = outcomes[outcomes["phase"] == slow.label]
back = shares[shares["not_recovered"].notna()].set_index(["client_version", "fault_tolerance"])
table = []
for variant in sorted(producer_variants(model)[model.groups[0].name], key=str):
    key = (str(variant.version), variant.fault_tolerance)
    row = during_it.set_index(["client_version", "fault_tolerance"]).loc[key]
    again = back.loc[key]
    table.append({
        "client": f"{key[0]} {'on' if key[1] else 'off'}",
        "sent": row["stored"] / (row["sends"] + row["held_back"]),
        "failed": row["failed"], "held_back": row["held_back"],
        "busiest_queue": row["peak_queue_ratio"], "busiest_consumer": consumer_peak(variant),
        "not_back_after_5_min": int(again["not_recovered"]),
        "back_after_s": again["recovery_ms"] / 1000,
    })
verdict = pd.DataFrame(table)
print(verdict.round(3).to_string(index=False))

# %%
of = verdict.set_index("client")
off, new, old = of.loc["5.3.3 off"], of.loc["5.3.3 on"], of.loc["4.9.8 on"]
print(
    f"EXAMPLE rebalance_core/bundled/producers/brown-out.toml, not {GROUP}: {len(model.brokers)} brokers,"
    f" {model.producers} producers of one thread.\n"
    f"Switch it on, with clients of 5.1.4 or newer: {new['sent']:.0%} of the messages get through"
    f" instead of {off['sent']:.0%}, {new['failed']:,.0f} fail instead of {off['failed']:,.0f}, the"
    f" busiest consumer has {new['busiest_consumer']:.2f} times the mean, and the broker is used"
    f" again {new['back_after_s']:.0f} s after it recovered.\n"
    f"With 4.9.8 {old['sent']:.0%} get through, but one queue carries {old['busiest_queue']:.1f} times"
    f" the mean, the busiest consumer {old['busiest_consumer']:.2f} times, and"
    f" {old['not_back_after_5_min']:.0f} of {model.producers} producers do not use the broker again in"
    f" the five minutes behind: plan consumers for that peak, or upgrade the clients first."
)

# %% [markdown]
# ## 8. The deploy afterwards, by an example: how fast?
#
# A deploy restarts every consumer. Each restart moves queues twice, and until all members have acted
# some queues have no owner and others have two. `rebalance plan` simulates that over time, in many
# futures, as nobody knows where everybody's timers will stand. The example (`rebalance_core/bundled/demo/steady`) is a group
# at rest: 12 consumers, 32 queues, 100 messages a second in each; a process needs 15 s to restart.

# %%
from rebalance_core import (
    PlanConfig, plan_variants, planned_histories, read_input_tables, read_scenarios,
    read_strategies, run_plan, simulated_handovers,
)

FUTURES = 50
steady = read_input_tables(str(TREE / "rebalance_core/bundled/demo/steady/tables"))
(restart,) = read_scenarios([TREE / "rebalance_core/bundled/scenarios/rolling-restart.toml"])


def pace(name, percent, every_s, order="random"):
    """A rolling restart at another pace, or in another order."""
    edit = replace(restart.edits[0], percent=percent, every=every_s * 1000, order=order)
    return replace(restart, name=name, edits=(edit,))


paces = [
    pace("one a minute", 1.0, 60), pace("one in 5 s", 1.0, 5),
    pace("a quarter a minute", 25.0, 60), pace("half a minute", 50.0, 60),
    pace("all at once", 100.0, 60), pace("one a minute, first first", 1.0, 60, "first_first"),
    pace("one a minute, last first", 1.0, 60, "last_first"),
]
mistakes = []
asked = ["AVG", "CONSISTENT_HASH(virtual_nodes=200)"]
with tempfile.TemporaryDirectory() as folder:
    run_plan(
        steady, plan_variants(paces, read_strategies(asked, mistakes), (0,)), Path(folder) / "plan",
        PlanConfig(group="checkout", futures=FUTURES),
    )
    summary = pd.read_parquet(Path(folder) / "plan/plan_summary")
deploys = summary[summary["scenario"] != "baseline"].set_index(["scenario", "strategy"])
deploys = deploys.loc[[(each.name, name) for name in asked for each in paces]].reset_index()
deploys["settled_s"] = deploys["convergence_ms_p99"] / 1000
print(deploys[["scenario", "strategy", "moved", "orphan_queue_seconds", "double_queue_seconds",
               "read_again", "settled_s"]].round(1).to_string(index=False))

# %% [markdown]
# Queues without an owner wait; what two owners read at once is read again. How long single steps
# take, over all steps and futures:

# %%
drawn = ["one a minute", "one in 5 s", "half a minute"]
variants = plan_variants([each for each in paces if each.name in drawn],
                         read_strategies(["AVG"], mistakes), (0,))
futures = pd.concat(
    simulated_handovers(history, FUTURES).to_pandas()
    .query("change_ms >= @first_ms").assign(pace=name)
    for name, first_ms, history in planned_histories(steady, variants, "checkout")
    if first_ms >= 0
)
show(draw_convergence(futures, by="pace"), "convergence")

# %% [markdown]
# And the worst of these futures at one consumer a minute, queue by queue: the leaver's queues wait
# until the others have been told and have run a pass, and as AVG shifts nearly every share, members
# that act at slightly different times leave gaps, or both hold a queue.

# %%
show(draw_worst_future(futures[futures["pace"] == "one a minute"]), "worst-future")

# %%
of = deploys[deploys["strategy"] == "AVG"].set_index("scenario")
ring = deploys[deploys["strategy"] != "AVG"].set_index("scenario").loc["one a minute"]
slow, half, whole_group = (of.loc[name] for name in ("one a minute", "half a minute", "all at once"))
print(
    f"EXAMPLE rebalance_core/bundled/demo/steady, not {GROUP}: 12 consumers, 32 queues.\n"
    f"DEPLOY: under AVG as many at once as the rest can carry. Two halves, a minute apart, cost"
    f" {half['orphan_queue_seconds']:.0f} queue-seconds without an owner and"
    f" {half['read_again']:,.0f} messages read again; one by one it is"
    f" {slow['orphan_queue_seconds']:.0f} and {slow['read_again']:,.0f}, as each step"
    f" shifts most shares. All at once costs {whole_group['orphan_queue_seconds']:.0f}: nobody reads"
    f" for the 15 s of a restart.\n"
    f"Under CONSISTENT_HASH one by one is cheapest, {ring['orphan_queue_seconds']:.0f} and"
    f" {ring['read_again']:,.0f}: a step moves little but the leaver's own queues.\n"
    f"The order hardly matters: {of.loc['one a minute, first first', 'orphan_queue_seconds']:.0f} and"
    f" {of.loc['one a minute, last first', 'orphan_queue_seconds']:.0f} queue-seconds from the first or"
    f" the last on. The slowest step of {FUTURES} futures settled after {slow['settled_s']:.0f} s:"
    f" wait no longer."
)

# %% [markdown]
# ## 9. Which deploy, then?
#
# `rebalance plan --search` tries every pace of a Kubernetes Deployment in the same futures and gives
# plans up as they fall behind. The example again: both groups of the demo, a concurrent and an
# orderly one, are deployed together. All queues must have an owner again within two minutes, no
# group may fall below 9 of its 12 consumers, and 450 queue-seconds without an owner are too many.

# %%
from rebalance_core import (
    DEFAULT_ROLLOUT, draw_rollouts, read_search, rollout_recommendation, rollout_texts, run_search,
)

with tempfile.TemporaryDirectory() as folder:
    searched = run_search(steady, read_search("restart"), Path(folder) / "rollout").facts["searched"]
print("\n".join(rollout_recommendation(searched)))
print(rollout_texts(searched)["strategy.yaml"])

# %%
rollouts = searched.table.to_pandas()
plan_ids = [searched.rollouts.plans[number].plan_id for number in (searched.chosen, DEFAULT_ROLLOUT)]
show(draw_rollouts(rollouts, *plan_ids), "rollouts")

# %% [markdown]
# Twice the pods for half a minute are not everybody's. With room for a quarter more, the best of the
# same plans, beside what each group alone would choose:

# %%
DEPLOY = ["plan_id", "finish_s_p50", "finish_s_p99", "read_again", "no_owner_queue_seconds",
          "cost", "peak_pods"]
together = rollouts[rollouts["consumer_group"].isna() & rollouts["within_budget"]]
roomy = together[together["peak_pods"] <= 30].sort_values("cost")
print(roomy[DEPLOY].head(3).round(1).to_string(index=False))
for name, own in rollouts[rollouts["consumer_group"].notna()].groupby("consumer_group"):
    ranked_plans = own.sort_values(["cost", "finish_s_p50"]).reset_index(drop=True)
    print(f"\n{name} alone")
    print(ranked_plans[DEPLOY].head(3).round(1).to_string(index=False))
