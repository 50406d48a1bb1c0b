"""Lag, decisions and rebalancing in a closed loop, against figures made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.planning.autoscale.closed_loop import Question, Reader, Replayed, replay
from rebalance_core.planning.autoscale.commits import age_behind_s, age_of_commit_s
from rebalance_core.planning.autoscale.policy import (
    DOWN_LIMITS,
    FIXED,
    FUNCTION,
    KEDA,
    RECORDED,
    UP_LIMITS,
    Direction,
    Keda,
    Metrics,
    Policy,
    Seen,
    Target,
)
from rebalance_core.planning.autoscale.service_time import Uncommitted, sigma_of
from rebalance_core.planning.scenario.pods import Start, Stop
from tests.unit.planning.autoscale.groups import MEMBER, QUEUES, even, steady

HPA = Policy(
    "hpa",
    least=2,
    most=16,
    lag=Target(1_000.0),
    up=Direction(limits=UP_LIMITS),
    down=Direction(0, limits=DOWN_LIMITS),
    metrics=Metrics(15, 0),
)

TEN = np.array([10.0])


def fixed(replicas: int) -> Policy:
    return Policy(f"{replicas}", FIXED, replicas=replicas)


def run(
    policies: list[Policy],
    per_second: list[float],
    reader: Reader = MEMBER,
    seeds: int = 2,
    promise_s: int = 30,
) -> Replayed:
    question = Question(range(seeds), promise_s)
    return replay(steady(), policies, even(per_second), reader, question)


def test_who_keeps_up_has_no_lag() -> None:
    figures = run([fixed(4)], [700.0] * 10).figures
    assert figures["pod_hours"].tolist() == [[pytest.approx(4 * 600 / 3_600)] * 2]
    for name in ("lag_max", "longest_wait_s", "late_messages", "steps", "moves", "read_again"):
        assert not figures[name].any(), name


def test_who_does_not_keep_up_falls_behind_as_a_fluid() -> None:
    # four members read 800 of 1,000 messages a second for ten minutes, then catch up
    figures = run([fixed(4)], [*[1_000.0] * 10, *[0.0] * 5]).figures
    assert figures["lag_max"][0, 0] == pytest.approx(120_000)
    # the integral: up to 120,000 in 600 s, and down again in 150 s
    assert figures["lag_mean"][0, 0] * 900 == pytest.approx(120_000 * 750 / 2, rel=0.01)
    # a message of second t waits t / 4 s, and the last ones 150 s
    assert figures["longest_wait_s"][0, 0] == pytest.approx(150, abs=1)
    # those that come after 120 s wait longer than 30
    assert figures["late_messages"][0, 0] == pytest.approx(480_000, rel=0.01)
    assert figures["lag_p99"][0, 0] == pytest.approx(117_000, rel=0.03)


def test_an_orderly_queue_is_read_by_one_thread() -> None:
    ordered = Reader(200.0, 10.0, 0.1, 1_000)  # 32 queues: 320 messages a second at most
    figures = run([fixed(16)], [480.0] * 5, ordered).figures
    assert figures["lag_max"][0, 0] == pytest.approx(160 * 300)
    assert not run([fixed(16)], [319.0] * 5, ordered).figures["lag_max"].any()


def test_flow_control_gives_a_quiet_queue_of_a_busy_member_its_share() -> None:
    rates = even([0.0] * 5)
    rates.rate[:, 0], rates.rate[:, 1:] = 300.0, 3.0
    rates = replace(rates)  # adds the totals up again
    question = Question(range(1), 30)
    figures = replay(steady(), [fixed(1)], rates, MEMBER, question).figures
    # 300 + 31 x 3 messages a second come and 200 are read: the long queue waits
    assert figures["lag_max"][0, 0] == pytest.approx(193 * 300, rel=0.01)
    # with more than 1,000 waiting it gets no larger part: the others wait for seconds only
    assert figures["late_queue_seconds"][0, 0] < 1.5 * 300


def test_what_waits_in_a_queue_that_is_taken_is_behind_what_the_taker_has_pulled() -> None:
    def half(each: Seen) -> int:
        return 4 if each.at_s >= 60 else 8

    policy = Policy("stops", FUNCTION, least=4, most=8, replicas=8, decide=half)
    # eight members read 1,600 of 1,920 messages: after a minute 600 wait in each queue, the oldest
    # for ten seconds. Four go on. Of 16 queues that stay they would read all within 12 s, then
    # 9,600 of the others more than 20 s late; shared evenly, 5,486 would be as late
    figures = run([policy], [1_920.0, 0.0, 0.0], seeds=8, promise_s=20).figures
    # AVG moves some queues of those that stay, too
    assert 7_500 < figures["late_messages"].mean() < 9_600
    assert 24 <= figures["longest_wait_s"].mean() <= 29  # hand-overs take time


def test_recorded_replicas_change_in_their_own_second() -> None:
    changes = ((0, 2), (61, 4), (121, 8), (131, 4), (400, 3))
    recorded = Policy(RECORDED, RECORDED, changes=changes)
    load = [300.0] * 2 + [1_500.0] * 2 + [300.0] * 3
    made = run([HPA, fixed(4), recorded], load)
    steps = [(s.at_s, s.before, s.after) for s in made.steps if s.policy == 2 and not s.seed]
    assert steps == [(61, 2, 4), (121, 4, 8), (131, 8, 4), (400, 4, 3)]
    seconds = 61 * 2 + 60 * 4 + 10 * 8 + 269 * 4 + 20 * 3
    assert made.figures["pod_hours"][2].tolist() == [pytest.approx(seconds / 3_600)] * 2
    assert [point.at_s for point in made.points if point.policy == 2] == [*range(0, 420, 60)]
    # the others scale, and lag, as without them
    alone = run([HPA, fixed(4)], load)
    assert [step for step in made.steps if step.policy < 2] == alone.steps
    for name, values in alone.figures.items():
        assert made.figures[name][:2] == pytest.approx(values, rel=1e-9), name


def test_the_hpa_scales_the_group_and_the_lag_follows() -> None:
    made = run([fixed(2), HPA], [*[300.0] * 2, *[1_500.0] * 10], seeds=3)
    lag = made.figures["lag_max"]
    assert (lag[1] < lag[0] / 3).all()
    first = made.steps[0]
    assert (first.policy, first.before, first.at_s % 15) == (1, 2, 0)
    assert first.lag is not None
    assert first.lag > 1_000 * 2 * 1.1
    # nothing is scaled before the scaler can see it: the lag begins at 120 s
    assert 120 < first.at_s <= 150
    assert made.figures["moves"][1].min() > 0
    assert made.figures["no_owner_queue_seconds"][1].min() > 0
    assert made.figures["steps"][1].tolist() == [
        len([s for s in made.steps if s.seed == seed]) for seed in range(3)
    ]


def test_the_same_seed_gives_every_policy_the_same_world() -> None:
    rates = [*[300.0] * 2, *[1_500.0] * 5]
    alone = run([HPA], rates).figures
    beside = run([fixed(3), replace(HPA, name="again"), HPA], rates).figures
    for name, values in alone.items():
        assert np.array_equal(values[0], beside[name][2]), name
        assert np.array_equal(values[0], beside[name][1]), name


def test_a_later_metric_is_seen_later() -> None:
    rates = [*[300.0] * 2, *[1_500.0] * 8]
    late = replace(HPA, name="late", metrics=Metrics(60, 45))
    made = run([HPA, late], rates, seeds=1)
    firsts = [next(s.at_s for s in made.steps if s.policy == number) for number in (0, 1)]
    assert firsts[1] - firsts[0] >= 45
    assert made.figures["lag_max"][1, 0] > made.figures["lag_max"][0, 0]


def test_sizes_are_kept() -> None:
    sizes = replace(HPA, sizes=(2, 4, 8, 16), rate=Target(140.0))
    made = run([sizes], [*[300.0] * 2, *[1_500.0] * 6, *[300.0] * 6])
    assert {step.after for step in made.steps} <= {2, 4, 8, 16}
    assert made.figures["reversals"].min() >= 1


def test_keda_rests_and_wakes() -> None:
    keda = Policy(
        "keda",
        KEDA,
        least=0,
        most=8,
        lag=Target(500.0),
        down=Direction(0, limits=DOWN_LIMITS),
        up=Direction(limits=UP_LIMITS),
        keda=Keda(cooldown_s=60),
        metrics=Metrics(15, 0),
        start=Start(10_000, 0),
    )
    made = run([keda], [*[100.0] * 2, *[0.0] * 5, *[100.0] * 2], seeds=1)
    points = {point.at_s: point for point in made.points}
    assert points[360].replicas == 0
    assert points[360].members == 0
    assert points[480].replicas >= 1
    woken = next(step for step in made.steps if step.before == 0)
    assert 420 < woken.at_s <= 450


def test_who_is_slow_at_times_commits_less_and_reads_more_again() -> None:
    rates = [*[300.0] * 2, *[1_500.0] * 5]
    even_times = run([HPA], rates)
    slow = replace(MEMBER, uncommitted=Uncommitted(sigma_of(5.0)))
    varied = run([HPA], rates, slow)
    assert varied.figures["read_again"].min() > even_times.figures["read_again"].max()
    seen = list[Seen]()

    def stays(each: Seen) -> int:
        seen.append(each)
        return 4

    policy = Policy("mine", FUNCTION, least=4, most=4, decide=stays)
    run([policy], [320.0] * 3, slow, seeds=1)
    # 10 messages a second in each of 32 queues: one in handlers, what came after the oldest, and
    # the last, which waits for the next pull
    expected = 32 * (slow.uncommitted.messages(np.array([1.0]))[0] + 10 * age_of_commit_s(TEN)[0])
    assert seen[-1].lag == pytest.approx(expected)
    assert expected > 1.4 * 32


def test_pods_that_are_killed_leave_more_to_read_again() -> None:
    # four pods more and four less, with members that keep up but for the hand-overs
    def steps(each: Seen) -> int:
        return 8 if 60 <= each.at_s < 180 else 4

    policy = Policy("stops", FUNCTION, least=4, most=8, decide=steps, start=Start(5_000, 0))
    killed = replace(policy, name="killed", stop=Stop(graceful=False))
    hook = replace(policy, name="hook", stop=Stop(pre_stop_ms=20_000))
    late = replace(policy, name="late", stop=Stop(pre_stop_ms=40_000))
    made = run([policy, killed, hook, late], [700.0] * 6, seeds=4)
    again = made.figures["read_again"].mean(axis=1)
    assert again[1] > again[0]
    assert again[3] > again[2]
    assert again[2] == pytest.approx(again[0], rel=0.2)  # it leaves later, and as cleanly
    assert (made.figures["moves"] > 0).all()


def four_of_eight(each: Seen) -> int:
    """Stop half of the members after three minutes."""
    return 4 if each.at_s >= 180 else 8


def test_what_is_read_again_is_what_the_last_owner_read() -> None:
    policy = Policy("stops", FUNCTION, least=4, most=8, replicas=8, decide=four_of_eight)
    killed = replace(policy, name="killed", stop=Stop(graceful=False))
    # nothing comes any more when members stop, and they are still behind: eight read 1,600
    made = run([policy, killed], [*[3_200.0] * 2, *[0.0] * 4], seeds=8)
    assert made.figures["lag_max"].min() > 100_000
    leaves, kills = made.figures["read_again"].mean(axis=1)
    # of every queue that passes on, what was in handlers: 20 threads for four queues
    assert leaves > 5 * 16
    # and of the killed members' 16 queues what was read since the last pull of a full cache, beside
    # other numbers of queues that two have for a while
    pace = np.array([200.0 / 4])
    assert kills - leaves == pytest.approx(16 * (pace * age_behind_s(pace))[0], rel=0.3)


def test_a_function_decides() -> None:
    seen = list[Seen]()

    def two_more(each: Seen) -> int:
        seen.append(each)
        return each.replicas + 2 if each.at_s == 60 else each.replicas

    policy = Policy("mine", FUNCTION, least=2, most=5, decide=two_more, metrics=Metrics(15, 0))
    made = run([policy], [300.0] * 3, seeds=1)
    assert [(s.at_s, s.before, s.after) for s in made.steps] == [(60, 2, 4)]
    # what is worked on, 300 a second for 0.1 s, and the last of each queue
    last = 300.0 * age_of_commit_s(np.array([300.0 / QUEUES]))[0]
    assert seen[0].lag == pytest.approx(30.0 + last)


def test_points_are_of_the_futures_asked_for() -> None:
    made = replay(steady(), [HPA], even([300.0] * 3), MEMBER, Question(range(5, 9), 30, 2, 60))
    assert {(p.seed, p.at_s) for p in made.points} == {(s, t) for s in (5, 6) for t in (0, 60, 120)}
    assert all(p.members == 2 and p.no_owner == 0 for p in made.points)
    assert QUEUES == 32
