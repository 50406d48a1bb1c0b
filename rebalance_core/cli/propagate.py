"""The `propagate` job, from its settings to the run, its record and its summary."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, cast

from rebalance_core.cli import terminal
from rebalance_core.cli.dry_run import dry_run_report
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import PropagateOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.fitted import fit_lines, read_fit
from rebalance_core.cli.run.input_files import tables_of
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import Settings, bad_row_limits, settings_of
from rebalance_core.cli.terminal import table
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model import events
from rebalance_core.process.propagate import WRITTEN, propagate_and_write, propagation_forecast
from rebalance_core.timing.fit import Fit
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.propagation_parts import CAUSES_JOINED_BY


def run(options: PropagateOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    inputs = tables_of(options.input, options.input_format)
    backend = backend_of("propagate", options, settings, inputs.values() or [options.input])
    fit = read_fit(backend, options.fit)
    asked, limits = _propagation_options(options, settings, fit), bad_row_limits(settings)
    if options.dry_run:
        backend.check_free()
        tables = backend.input_tables(inputs)
        forecast = backend.run(propagation_forecast, tables, asked, limits, warn=terminal.warn)
        return _dry_run(options, inputs, *forecast)
    with backend.running(WRITTEN) as output:
        records = backend.records(inputs)
        names = ", ".join(record.table for record in records)
        terminal.say(f"simulating {options.seeds:,} futures of each group; inputs: {names}")
        written = backend.run(
            propagate_and_write,
            backend.input_tables(inputs),
            backend.output(),
            asked,
            limits,
            of="pieces of work",
            before_writing=output.clear,
            warn=terminal.warn,
        )
        reasons = cast("Mapping[str, int]", written.facts["played_one_by_one"])
        outcome = outcome_of(written, records, replay_reasons=reasons, seed=options.first_seed)
        record = output.finish(outcome)
    results = {
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "handover_seeds": options.handover_seeds,
        "fit": [] if fit is None else [kind.facts() for kind in fit.kinds],
        **written.facts,
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
    }
    facts = terminal.result_facts(
        "propagate", options.output, results, record.seconds, backend.name
    )
    return JobReport(_render(facts), facts)


def _propagation_options(
    options: PropagateOptions, settings: Settings, fit: Fit | None
) -> PropagationOptions:
    late_share, late_ms = options.late_name_server
    return PropagationOptions(
        seeds=options.seeds,
        first_seed=options.first_seed,
        handover_seeds=options.handover_seeds,
        holder_seeds=options.holder_seeds,
        group=options.group,
        max_queue_nums=settings.limits.max_queue_nums,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
        clock=ClockOptions(
            phases=options.phases,
            exact_times=options.exact_times,
            lost_notices=options.lost_notices,
            late_share=late_share,
            late_ms=late_ms,
            concurrent_heartbeat=options.concurrent_heartbeat,
            handler_ms=options.handler_time,
            start_up_ms=options.start_up_time,
            rtt_us=options.rtt,
            fit=fit,
        ),
    )


def _dry_run(
    options: PropagateOptions, inputs: dict[str, str], rows: RowForecast, work: Mapping[str, Any]
) -> JobReport:
    """Report how a run would judge its rows and how much it would simulate, without writing."""
    lines = []
    if work:
        changes, groups = work["changes"], work["groups"]
        lines = ["", f"{options.seeds:,} futures of {changes:,} changes in {groups:,} groups"]
    facts = {**work, "seeds": options.seeds}
    return dry_run_report(
        "propagate",
        options,
        inputs,
        rows,
        WRITTEN,
        output=options.output,
        facts=facts,
        lines=lines,
    )


Row = Mapping[str, Any]
CAUSE_HEADER = ("cause", "changes", "slowest 99 % by", "without owner", "with several")
CHANGE_HEADER = (
    "group",
    "change",
    "cause",
    "half by",
    "99 % by",
    "gap 99 %",
    "without owner",
    "with several",
)
NOT_SIMULATED = (
    "Not simulated: retry topics; topics with shared queues (POP, gRPC); hand-overs in "
    "broadcasting groups; pulls that brokers refuse; client flow control."
)


def _render(facts: Row) -> str:
    """Return the summary as text: causes, the slowest changes, recommendations and omissions."""
    first, count = facts["first_seed"], facts["seeds"]
    lines = [
        f"Propagation in {facts['output']} ({terminal.took(facts)})",
        f"{count:,} futures (seeds {first:,} to {first + count - 1:,}) of {facts['changes']:,} "
        f"changes in {facts['groups']:,} groups; hand-overs of {_kept(facts)}",
    ]
    if facts["causes"]:
        lines += ["", "Causes, slowest first"]
        lines += table(CAUSE_HEADER, [_cause(row) for row in facts["causes"]])
        lines += ["", "The slowest changes"]
        lines += table(CHANGE_HEADER, [_change(row) for row in facts["slowest"]], text=(0, 1, 2))
        lines += ["", *_legend(), "", "What to do", *_advice(facts["slowest"])]
    lines += terminal.rejected_rows(facts["rejected"])
    return terminal.joined([*lines, "", *_basis(facts), *_left_out(facts)])


def _basis(facts: Row) -> Iterator[str]:
    """Yield how long a start takes, the basis for this, and what no recording covers."""
    texts = []
    start = facts["start_up"]
    if start is not None:
        texts.append(
            f"{terminal.start_up_text(start)} In 99 % of the futures it takes at most "
            f"{_seconds(start['p99_ms'])} (group {start['consumer_group']})."
        )
    if facts["extrapolated"] is not None:
        texts.append(
            f"Extrapolated beyond the recordings, in {facts['groups_extrapolated']:,} of "
            f"{facts['groups']:,} groups: {facts['extrapolated']}."
        )
    for text in texts:
        yield from wrap(text, terminal.WIDTH)
    if facts["fit"]:
        yield "Latencies of the cluster:"
        for text in fit_lines(facts["fit"]):
            yield from wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="    ")


def _kept(facts: Row) -> str:
    kept = min(facts["handover_seeds"], facts["seeds"])
    return "none" if not kept else "the first" if kept == 1 else f"the first {kept:,}"


def _cause(row: Row) -> list[str]:
    return [
        row["cause"],
        f"{row['changes']:,}",
        _seconds(row["convergence_ms_p99"]),
        _queue_seconds(row["orphan_queue_seconds"]),
        _queue_seconds(row["double_queue_seconds"]),
    ]


def _change(row: Row) -> list[str]:
    return [
        row["consumer_group"],
        terminal.utc(row["change_ms"]),
        row["cause"],
        _seconds(row["convergence_ms_p50"]),
        _seconds(row["convergence_ms_p99"]),
        _seconds(row["gap_ms_p99"]),
        _queue_seconds(row["orphan_queue_seconds"]),
        _queue_seconds(row["double_queue_seconds"]),
    ]


def _legend() -> Iterator[str]:
    text = (
        "`99 % by`: in 99 % of the futures the last queue had moved by this time. `gap`: how "
        "long neither client read a moved queue, including the wait for the first pull. `without "
        "owner`, `with several`: queues x seconds, averaged over all futures."
    )
    yield from wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="  ")


def _advice(slowest: Sequence[Row]) -> Iterator[str]:
    general = "Expect a change to take as long as `99 % by`, and set alert delays accordingly."
    yield f"  {general}"
    for text, kinds in advice_on(row["cause"] for row in slowest).items():
        yield from wrap(
            f"{', '.join(kinds)}: {text}",
            terminal.WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
        )


def _left_out(facts: Row) -> Iterator[str]:
    yield from wrap(NOT_SIMULATED, terminal.WIDTH)
    for name, text in (
        ("groups_with_shared_topics", "groups with topics that members share"),
        ("groups_of_unknown_subscriptions", "groups left out: a member's subscription is unknown"),
        ("groups_that_broadcast", "groups that broadcast (only their convergence counts)"),
    ):
        if facts[name]:
            yield f"  {text}: {facts[name]:,}"


def _seconds(ms: int) -> str:
    return f"{ms / 1_000:,.1f} s"


def _queue_seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


_ROUTES = (
    "Members learn of routes at their next poll (pollNameServerInterval, 30 s) and act in their "
    "next pass (rocketmq.client.rebalance.waitInterval, 20 s); both can be shortened."
)
ADVICE: Mapping[str, str] = {
    events.BROKER_UP: (
        "A returning broker knows a member only after the member's next heartbeat (30 s): until "
        "then, passes that query it see few members. Restart brokers one by one, no faster than "
        "`99 % by`."
    ),
    events.BROKER_DOWN: _ROUTES,
    events.TOPIC_CONFIG: _ROUTES,
    events.TOPIC_DELETED: _ROUTES,
    events.CONSUMER_LOST: (
        "Shut members down gracefully: a killed member keeps its order locks for 60 s, and a "
        "member whose channel expires leaves without a notice to the others."
    ),
    events.CONSUMER_JOIN: (
        "Brokers notify members, which run at most one pass per second (5.2+): start several at "
        "once, or wait `99 % by` between two starts."
    ),
    events.CONSUMER_LEAVE: (
        "As with joins, stop several at once, or wait `99 % by` between two stops."
    ),
    events.SUBSCRIBE: "Give all members the same subscriptions before they start.",
    events.UNSUBSCRIBE: (
        "Brokers learn of it at the next heartbeat (30 s), and until then subscribed members "
        "divide the topic among all members: give all members the same subscriptions."
    ),
    events.CONSUMER_SUSPEND: "A suspended member keeps its share: stop it instead.",
    events.CONSUMER_RESUME: "A suspended member kept its share: stop it instead.",
    events.MASTER_DOWN: "Orderly queues that move wait for the master because it grants the locks.",
    events.MASTER_UP: (
        "A returning master knows a member only after the member's next heartbeat (30 s): until "
        "then, passes that query it see few members, and few members hold all queues. Bring "
        "masters back one by one, no faster than `99 % by`."
    ),
}
"""The advice for each event type; the first type that occurs in a cause determines it."""
MOST_ADVICE = 4


def advice_on(causes: Iterable[str]) -> dict[str, list[str]]:
    """Return the advice for causes in order, each with its event types."""
    advice: dict[str, list[str]] = {}
    for cause in causes:
        kind = next((kind for kind in cause.split(CAUSES_JOINED_BY) if kind in ADVICE), None)
        if kind is None or (len(advice) == MOST_ADVICE and ADVICE[kind] not in advice):
            continue
        kinds = advice.setdefault(ADVICE[kind], [])
        if kind not in kinds:
            kinds.append(kind)
    return advice
