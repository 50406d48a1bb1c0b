"""`python -m tests.bench.assignors.compare`: kernels, RocketMQ and Kafka on the same points.

RocketMQ's strategy is called as its clients do: by every member for every topic. Kafka's assignors
compute a whole group at once. Each contestant has its input ready in memory, and gives objects
(kernels: arrays of integers). The fastest run counts, in processor time: of one thread in the JVM,
without its collector.
"""

from collections.abc import Mapping

from tests.bench.assignors.jars import NotToBeHad
from tests.bench.assignors.owners import Answer, Kernels, keep_freed_memory, kernels_on
from tests.bench.assignors.points import TARGET, Point, star
from tests.bench.assignors.released import (
    ALLOCATE,
    AS_AVG,
    KAFKA,
    RANGES,
    REBALANCE,
    ROCKETMQ,
    Released,
)
from tests.bench.report import MORE, Figure, Report, Table, bench_main, say, tidy

GIANT = Point(2_000, 500, 50)
"""The million queues."""
TIMES_ROCKETMQ = 500
FEWEST_COMPARED = 5
TARGET_SECONDS = 60.0
"""The cap of the point with a target, whatever that of the others."""
ABOUT = """\
The points are taken from the grid of Kafka's ServerSideAssignorBenchmark (members x queues per
member x topics), with one more of a million queues. `rocketmq-allocate` calls
AllocateMessageQueueAveragely (5.3.3) for every member and topic. `rocketmq-rebalance` also copies
and sorts both lists first, as RebalanceImpl does. Kafka's assignors (4.1.1) are the coordinator's
range assignor (`listed` reads out every owner) and uniform assignor, and the clients' range and
cooperative sticky assignors. The figures are those of the fastest run on one thread, which was
stopped after 60 s. The bench asserts that the kernels assign the same owners as RocketMQ and as
Kafka's range assignors.
"""

Answers = Mapping[str, Mapping[Point, Answer]]


def compare(cap: float = 10.0, enough: float = 0.5, everything: int = 0) -> Report:
    """Run all on all points.

    Args:
        cap: Processor seconds after which a released assignor is stopped on a point.
        enough: Seconds after which a point is not run once more.
        everything: 1: RocketMQ's loop with its sorting on every point, too.
    """
    points = sorted([*star(), GIANT], key=lambda p: p.members * p.members * p.topics)
    keep_freed_memory()
    kernels = {}
    for point in points:
        kernels[point] = kernels_on(point, enough)
        say(f"  {point}: owners {kernels[point].answer.seconds:.4f} s")
    try:
        with Released() as released:
            answers = _answers(released, points, cap, enough, everything)
    except NotToBeHad as why:
        left_out: tuple[str, ...] = (f"RocketMQ's and Kafka's columns: {why}.",)
        return Report(
            "Kernels and assignors", ABOUT, tables=_tables(points, kernels, {}), left_out=left_out
        )
    _hold_equal(points, kernels, answers)
    return Report(
        "Kernels and assignors",
        ABOUT + f" Released assignors were stopped after {cap:.0f} s of processor time on a point.",
        figures=tuple(_figures(kernels, answers)),
        tables=_tables(points, kernels, answers),
    )


def _answers(
    released: Released, points: list[Point], cap: float, enough: float, everything: int
) -> Answers:
    found = {}
    for name in (*ROCKETMQ, *KAFKA):
        mine = points if name != REBALANCE or everything else []
        say(f"  {name} on {len(mine)} points …")
        found[name] = released.answers(name, mine, cap, enough)
        if name in ROCKETMQ:
            found[name] |= released.answers(name, [TARGET], TARGET_SECONDS, enough)
    return found


def _hold_equal(points: list[Point], kernels: Mapping[Point, Kernels], answers: Answers) -> None:
    compared = 0
    for name in (*ROCKETMQ, *AS_AVG):
        for point in points:
            theirs, ours = answers[name].get(point), kernels[point].answer
            if theirs is not None and theirs.seconds is not None:
                compared += name in ROCKETMQ
                facts = (theirs.crc, theirs.moves, theirs.most, theirs.fewest)
                assert facts == (ours.crc, ours.moves, ours.most, ours.fewest), f"{name}: {point}"
    assert compared >= FEWEST_COMPARED, "RocketMQ answered on too few points to compare with"


def _figures(kernels: Mapping[Point, Kernels], answers: Answers) -> list[Figure]:
    figures = []
    for name, what in (
        (REBALANCE, "RocketMQ's loop over all members"),
        (ALLOCATE, "the same without its copying and sorting"),
    ):
        ratio = _ratio(answers[name].get(TARGET), kernels[TARGET])
        figures.append(
            Figure(
                f"{what} / kernels, {TARGET}",
                ratio,
                better=MORE,
                target=TIMES_ROCKETMQ,
                steady=False,
            )
        )
    listing = tuple(name for name in KAFKA if name != RANGES)
    for names, what in (
        (listing, "fastest of Kafka's assignors"),
        ((RANGES,), "Kafka's range assignor (ranges alone)"),
    ):
        ratios = [_ratio(answers[name].get(GIANT), kernels[GIANT]) for name in names]
        known = [ratio for ratio in ratios if ratio is not None]
        figures.append(
            Figure(
                f"{what} / kernels, a million queues",
                min(known, default=None),
                better=MORE,
                target=1,
                steady=False,
            )
        )
    return figures


def _ratio(theirs: Answer | None, ours: Kernels) -> float | None:
    if theirs is None or theirs.seconds is None or ours.answer.seconds is None:
        return None
    return tidy(theirs.seconds / ours.answer.seconds)


def _tables(
    points: list[Point], kernels: Mapping[Point, Kernels], answers: Answers
) -> tuple[Table, ...]:
    def shown(name: str, point: Point) -> str | float:
        answer = answers[name].get(point)
        if answer is None:
            return ""
        ratio = _ratio(answer, kernels[point])
        return "stopped" if ratio is None else ratio

    def balance(answer: Answer | None) -> str:
        if answer is None or answer.seconds is None:
            return ""
        return f"{answer.moves:,}; {answer.fewest:,} to {answer.most:,}"

    times = Table(
        ("point", "kernels: owners, ms", "whole pass, s", "rows", *answers),
        tuple(
            (
                str(p),
                tidy(1000 * (kernels[p].answer.seconds or 0)),
                tidy(kernels[p].pass_seconds),
                kernels[p].rows,
                *(shown(name, p) for name in answers),
            )
            for p in points
        ),
        "The last columns are multiples of the time that the kernels take for the owners.",
    )
    moves = Table(
        ("point", "RocketMQ and kernels", *(n for n in KAFKA if n in answers)),
        tuple(
            (
                str(p),
                balance(kernels[p].answer),
                *(balance(answers[n].get(p)) for n in KAFKA if n in answers),
            )
            for p in points
        ),
        "The table shows the queues that moved, and the queues of the members with the fewest and "
        "the most. The cooperative assignor revokes queues in one round and assigns them in the "
        "next; this is the first round.",
    )
    return times, moves


if __name__ == "__main__":
    bench_main(compare, __doc__, cap=10.0, enough=0.5, everything=0)
