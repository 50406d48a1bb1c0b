"""The autoscale job: read groups in the tasks that have their rows, and replay each group in each
world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.scaling import (
    ARRIVALS,
    CAPACITY,
    LAG_OVER_TIME,
    POLICY_SUMMARY,
    RECORDED_SCALING,
    SCALING_STEPS,
)
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.options import RowForecast, refuse_rejected, row_forecast
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.engine.table_writer import Written
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.times import SECOND_MS, YEAR_2000_MS
from rebalance_core.planning.autoscale.closed_loop import Question, Replayed, replay
from rebalance_core.planning.autoscale.policy import MOST_REPLICAS, Policy
from rebalance_core.planning.autoscale.recorded_replicas import samples_by_group
from rebalance_core.planning.autoscale.scaled_group import (
    ScaledGroup,
    Service,
    Workload,
    arrivals_by_topic,
    services_by_group,
)
from rebalance_core.planning.autoscale.service_time import MOST_P99
from rebalance_core.planning.autoscale.summary import Judgement, Row, summary_rows
from rebalance_core.planning.rollout.futures import DeployedGroup, deployed_group
from rebalance_core.planning.sweep.plan_options import MOST_REASONS
from rebalance_core.process.pool import Progress
from rebalance_core.process.propagate import DealtGroups, dealt_groups
from rebalance_core.process.propagation_pass import BucketGroups, SurveyStats
from rebalance_core.process.runtime import HERE, Made, Part, Runtime, TableRows
from rebalance_core.replay.history import QueueOffset
from rebalance_core.storage.place import Location

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PolicySummaryRow


PLAYED = (SCALING_STEPS.name, LAG_OVER_TIME.name)
WRITTEN = (*PLAYED, POLICY_SUMMARY.name, REJECTED.name)


class ScalingFacts(TypedDict):
    """Facts about the written tables: rows of ``policy_summary``, the `ScaledGroup` of each group,
    and the rows of ``lag_over_time`` of the first simulated group's first future.
    """

    summary: Sequence[PolicySummaryRow]
    scaled: Sequence[ScaledGroup]
    points: Sequence[Row]


@dataclass(frozen=True, eq=False)
class Asked:
    """The settings under which scalers are compared.

    Attributes:
        policies: the policies to compare.
        question: futures, the promise, and series.
        judgement: prices and budgets.
        arrivals: checked rows of ``arrivals``; None derives them from queue offsets.
        capacity: checked rows of ``capacity``, if any.
        recorded_scaling: checked rows of ``recorded_scaling``, if any; its replicas then form one
            more policy.
        default: the default for groups without a row of ``capacity``.
        from_ms: the start of the replay; None for the start of the rates.
        to_ms: the end of the replay; None for the end of the rates.
    """

    policies: tuple[Policy, ...]
    question: Question
    judgement: Judgement
    arrivals: pa.Table | None = None
    capacity: pa.Table | None = None
    recorded_scaling: pa.Table | None = None
    default: Service | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def workload(self) -> Workload:
        """Return the content of the rows."""
        return Workload(
            None if self.arrivals is None else arrivals_by_topic(self.arrivals.to_pylist()),
            {} if self.capacity is None else services_by_group(self.capacity.to_pylist()),
            self.default,
            self.from_ms,
            self.to_ms,
            None
            if self.recorded_scaling is None
            else samples_by_group(self.recorded_scaling.to_pylist()),
        )

    def policies_of(self, scaled: ScaledGroup) -> tuple[Policy, ...]:
        """Return the policies for a group; recorded replicas, if known, come last."""
        recorded = scaled.recorded
        if recorded is None or recorded.reason is not None:
            return self.policies
        return (*self.policies, recorded.policy(self.policies[0]))


def read_arrivals(
    location: str, input_format: str | None = None, *, name: str = "", runtime: Runtime = HERE
) -> pa.Table:
    """Return the checked rows of ``arrivals``, in this process.

    Args:
        location: A path that the runtime can reach.
        input_format: The format of the files; None to infer it from their names.
        name: The table's name in the message; the location if it is empty.
        runtime: Where the job runs.

    Raises:
        InputRefused: Any row is bad, because a missing rate would go unnoticed.
    """
    rows, bad = _checked(ARRIVALS.name, location, input_format, runtime)
    likely = rows["messages_per_second"]
    low, high = (pc.coalesce(rows[each], likely) for each in ("low", "high"))
    wrong = [
        *bad,
        *_outside(rows, ("messages_per_second", "low", "high"), 0.0, "expected 0 or more"),
        *_outside(rows, ("from_ms", "to_ms"), YEAR_2000_MS, "expected epoch milliseconds"),
        *_unordered(rows, low, likely, high, "low, messages_per_second and high"),
        *(
            f"to_ms {row['to_ms']} is not after from_ms {row['from_ms']} ({row['topic']})"
            for row in _some(rows, pc.less_equal(rows["to_ms"], rows["from_ms"]))
        ),
        *(
            f"queue_id {row['queue_id']} of {row['topic']} lacks its broker_name"
            for row in _some(
                rows, pc.and_(pc.is_valid(rows["queue_id"]), pc.is_null(rows["broker_name"]))
            )
        ),
    ]
    return _refused(name or location, rows, wrong)


def read_capacity(
    location: str, input_format: str | None = None, *, name: str = "", runtime: Runtime = HERE
) -> pa.Table:
    """Return the checked rows of ``capacity``, as `read_arrivals` does.

    Raises:
        InputRefused: A row is bad.
    """
    rows, bad = _checked(CAPACITY.name, location, input_format, runtime)
    names = ("service_ms", "service_ms_low", "service_ms_high")
    likely, p99 = rows["service_ms"], rows["service_ms_p99"]
    low, high = (pc.coalesce(rows[each], likely) for each in names[1:])
    inside = pc.and_(
        pc.greater_equal(p99, likely), pc.less_equal(p99, pc.multiply(likely, MOST_P99))
    )
    wrong = [
        *bad,
        *_outside(rows, names, np.nextafter(0.0, 1.0), "expected above 0"),
        *_outside(rows, ("threads", "batch"), 1, "expected 1 or more"),
        *_unordered(rows, low, likely, high, "service_ms_low, service_ms and service_ms_high"),
        *(
            f"service_ms_p99 is {row['service_ms_p99']}; expected 1 to {MOST_P99} times service_ms "
            f"{row['service_ms']}"
            for row in _some(rows, pc.fill_null(pc.invert(inside), False))
        ),
    ]
    return _refused(name or location, rows, wrong)


def read_recorded(
    location: str, input_format: str | None = None, *, name: str = "", runtime: Runtime = HERE
) -> pa.Table:
    """Return the checked rows of ``recorded_scaling``, as `read_arrivals` does.

    Raises:
        InputRefused: Any row is bad.
    """
    rows, bad = _checked(RECORDED_SCALING.name, location, input_format, runtime)
    most = _some(rows, pc.greater(rows["replicas"], MOST_REPLICAS))
    wrong = [
        *bad,
        *_outside(rows, ("at_ms",), YEAR_2000_MS, "expected epoch milliseconds"),
        *_outside(rows, ("replicas",), 0, f"expected 0 to {MOST_REPLICAS:,}"),
        *(f"replicas is {row['replicas']}; expected 0 to {MOST_REPLICAS:,}" for row in most),
    ]
    return _refused(name or location, rows, wrong)


def _checked(
    table: str, location: str, input_format: str | None, runtime: Runtime
) -> tuple[pa.Table, list[str]]:
    """Return the used rows, and what is wrong with the others."""
    with runtime.check(runtime.read({table: location}, input_format)) as checked:
        rows = checked.rows(table)
        bad = checked.rows(REJECTED.name, MOST_REASONS)
    reasons = [
        f"{row['source']}: {row['issues'][0]['message']}"
        if row["source"]
        else row["issues"][0]["message"]
        for row in bad.to_pylist()
    ]
    return rows, reasons


def _some(rows: pa.Table, wrong: Any) -> list[Mapping[str, Any]]:
    return list(rows.filter(wrong).slice(0, MOST_REASONS).to_pylist())


def _outside(rows: pa.Table, names: Iterable[str], least: float, valid: str) -> list[str]:
    """Return what is wrong with values that are below the minimum or not a number."""
    reasons = []
    for name in names:
        values = rows[name]
        wrong = pc.less(values, least)
        if pa.types.is_floating(values.type):
            wrong = pc.or_(wrong, pc.invert(pc.is_finite(values)))
        bad = values.filter(pc.fill_null(wrong, False)).slice(0, MOST_REASONS).to_pylist()
        reasons += [f"{name} is {value}; {valid}" for value in bad]
    return reasons


def _unordered(rows: pa.Table, low: Any, likely: Any, high: Any, names: str) -> list[str]:
    wrong = pc.or_(pc.greater(low, likely), pc.greater(likely, high))
    return [f"{names} do not ascend"] if _some(rows, pc.fill_null(wrong, False)) else []


def _refused(table: str, rows: pa.Table, reasons: Iterable[str]) -> pa.Table:
    unique = list(dict.fromkeys(reasons))
    if unique:
        raise InputRefused(f"{table}: {'; '.join(unique)}")
    return rows


@dataclass(frozen=True, slots=True)
class OfferedTask:
    """`Work` that returns groups at rest with the observed end offsets of their queues."""

    VERB: ClassVar[str] = "gather"
    groups: BucketGroups

    def __call__(
        self,
        parts: Iterable[Part],
        facts: Made[tuple[DeployedGroup, tuple[QueueOffset, ...]]],
    ) -> TableRows:
        """Return no rows."""
        for history in self.groups.whole(parts):
            facts.made.append((deployed_group(history), history.queue_offsets or ()))
        return ()


@dataclass(frozen=True, eq=False)
class ReplayTask:
    """`Work` that replays pieces by number; a piece is a group in a world.

    Attributes:
        asked: the settings.
        groups: the groups of the pieces.
        pieces: (number of the group, world).
        progress: as in `write_autoscale`.
    """

    VERB: ClassVar[str] = "replay"
    asked: Asked
    groups: Sequence[ScaledGroup]
    pieces: Sequence[tuple[int, str]]
    progress: Progress | None = None

    def __call__(
        self, parts: Iterable[Part], facts: Made[tuple[int, Replayed, list[Row]]]
    ) -> TableRows:
        """Yield rows of ``scaling_steps`` and ``lag_over_time``, and add the figures to the
        facts.
        """
        for number, _ in parts:
            place, world = self.pieces[number]
            scaled = self.groups[place]
            if self.progress is not None:
                self.progress(number, len(self.pieces), scaled.group.name[1])
            rates, reader = scaled.rates[world], scaled.readers[world]
            policies, question = self.asked.policies_of(scaled), self.asked.question
            replayed = replay(scaled.group, policies, rates, reader, question)
            named = self._named(scaled, world)
            steps = [
                {
                    **named,
                    "policy": policies[step.policy].name,
                    "seed": step.seed,
                    "at_ms": rates.begin_ms + step.at_s * SECOND_MS,
                    "from_replicas": step.before,
                    "to_replicas": step.after,
                    "lag": step.lag,
                    "rate": step.rate,
                }
                for step in replayed.steps
            ]
            points = [
                {
                    **named,
                    "policy": policies[point.policy].name,
                    "seed": point.seed,
                    "at_ms": rates.begin_ms + point.at_s * SECOND_MS,
                    "lag": point.lag,
                    "replicas": point.replicas,
                    "members": point.members,
                    "messages_per_second": point.rate,
                    "unowned_queues": point.no_owner,
                }
                for point in replayed.points
            ]
            yield SCALING_STEPS.name, batch_of_rows(SCALING_STEPS, steps)
            yield LAG_OVER_TIME.name, batch_of_rows(LAG_OVER_TIME, points)
            first = question.seeds[0]
            drawn = [] if number else [point for point in points if point["seed"] == first]
            figures = Replayed(replayed.figures, [], [], replayed.played)
            facts.made.append((number, figures, drawn))

    @staticmethod
    def _named(scaled: ScaledGroup, world: str) -> Row:
        cluster, group = scaled.group.name
        return {"cluster": cluster, "consumer_group": group, "world": world}


def write_autoscale(
    inputs: Any,
    output: Location,
    asked: Asked,
    limits: BadRowLimits,
    options: PropagationOptions,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> Written[ScalingFacts]:
    """Write ``scaling_steps``, ``lag_over_time``, ``policy_summary`` and ``rejected``.

    Memory: the driver holds the state and rates of every group; a task holds the played steps of
    one (`planning.autoscale.transitions`).

    Args:
        inputs: The input tables, in the form of the runtime.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        asked: The settings.
        limits: The limits on bad rows.
        options: The groups to process, and the maximum number of queues of a topic.
        before_writing: Called before the first table is written.
        warn: Receives a message about everything skipped.
        progress: Called with the number of replayed pieces, the total, and the group; only
            in-process.
        runtime: Where the job runs.

    Raises:
        InputRefused: The input has no events or too many bad rows; no group can be simulated.
        OutputExists: A table already exists in the folder.
    """
    with dealt_groups(runtime, inputs, options, warn=warn) as dealt:
        dealt.refuse(limits)
        with runtime.keep(dealt.rows, dealt.survey, SurveyStats) as kept:
            rejected = kept.facts().rejected
            refuse_rejected(dealt.checked.counts, rejected, limits)
            groups = _offered(dealt, asked)
            _refuse_none(groups)
            pieces = [
                (number, world)
                for number, scaled in enumerate(groups)
                if scaled.reason is None
                for world in scaled.worlds
            ]
            if before_writing is not None:
                before_writing()
            with runtime.tables(output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                task = ReplayTask(asked, groups, pieces, progress)
                numbers = runtime.numbers(len(pieces), len(pieces))
                kept_facts = Made[tuple[int, Replayed, list[Row]]]
                made = tables.write(numbers, task, kept_facts, PLAYED).made
                results = {pieces[number]: replayed for number, replayed, _ in made}
                rows = summary_rows(
                    groups, results, asked.policies, asked.question, asked.judgement
                )
                schema = POLICY_SUMMARY.arrow_schema()
                tables.add(POLICY_SUMMARY.name, pa.Table.from_pylist(rows, schema))
                written = tables.finish()
    drawn = [point for _, _, points in made for point in points]
    facts: ScalingFacts = {"summary": rows, "scaled": groups, "points": drawn}
    return Written(written, facts, rejected.codes, dealt.checked.counts)


def autoscale_forecast(
    inputs: Any,
    asked: Asked,
    limits: BadRowLimits,
    options: PropagationOptions,
    *,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> tuple[RowForecast, list[ScaledGroup]]:
    """Return how `write_autoscale` would judge its input, and the groups in order.

    The function replays and writes nothing; there are no groups if it would refuse the input.
    """
    groups = list[ScaledGroup]()

    def rejected() -> Rejections:
        surveyed = runtime.run(dealt.rows, dealt.survey, SurveyStats)
        groups.extend(_offered(dealt, asked))
        _refuse_none(groups)
        return surveyed.rejected

    with dealt_groups(runtime, inputs, options, warn=warn) as dealt:
        counts, rejections = dealt.checked.counts, dealt.checked.rejections
        forecast = row_forecast(counts, rejections, limits, dealt.refuse_no_group, rejected)
    return forecast, groups


def _offered(dealt: DealtGroups, asked: Asked) -> list[ScaledGroup]:
    """Return the groups with their rates and readers, sorted by name."""
    kind = Made[tuple[DeployedGroup, tuple[QueueOffset, ...]]]
    offered = dealt.runtime.run(dealt.rows, OfferedTask(dealt.groups), kind).made
    workload = asked.workload()
    return [
        workload.of(group, offsets)
        for group, offsets in sorted(offered, key=lambda each: each[0].name)
    ]


def _refuse_none(groups: Sequence[ScaledGroup]) -> None:
    """Raise `InputRefused` unless a group can be simulated."""
    if any(scaled.reason is None for scaled in groups):
        return
    reasons = [f"{'/'.join(each.group.name)}: {each.reason}" for each in groups]
    shown = "\n".join(reasons[:MOST_REASONS])
    raise InputRefused(f"no group can be simulated; {shown}")
