"""The options of the jobs that simulate the future: `plan`, `propagate`, `producers`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rebalance_core.cli import options
from rebalance_core.cli.job_options import (
    LARGEST_SEED,
    OUTPUT,
    RecordedOptions,
    group_option,
    input_format_option,
    refuse_empty_time,
)
from rebalance_core.cli.options import (
    JobOptions,
    RowOptions,
    flag,
    instant,
    one_of,
    option,
    share,
    whole,
)
from rebalance_core.model.errors import UsageError

if TYPE_CHECKING:
    from rebalance_core.model.versions import Version
    from rebalance_core.planning.autoscale.policy import Policy
    from rebalance_core.planning.rollout.search import Search
    from rebalance_core.planning.variants import Variants
    from rebalance_core.producers.model import ProducerModel

FUTURES, ASSUMED = "futures", "what is assumed"
MOST_SEEDS, LAST_FUTURE = 1_000, 2**62
MOST_RTT_MS = 1_000
FIRST_SEED = "number of the first seed; default 0"


def _day_at_most(text: str) -> int:
    """Read a duration as milliseconds."""
    from rebalance_core.model.times import DAY_MS, read_duration

    value = read_duration(text)
    if value > DAY_MS:
        raise ValueError("expected at most a day")
    return value


def _handler_time(group: str | None) -> Any:
    return option(
        "TIME",
        "processing time per message, e.g. 5ms; default 0ms",
        default=0,
        read=_day_at_most,
        group=group,
    )


def _start_up_time(group: str | None) -> Any:
    return option(
        "TIME",
        "time from the call of start() to its return, e.g. 100ms; default: as recorded",
        read=_day_at_most,
        group=group,
    )


def _holder_seeds(group: str | None) -> Any:
    return option(
        "K",
        "write the holders over time of the first K futures; default 0",
        default=0,
        group=group,
        read=whole(0, LAST_FUTURE, "of 0 or more"),
    )


def _rtt(group: str | None) -> Any:
    return option(
        "MS",
        "round trip from clients to brokers in milliseconds, e.g. 2.5; default: that of "
        "loopback, on which the delays were measured",
        default=0,
        read=_round_trip,
        group=group,
    )


def _fit(group: str | None) -> Any:
    return option(
        "DIR",
        "outputs of ingest, audit or night, from one or more nights; latencies with at least 20 "
        "samples replace the recorded ones; default: as recorded",
        many="extend",
        group=group,
    )


def _round_trip(text: str) -> int:
    """Read milliseconds as microseconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST_RTT_MS:
        raise ValueError(f"expected milliseconds from 0 to {MOST_RTT_MS:,}, e.g. 2.5")
    return round(value * 1_000)


_seed = whole(0, LARGEST_SEED, f"from 0 to {LARGEST_SEED}")
_seeds = whole(1, MOST_SEEDS, f"from 1 to {MOST_SEEDS:,}")


@dataclass(frozen=True, kw_only=True)
class PlanOptions(RecordedOptions):
    """The options of `plan`; ``variants`` combines scenarios, strategies and seeds, and
    ``searched`` is the content of the ``--search`` file.
    """

    DECIDING: ClassVar = (
        "variants",
        "group",
        "searched",
        "handler_time",
        "start_up_time",
        "rtt",
        "fit",
    )

    output: str = option("DIR", OUTPUT, default="")
    scenario: tuple[str, ...] = option(
        "FILE",
        "the change: a file or the name of a bundled scenario; the unchanged baseline is always "
        "planned too; default: only the baseline",
        many="extend",
    )
    list_scenarios: bool = flag("print the bundled scenarios and exit; default: plan")
    strategy: tuple[str, ...] = option(
        "TEXT",
        "a strategy for all groups, repeatable; league compares eight strategies; "
        "POP(share_queue_num=N) shares all queues; default recorded: the groups' own",
        many="append",
    )
    search: str | None = option(
        "FILE",
        "search for the cheapest rollout: a TOML file with change, groups and [budgets], or the "
        "name of a bundled search; default: none",
    )
    fail_on: str | None = option(
        "budget",
        "exit 3 if no plan stays within the budgets of --search; default: exit 0",
        read=one_of(("budget",)),
    )
    junit: str | None = option(
        "FILE",
        "also write JUnit XML with a test per [[expect]] figure of a group; default: none",
    )
    group: str | None = group_option()
    queue_rates: str | None = option("PATH", "messages per second of each queue; default: unknown")
    seeds: int | None = option("N", "number of seeds for random choices; default 1", read=_seeds)
    first_seed: int = option("N", FIRST_SEED, default=0, read=_seed)
    seed: tuple[int, ...] = option("N", "one seed", many="append", read=_seed, listed=False)
    handler_time: int = _handler_time(group=None)
    start_up_time: int | None = _start_up_time(group=None)
    holder_seeds: int = _holder_seeds(group=None)
    rtt: int = _rtt(group=None)
    fit: tuple[str, ...] = _fit(group=None)
    variants: "Variants"
    searched: "Search | None" = None

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Read scenarios and strategies, for which `planning` is imported, and count the seeds."""
        from rebalance_core.planning.scenario.file import read_scenarios
        from rebalance_core.planning.variants import BASELINE, read_strategies, variants_of

        if not values["list_scenarios"]:
            super().complete(values, mistakes)
            if not values["output"]:
                mistakes.append("--output DIR is missing")
        wrong_seeds = any(m.startswith("--seeds") for m in mistakes)
        wrong_seed = any(m.startswith("--seed ") for m in mistakes)
        if (values["seed"] or wrong_seed) and (values["seeds"] is not None or wrong_seeds):
            mistakes.append(
                "--seed and --seeds exclude each other: --seeds 3 is --seed 0 --seed 1 --seed 2"
            )
        scenarios = []
        try:
            scenarios = read_scenarios(values["scenario"])
        except UsageError as error:
            mistakes += str(error).splitlines()
        mistakes += [
            f"--scenario: the name {BASELINE!r} means the history without a change; choose another"
            for scenario in scenarios
            if scenario.name == BASELINE
        ]
        strategies = read_strategies(values["strategy"], mistakes)
        first = values["first_seed"]
        counted = range(first, first + (values["seeds"] or 1))
        seeds = tuple(dict.fromkeys(values["seed"] or counted))
        values["variants"] = variants_of(scenarios, strategies, seeds)
        cls._complete_search(values, mistakes)
        searched = values.get("searched")
        expecting = [*scenarios, *filter(None, [searched])]
        if values["junit"] is not None and not any(each.expectations for each in expecting):
            mistakes.append(
                "--junit requires [[expect]] tables in the files of --scenario or --search"
            )

    @classmethod
    def _complete_search(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Read the search file; a search has its own variants."""
        from rebalance_core.planning.rollout.search import read_search

        if values["search"] is None:
            if values["fail_on"] is not None:
                mistakes.append(
                    "--fail-on budget requires --search FILE, which defines the budgets"
                )
            return
        for name in ("scenario", "strategy", "seeds", "seed", "queue_rates", "group"):
            if values[name]:
                option_name = "--" + name.replace("_", "-")
                mistakes.append(f"--search and {option_name} exclude each other")
        try:
            values["searched"] = read_search(values["search"])
        except UsageError as error:
            mistakes += str(error).splitlines()


SEEDS, HANDOVER_SEEDS = 1_000, 10
"""The defaults: ten futures lie beyond p99, and ten can be examined individually."""
PHASES = ("log", "random")
LAST_LATE_MS = 24 * 3_600_000


def _late(text: str) -> tuple[float, int]:
    """Read the share of clients that learn about routes late, and their delay."""
    part, colon, ms = text.partition(":")
    late_ms = options.number(ms)
    if not colon or late_ms is None or not 0 <= late_ms <= LAST_LATE_MS:
        raise ValueError("expected SHARE:MS, at most a day, e.g. 0.5:30000")
    try:
        return share(part), late_ms
    except ValueError as error:
        raise ValueError(f"{part}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class PropagateOptions(RecordedOptions):
    """The options of `propagate`; None leaves the value to the settings."""

    DECIDING: ClassVar = (
        "group",
        "seeds",
        "first_seed",
        "handover_seeds",
        "holder_seeds",
        "phases",
        "exact_times",
        "lost_notices",
        "late_name_server",
        "concurrent_heartbeat",
        "handler_time",
        "start_up_time",
        "rtt",
        "fit",
    )

    group: str | None = group_option()
    seeds: int = option(
        "N",
        f"number of simulated futures; default {SEEDS:,}",
        default=SEEDS,
        group=FUTURES,
        read=whole(1, LAST_FUTURE, "of 1 or more"),
    )
    first_seed: int = option(
        "N", FIRST_SEED, default=0, group=FUTURES, read=whole(0, LAST_FUTURE, "of 0 or more")
    )
    handover_seeds: int = option(
        "K",
        f"write the hand-overs of the first K futures; default {HANDOVER_SEEDS}",
        default=HANDOVER_SEEDS,
        group=FUTURES,
        read=whole(0, LAST_FUTURE, "of 0 or more"),
    )
    holder_seeds: int = _holder_seeds(group=FUTURES)
    phases: str = option(
        "HOW",
        "log: each member's timers start at its logged join; random: their phases are unknown; "
        "default log",
        default=PHASES[0],
        read=one_of(PHASES),
        group=ASSUMED,
    )
    exact_times: bool = flag(
        "treat times in whole seconds as exact; default: assume that an event happened within "
        "the following second",
        group=ASSUMED,
    )
    lost_notices: float = option(
        "X",
        "the share of CHANGE notices that is lost, 0 to 1; default 0",
        default=0.0,
        read=share,
        group=ASSUMED,
    )
    late_name_server: tuple[float, int] = option(
        "X:MS",
        "share of clients whose name server learns of routes late, and the delay; default: none",
        default=(0.0, 0),
        read=_late,
        group=ASSUMED,
    )
    concurrent_heartbeat: bool = flag(
        "assume that clients use enableConcurrentHeartbeat (5.5), so that a dead host does not "
        "delay timers; default: they do not",
        group=ASSUMED,
    )
    handler_time: int = _handler_time(group=ASSUMED)
    start_up_time: int | None = _start_up_time(group=ASSUMED)
    rtt: int = _rtt(group=ASSUMED)
    fit: tuple[str, ...] = _fit(group=ASSUMED)
    from_ms: int | None = option(
        "TIME",
        ("totals count only changes at or after this time; default: all"),
        name="--from",
        read=instant,
    )
    to_ms: int | None = option(
        "TIME",
        ("totals count only changes before this time; default: all"),
        name="--to",
        read=instant,
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check that there is one input, and that the time range of the totals is not empty."""
        super().complete(values, mistakes)
        refuse_empty_time(values, mistakes)


FIDELITY_SEEDS = 200
"""The default, with which one in a hundred observed times lies outside all futures."""


@dataclass(frozen=True, kw_only=True)
class FidelityOptions(RowOptions):
    """The options of `fidelity`."""

    DECIDING: ClassVar = ("group", "seeds", "first_seed", "handler_time", "rtt", "fit")

    input: str = option(
        "DIR",
        "output of ingest, audit or night whose collection has clients' logs; required",
        required=True,
    )
    input_format: str | None = input_format_option()
    output: str = option("DIR", OUTPUT, required=True)
    group: str | None = group_option()
    seeds: int = option(
        "N",
        f"number of simulated futures; default {FIDELITY_SEEDS}",
        default=FIDELITY_SEEDS,
        group=FUTURES,
        read=_seeds,
    )
    first_seed: int = option("N", FIRST_SEED, default=0, group=FUTURES, read=_seed)
    handler_time: int = _handler_time(group=ASSUMED)
    rtt: int = _rtt(group=ASSUMED)
    fit: tuple[str, ...] = _fit(group=ASSUMED)


DEFAULT_OUTAGE_MS, DEFAULT_CATCH_UP_MS = 33_000, 300_000
MOST_THREADS, LARGEST_GROWTH = 10_000, 1_000.0


def _duration(text: str) -> int:
    from rebalance_core.model.times import read_duration

    value = read_duration(text)
    if not value:
        raise ValueError("expected a time above 0")
    return value


def _growth(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= LARGEST_GROWTH:
        raise ValueError(f"expected a number above 0 and up to {LARGEST_GROWTH:g}")
    return value


def _threads(where: str = "") -> Any:
    """Declare ``--threads``; ``where`` states what they apply to."""
    return option(
        "N",
        f"messages that a member processes concurrently{where}; default 20",
        default=20,
        read=whole(1, MOST_THREADS, "from 1 to 10,000"),
        group=ASSUMED,
    )


def _milliseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400_000:
        raise ValueError("expected milliseconds above 0, at most a day, e.g. 2.5")
    return value


@dataclass(frozen=True, kw_only=True)
class SizeOptions(RecordedOptions):
    """The options of `size`."""

    DECIDING: ClassVar = (
        "group",
        "service_time",
        "threads",
        "growth",
        "outage",
        "catch_up",
        "target_lag",
    )

    output: str = option("DIR", OUTPUT, required=True)
    group: str | None = group_option()
    service_time: float | None = option(
        "MS",
        "milliseconds that a thread takes per message; default: measured from the commits of "
        "groups that fall behind",
        read=_milliseconds,
        group=ASSUMED,
    )
    threads: int = _threads()
    growth: float = option(
        "X",
        "expected traffic relative to today's; default 1",
        default=1.0,
        read=_growth,
        group=ASSUMED,
    )
    outage: int = option(
        "TIME",
        "how long the queues of a lost member wait for a new owner; default 33s",
        default=DEFAULT_OUTAGE_MS,
        read=_duration,
        group=ASSUMED,
    )
    catch_up: int = option(
        "TIME",
        "time within which the waiting messages must be read; default 5m",
        default=DEFAULT_CATCH_UP_MS,
        read=_duration,
        group=ASSUMED,
    )
    target_lag: int = option(
        "N",
        "messages of a group that may wait; default 0",
        default=0,
        read=whole(0, LAST_FUTURE, "of 0 or more"),
        group=ASSUMED,
    )


DEFAULT_PROMISE_MS, DEFAULT_FUTURES = 30_000, 20
MOST_FUTURES = 1_000


def _whole_seconds(text: str) -> int:
    value = _duration(text)
    if value % 1_000:
        raise ValueError("expected whole seconds")
    return value


def _price(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise ValueError("expected a number from 0 up")
    return value


@dataclass(frozen=True, kw_only=True)
class AutoscaleOptions(RecordedOptions):
    """The options of `autoscale`; ``policies`` has the contents of the ``--policy`` files."""

    DECIDING: ClassVar = (
        "group",
        "policies",
        "seeds",
        "first_seed",
        "promise",
        "service_time",
        "threads",
        "from_ms",
        "to_ms",
    )

    output: str = option("DIR", OUTPUT, required=True)
    policy: tuple[str, ...] = option(
        "FILE",
        "a scaler: a TOML file, or the name of a bundled policy: hpa, slow-down, by-rate, sizes, "
        "keda; required",
        many="extend",
    )
    search: bool = flag(
        "also try variations of each policy: other targets, scale-down windows and paces; default: "
        "the policies alone"
    )
    arrivals: str | None = option(
        "PATH",
        "messages per second; default: arrivals in --input, or else rates from queue_offsets",
    )
    capacity: str | None = option(
        "PATH", "service times and threads of groups; default: capacity in --input"
    )
    recorded: str | None = option(
        "PATH",
        "replicas that groups had, replayed as the policy recorded, whose pods start and stop as "
        "those of the first --policy; default: recorded_scaling in --input",
    )
    group: str | None = group_option()
    service_time: float | None = option(
        "MS",
        "milliseconds that a thread takes per message, for groups without a row in capacity; "
        "default: unknown",
        read=_milliseconds,
        group=ASSUMED,
    )
    threads: int = _threads(", with --service-time")
    seeds: int = option(
        "N",
        f"number of simulated futures; default {DEFAULT_FUTURES}",
        default=DEFAULT_FUTURES,
        group=FUTURES,
        read=whole(1, MOST_FUTURES, f"from 1 to {MOST_FUTURES:,}"),
    )
    first_seed: int = option("N", FIRST_SEED, default=0, group=FUTURES, read=_seed)
    lag_seeds: int = option(
        "K",
        "rows of lag over time for the first K futures; default 1",
        default=1,
        group=FUTURES,
        read=whole(0, LAST_FUTURE, "of 0 or more"),
    )
    promise: int = option(
        "TIME",
        "a message that waits longer is late; default 30s",
        default=DEFAULT_PROMISE_MS,
        read=_whole_seconds,
    )
    pod_hour_price: float = option("X", "price of a pod hour; default 1", default=1.0, read=_price)
    late_price: float = option(
        "X", "price of a late message; default 0.001", default=0.001, read=_price
    )
    max_late: float | None = option(
        "N",
        "budget of each group: late messages in 99 % of the futures; default: none",
        read=_price,
    )
    max_pod_hours: float | None = option(
        "X", "budget of each group: pod hours in 99 % of the futures; default: none", read=_price
    )
    fail_on: str | None = option(
        "budget",
        "exit 3 if no policy keeps the budgets of some group; default: exit 0",
        read=one_of(("budget",)),
    )
    from_ms: int | None = option(
        "TIME", "replay from this time on; default: all", name="--from", read=instant
    )
    to_ms: int | None = option(
        "TIME", "replay before this time; default: all", name="--to", read=instant
    )
    policies: "tuple[Policy, ...]" = ()

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Read the policies, for which `planning` is imported."""
        super().complete(values, mistakes)
        refuse_empty_time(values, mistakes)
        if not values["policy"]:
            mistakes.append("--policy FILE is missing")
        if values["fail_on"] is not None and values["max_late"] is values["max_pod_hours"] is None:
            mistakes.append("--fail-on budget needs --max-late N or --max-pod-hours X")
        from rebalance_core.planning.autoscale.policy import read_policies
        from rebalance_core.planning.autoscale.variations import with_variations

        try:
            policies = read_policies(values["policy"])
        except UsageError as error:
            mistakes += str(error).splitlines()
        else:
            values["policies"] = with_variations(policies) if values["search"] else policies


def _deployment(text: str) -> tuple[str, str]:
    """Read the Deployment of a group."""
    group, _, name = text.partition("=")
    if not group or not name or name.count("/") > 1:
        raise ValueError("expected GROUP=NAME or GROUP=NAMESPACE/NAME")
    return group, name


@dataclass(frozen=True, kw_only=True)
class ReadMetricsOptions(JobOptions):
    """The options of `read-metrics`."""

    DECIDING: ClassVar = ("cluster", "deployment", "threads")

    answer: tuple[str, ...] = option(
        "FILE",
        "JSON answers from /api/v1/query_range, also as .gz, each for part of the period or of the "
        "metrics; required",
        many="extend",
        required=True,
    )
    output: str = option("DIR", OUTPUT, required=True)
    cluster: str | None = option(
        "NAME",
        "the RocketMQ cluster of series without the label cluster; default: any",
        group=ASSUMED,
    )
    deployment: tuple[tuple[str, str], ...] = option(
        "GROUP=NAME",
        "the Deployment of a group's members, or NAMESPACE/NAME; default: the group's name",
        many="extend",
        read=_deployment,
        group=ASSUMED,
    )
    threads: int = _threads(", for the service time")


BOTH_GENERATIONS = ("4.9", "5.3")
RECORDED_VERSION = "5.3"


def _version(text: str) -> "Version":
    from rebalance_core.model.versions import parse_version

    return parse_version(text)


@dataclass(frozen=True, kw_only=True)
class ProducersOptions(RowOptions):
    """The options of `producers`: a folder of recorded results, or a model."""

    DECIDING: ClassVar = ("model", "versions")

    model_file: str | None = option(
        "FILE",
        "brokers and producers to simulate: a TOML file, or the name of a bundled model; this or "
        "--input is required",
        name="--model",
    )
    input: str | None = option(
        "DIR",
        "folder with the tables send_results and, to identify brokers, cluster_events; required "
        "without --model",
    )
    input_format: str | None = input_format_option()
    versions: tuple["Version", ...] = option(
        "VERSION",
        "client version to compare, repeatable; default 4.9 and 5.3; with --input, the version "
        "of the recorded clients, default 5.3",
        name="--client-version",
        many="append",
        read=_version,
    )
    output: str = option("DIR", OUTPUT, required=True)
    model: "ProducerModel | None" = None

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Read the model, for which `planning` is imported, and fill in the default versions."""
        recorded, file = values["input"] is not None, values["model_file"]
        if recorded == (file is not None):
            mistakes.append("pass either --model FILE or --input DIR")
        if recorded and len(values["versions"]) > 1:
            mistakes.append(
                "--client-version: with --input, pass only the version of the recorded clients"
            )
        default = (RECORDED_VERSION,) if recorded else BOTH_GENERATIONS
        versions = values["versions"] or map(_version, default)
        values["versions"] = tuple(dict.fromkeys(versions))
        if file is not None:
            from rebalance_core.planning.producer_model import read_model

            try:
                values["model"] = read_model(file)
            except UsageError as error:
                mistakes += str(error).splitlines()
