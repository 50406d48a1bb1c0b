"""The `autoscale` job, from its settings to the run, its record and its summary."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rebalance_core import report
from rebalance_core.cli import terminal
from rebalance_core.cli.dry_run import dry_run_report
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.pictures import picture
from rebalance_core.cli.planning_options import AutoscaleOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import check_readable, tables_of
from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import bad_row_limits, settings_of
from rebalance_core.cli.terminal import ExitCode, say, warn
from rebalance_core.contracts import SCALING_INPUT_TABLES
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.model.nouns import counted
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.planning.autoscale.arrivals import LIKELY
from rebalance_core.planning.autoscale.closed_loop import Question
from rebalance_core.planning.autoscale.manifest import manifest
from rebalance_core.planning.autoscale.policy import RECORDED, Policy
from rebalance_core.planning.autoscale.scaled_group import ScaledGroup, Service
from rebalance_core.planning.autoscale.summary import Judgement, Row
from rebalance_core.process.autoscale import (
    WRITTEN,
    Asked,
    autoscale_forecast,
    read_arrivals,
    read_capacity,
    read_recorded,
    write_autoscale,
)

MANIFEST, PICTURE = BESIDE_TABLES["autoscale"]
READERS = {
    "arrivals": read_arrivals,
    "capacity": read_capacity,
    "recorded_scaling": read_recorded,
}
OPTIONS = {"recorded_scaling": "recorded"}
"""The options for tables that the input options do not name."""


def run(options: AutoscaleOptions) -> JobReport:
    """Run the job and return its report; exit code 3 if a missed budget should fail the run."""
    settings = settings_of(options)
    inputs = tables_of(options.input, options.input_format)
    stated = _stated(options)
    places = [*(inputs.values() or [options.input]), *stated.values()]
    backend = backend_of("autoscale", options, settings, places)
    limits = bad_row_limits(settings)
    groups = PropagationOptions(
        seeds=1, group=options.group, max_queue_nums=settings.limits.max_queue_nums
    )
    if options.dry_run:
        backend.check_free()
        asked = _asked(options, backend, stated)
        tables = backend.input_tables(inputs)
        rows, scaled = backend.run(autoscale_forecast, tables, asked, limits, groups, warn=warn)
        lines, facts = _forecast(options, stated, asked, scaled)
        return dry_run_report(
            "autoscale",
            options,
            inputs,
            rows,
            (*WRITTEN, *BESIDE_TABLES["autoscale"]),
            output=options.output,
            facts=facts,
            lines=lines,
        )
    with backend.running((*WRITTEN, *BESIDE_TABLES["autoscale"])) as output:
        records = backend.records({**inputs, **stated} if inputs else inputs)
        asked = _asked(options, backend, stated)

        def begin() -> None:
            output.clear()
            policies = counted(len(asked.policies), "policy")
            also = "" if asked.recorded_scaling is None else f" and {RECORDED}"
            say(f"replaying {policies}{also} in {options.seeds:,} futures")

        written = backend.run(
            write_autoscale,
            backend.input_tables(inputs),
            backend.output(),
            asked,
            limits,
            groups,
            of="groups",
            before_writing=begin,
            warn=warn,
        )
        summary, scaled = written.facts["summary"], written.facts["scaled"]
        for group in scaled:
            name = "/".join(group.group.name)
            if group.reason is not None:
                warn(f"{name} is UNKNOWN: {group.reason}")
            elif group.recorded is not None and group.recorded.reason is not None:
                warn(f"{name}: {RECORDED} is UNKNOWN: {group.recorded.reason}")
        texts = {MANIFEST: _manifests(options, summary, scaled)} | _picture(
            written.facts["points"], summary
        )
        for name, text in texts.items():
            (output.folder / name).write_text(text)
        missed = [row for row in summary if row["chosen"] and row["within_budget"] is False]
        code = ExitCode.DIFFERENCES if missed and options.fail_on else ExitCode.OK
        record = output.finish(outcome_of(written, records, exit_code=code))
    results = {
        "policies": _names(asked, scaled),
        "summary": summary,
        "within_budget": not missed,
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
        "files": list(texts),
    }
    facts = terminal.result_facts(
        "autoscale", options.output, results, record.seconds, backend.name, exit_code=code
    )
    return JobReport(_render(facts, options), facts, code)


def _stated(options: AutoscaleOptions) -> dict[str, str]:
    """Return the locations of the existing tables next to the input."""
    names = tuple(SCALING_INPUT_TABLES)
    found = tables_of(options.input, options.input_format, names, required=())
    for name in names:
        option = OPTIONS.get(name, name)
        location = getattr(options, option)
        if location is not None:
            check_readable(f"--{option}", location, options.input_format)
            found[name] = location
    return found


def _names(asked: Asked, scaled: Iterable[ScaledGroup]) -> list[str]:
    """Return the names of the policies replayed for any of the groups."""
    simulated = [each for each in scaled if each.reason is None]
    policies = [policy for each in simulated for policy in asked.policies_of(each)]
    return list(dict.fromkeys(policy.name for policy in (*asked.policies, *policies)))


def _forecast(
    options: AutoscaleOptions,
    stated: Mapping[str, str],
    asked: Asked,
    scaled: Sequence[ScaledGroup],
) -> tuple[list[str], dict[str, Any]]:
    """Return what would be replayed, as lines of text and as facts for JSON."""
    names = _names(asked, scaled)
    facts: dict[str, Any] = {"policies": names, "seeds": options.seeds, "groups": []}
    rows = {name: getattr(asked, name) for name in READERS}
    lines = [
        f"  {name:<18} {len(rows[name] or ()):>9,} rows, 0 bad  {place}"
        for name, place in stated.items()
    ]
    known = sum(each.reason is None for each in scaled)
    if known:
        policies = counted(len(names), "policy")
        futures, groups = f"{options.seeds:,} futures", counted(known, "group")
        lines += ["", f"{policies} in {futures} of {groups}"]
    for each in scaled:
        (cluster, name), reason = each.group.name, each.reason
        begin_ms = end_ms = None
        if reason is None:
            begin_ms = each.rates[LIKELY].begin_ms
            end_ms = begin_ms + each.rates[LIKELY].seconds * SECOND_MS
        span = f"{utc(begin_ms)} to {utc(end_ms)}" if begin_ms and end_ms else f"UNKNOWN: {reason}"
        worlds = f", worlds {', '.join(each.worlds)}" if len(each.worlds) > 1 else ""
        text = f"{cluster}/{name}  {span}{worlds}"
        lines += wrap(text, terminal.WIDTH, initial_indent="  ", subsequent_indent="    ")
        why = None if each.recorded is None else each.recorded.reason
        if why is not None:
            text = f"{RECORDED} is UNKNOWN: {why}"
            lines += wrap(text, terminal.WIDTH, initial_indent="    ", subsequent_indent="      ")
        facts["groups"].append(
            {
                "cluster": cluster,
                "consumer_group": name,
                "from_ms": begin_ms,
                "to_ms": end_ms,
                "reason": reason,
                "recorded": each.recorded is not None and why is None,
                "recorded_reason": why,
            }
        )
    return lines, facts


def _asked(options: AutoscaleOptions, backend: Backend, stated: Mapping[str, str]) -> Asked:
    """Return the request, with its tables checked."""
    tables = {
        name: backend.run(
            READERS[name], backend.location(place), options.input_format, name=f"{name} {place}"
        )
        for name, place in stated.items()
    }
    service = options.service_time
    default = None if service is None else Service((service, service, service), options.threads)
    first = options.first_seed
    return Asked(
        policies=options.policies,
        question=Question(
            seeds=range(first, first + options.seeds),
            promise_s=options.promise // SECOND_MS,
            series_seeds=options.lag_seeds,
        ),
        judgement=Judgement(
            options.pod_hour_price, options.late_price, options.max_late, options.max_pod_hours
        ),
        arrivals=tables.get("arrivals"),
        capacity=tables.get("capacity"),
        recorded_scaling=tables.get("recorded_scaling"),
        default=default,
        from_ms=options.from_ms,
        to_ms=options.to_ms,
    )


def _manifests(
    options: AutoscaleOptions, summary: Sequence[Row], scaled: Sequence[ScaledGroup]
) -> str:
    """Return the chosen policies as YAML, a document for each group."""
    by_name = {policy.name: policy for policy in options.policies}
    groups = {each.group.name: each for each in scaled}
    documents = []
    for row in summary:
        if row["chosen"] and row["world"] == LIKELY and row["consumer_group"] is not None:
            group = groups[row["cluster"], row["consumer_group"]]
            policy = by_name[row["policy"]]
            assumed = _assumptions(options, policy, row, group)
            topics = {e.topic for e in group.group.history.events if e.read_queue_nums} - {None}
            named = _subscribed(group) & topics or topics
            documents.append(manifest(policy, row["consumer_group"], map(str, named), assumed))
    return "---\n".join(documents)


def _subscribed(group: ScaledGroup) -> set[str | None]:
    named: set[str | None] = set(group.group.history.settings.subscriptions or ())
    for event in group.group.history.events:
        named.update(event.subscriptions or ())
    return named


def _assumptions(
    options: AutoscaleOptions, policy: Policy, row: Row, group: ScaledGroup
) -> Iterator[str]:
    """Yield the assumptions behind a policy's figures."""
    reader = group.readers[LIKELY]
    start = policy.start
    yield f"{row['cluster']}/{row['consumer_group']}: policy {policy.name!r} of rebalance autoscale"
    yield (
        f"Replayed: {utc(row['from_ms'])} to {utc(row['to_ms'])}, {row['futures']} futures, means"
    )
    yield (
        f"{row['pod_hours']:,.1f} pod hours, {row['steps']:,.1f} steps, {row['moves']:,.0f} moves, "
        f"{row['late_messages']:,.0f} messages later than {options.promise // SECOND_MS} s, "
        f"longest wait {row['longest_wait_s']:,.0f} s"
    )
    yield (
        f"Assumed: a member reads {reader.capacity:,.6g} messages a second; a pod joins "
        f"{start.median_ms / SECOND_MS:g} s after its creation (median), one in six more than "
        f"{start.stated_spread_ms / SECOND_MS:g} s later"
    )
    metrics = policy.metrics
    yield (
        f"Assumed: a value of lag every {metrics.scrape_s} s, read {metrics.delay_s} s later; "
        f"decisions every {policy.sync_s} s"
    )
    stop = policy.stop
    if stop.killed or stop.pre_stop_ms:
        end = "is killed" if stop.killed else "stops"
        yield (
            f"Assumed: a pod {end} {stop.end_ms / SECOND_MS:g} s after the decision (preStop "
            f"{stop.pre_stop_ms / SECOND_MS:g} s, terminationGracePeriodSeconds "
            f"{stop.grace_ms / SECOND_MS:g})"
        )
    if row["within_budget"] is False:
        yield "No policy keeps the budgets; this one has the smallest maximum regret"


def _picture(points: Sequence[Row], summary: Sequence[Row]) -> dict[str, str]:
    """Return lag and replicas over time as SVG, keyed by file name."""
    group = points[0]["consumer_group"] if points else None
    chosen = [row["policy"] for row in summary if row["chosen"] and row["consumer_group"] == group]
    policy = chosen[0] if chosen else None
    return picture(PICTURE, lambda: report.svg_text(report.draw_scaling(points, policy)))


HEADER = (
    "policy",
    "pod hours",
    "steps",
    "reversals",
    "moves",
    "no owner s",
    "read again",
    "lag p99",
    "lag max",
    "longest wait s",
    "late",
    "late p99",
    "price",
    "regret",
)


def _render(facts: Mapping[str, Any], options: AutoscaleOptions) -> str:
    """Return the summary as text: the policies of each group, with the chosen one marked.

    Variations that another policy beats in both pod hours and late messages are left out.
    """
    given = {policy.name for policy in options.policies if policy.varies is None} | {RECORDED}
    took = terminal.took(facts)
    lines = [f"Scalers in {facts['output']}: {len(facts['policies'])} policies ({took})"]
    by_group: dict[tuple[Any, Any, str], list[Row]] = {}
    for row in facts["summary"]:
        key = row["cluster"], row["consumer_group"], row["world"]
        by_group.setdefault(key, []).append(row)
    for (cluster, group, world), rows in by_group.items():
        name = "All groups together" if group is None else f"{cluster}/{group}"
        lines += ["", name if world == LIKELY else f"{name}, {world}"]
        if rows[0]["reason"] is not None:
            lines += wrap(f"UNKNOWN: {rows[0]['reason']}", terminal.WIDTH)
            continue
        shown = [row for row in rows if row["policy"] in given or row["chosen"] or row["on_front"]]
        shown = [row for row in shown if row["reason"] is None]
        lines += terminal.table(HEADER, [list(_cells(row)) for row in shown], text=(0,))
        unknown = [row for row in rows if row["reason"] is not None]
        for row in unknown:
            text = f"  {row['policy']} is UNKNOWN: {row['reason']}"
            lines += wrap(text, terminal.WIDTH, subsequent_indent="    ")
        beaten = len(rows) - len(shown) - len(unknown)
        if beaten:
            others = counted(beaten, "variation")
            lines += [f"  {others} that these beat: see policy_summary"]
    missed = [row for row in facts["summary"] if row["chosen"] and row["within_budget"] is False]
    for row in missed:
        group = f"{row['cluster']}/{row['consumer_group']}"
        group += "" if row["world"] == LIKELY else f", {row['world']}"
        lines += ["", f"NO POLICY KEEPS THE BUDGETS of {group}; * has the least regret: "]
        lines[-1] += ", ".join(_beyond(row, options))
    lines += terminal.rejected_rows(facts["rejected"])
    lines += terminal.output_lines(facts["output"], [*facts["rows"], *facts["files"]])
    return terminal.joined(lines)


def _beyond(row: Row, options: AutoscaleOptions) -> Iterator[str]:
    """Yield the budgets that a policy misses, with its figures."""
    for name, noun, most in (
        ("late_messages_p99", "late messages", options.max_late),
        ("pod_hours_p99", "pod hours", options.max_pod_hours),
    ):
        if most is not None and row[name] > most:
            yield f"{row[name]:,.6g} {noun}, at most {most:,.6g} are allowed"


def _cells(row: Row) -> Iterator[str]:
    yield f"{'* ' if row['chosen'] else ''}{row['policy']}"
    for name, digits in (
        ("pod_hours", 1),
        ("steps", 1),
        ("reversals", 1),
        ("moves", 0),
        ("no_owner_queue_seconds", 0),
        ("read_again", 0),
        ("lag_p99", 0),
        ("lag_max", 0),
        ("longest_wait_s", 0),
        ("late_messages", 0),
        ("late_messages_p99", 0),
        ("price", 1),
        ("regret", 1),
    ):
        value = row.get(name)
        yield "-" if value is None else f"{value:,.{digits}f}"
