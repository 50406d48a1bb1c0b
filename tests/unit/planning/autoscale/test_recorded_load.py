"""Rates, service times and replicas of Prometheus's answers; gaps, resets and contradictions."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.autoscale.range_answer import merged, parse_answer
from rebalance_core.planning.autoscale.recorded_load import WANTED, RecordedLoad, load_of_metrics
from tests.unit.planning.autoscale.answers import (
    BEGIN_S,
    STEP_S,
    body,
    come,
    lag,
    pods,
    series,
)


def load(*texts: str, **more: Any) -> RecordedLoad:
    answers = [parse_answer(text, f"{place}.json", WANTED) for place, text in enumerate(texts)]
    return load_of_metrics(merged(answers), threads=20, **more)


def rates(made: RecordedLoad, broker: str | None = "broker-a") -> list[tuple[int, int, float]]:
    """Minutes from the begin, and messages a second."""
    return [
        (
            (row["from_ms"] // 1_000 - BEGIN_S) // STEP_S,
            (row["to_ms"] // 1_000 - BEGIN_S) // STEP_S,
            row["messages_per_second"],
        )
        for row in made.arrivals
        if row["broker_name"] == broker
    ]


def test_a_rate_is_known_between_two_samples_and_equal_neighbours_are_one_row() -> None:
    made = load(body(come([100, 700, 1_300, 1_300, 4_300])))
    assert rates(made) == [(0, 2, 10.0), (2, 3, 0.0), (3, 4, 50.0)]
    assert made.arrivals[0]["cluster"] == "shop"
    assert made.arrivals[0]["topic"] == "Orders"
    assert not made.unknown


def test_a_gap_is_unknown_and_not_zero() -> None:
    made = load(body(come([0, 600, None, None, 2_400, 3_000])))
    assert rates(made) == [(0, 1, 10.0), (4, 5, 10.0)]
    (unknown,) = made.unknown
    assert str(unknown) == (
        '0.json: rocketmq_messages_in_total{cluster="shop",node_id="broker-a",topic="Orders"} '
        "2026-11-21 03:21:00Z to 2026-11-21 03:24:00Z: samples are missing, with steps of 60 s"
    )


def test_a_sample_that_is_repeated_before_a_gap_shows_no_rate() -> None:
    # Prometheus answers with the last sample for 5 minutes
    made = load(body(come([0, 600, 600, 600, None, 2_400, 3_000])))
    assert rates(made) == [(0, 1, 10.0), (5, 6, 10.0)]
    (unknown,) = made.unknown
    assert unknown.to_ms - unknown.from_ms == 4 * STEP_S * 1_000
    # a time without messages is longer
    quiet = load(body(come([0, 600, *[600] * 8, None, 2_400, 3_000])))
    assert rates(quiet)[:2] == [(0, 1, 10.0), (1, 4, 0.0)]


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf"])
def test_a_value_that_is_no_number_is_missing(text: str) -> None:
    made = load(body(come([0, 600, text, 1_800, 2_400])))
    assert rates(made) == [(0, 1, 10.0), (3, 4, 10.0)]
    assert len(made.unknown) == 1


def test_a_counter_that_goes_back_leaves_its_step_unknown() -> None:
    made = load(body(come([9_000, 9_600, 120, 720])))
    assert rates(made) == [(0, 1, 10.0), (2, 3, 10.0)]
    assert made.unknown[0].why == "it went back from 9600 to 120"


def test_brokers_are_kept_apart_and_message_types_are_added() -> None:
    made = load(
        body(
            come([0, 600, 1_200], message_type="normal"),
            come([5, 65, 65], message_type="delay"),
            come([0, 0, 60], node_id="broker-b"),
        )
    )
    assert rates(made) == [(0, 1, 11.0), (1, 2, 10.0)]
    assert rates(made, "broker-b") == [(0, 1, 0.0), (1, 2, 1.0)]


def test_a_counter_that_begins_later_leaves_the_time_before_unknown() -> None:
    made = load(
        body(
            come([0, 600, 1_200, 1_800], message_type="normal"),
            come([None, None, 5, 65], message_type="delay"),
        )
    )
    assert rates(made) == [(2, 3, 11.0)]
    assert made.unknown[0].why == "it has no sample, although other metrics of the process do"


def test_the_process_of_a_broker_after_its_restart_counts_anew() -> None:
    made = load(
        body(
            come([0, 600, 1_200], instance="10.0.0.1:5557"),
            come([None, None, None, 0, 60, 120], instance="10.0.0.9:5557"),
        )
    )
    assert rates(made) == [(0, 2, 10.0), (3, 5, 1.0)]
    (unknown,) = made.unknown
    assert unknown.why == "no process of the broker has two samples"
    assert (unknown.to_ms - unknown.from_ms) // 1_000 == STEP_S


@pytest.mark.parametrize("later", [0, 70, 599])
def test_two_scrapes_of_a_counter_are_refused(later: int) -> None:
    """Prometheus replicas scrape at different moments."""
    again = [value + later for value in (0, 600, 1_200)]
    with pytest.raises(InputRefused, match="count the same messages; query one"):
        load(body(come([0, 600, 1_200], job="a"), come(again, job="b")))


def test_two_exporters_show_one_offset() -> None:
    def exported(values: list[float | None], instance: str) -> dict[str, Any]:
        named = {"cluster": "shop", "broker": "broker-a", "topic": "Orders", "instance": instance}
        return series("rocketmq_producer_offset", values, named)

    first, second = exported([0, 60, 120, None], "a"), exported([None, 60, 120, 180], "b")
    made = load(body(first, second))
    assert rates(made) == [(0, 3, 1.0)]
    assert made.unknown == []


def test_the_time_after_the_last_two_samples_is_unknown() -> None:
    restarted = come([None] * 6 + [5], instance="b")
    made = load(body(come([0, 600, 1_200], instance="a"), restarted))
    assert rates(made) == [(0, 2, 10.0)]
    (unknown,) = made.unknown
    assert (unknown.to_ms - unknown.from_ms) // 1_000 == 4 * STEP_S
    (rare,) = load(body(come([0, 600]), come([5], topic="Rare"))).unknown
    assert rare.why == "it has one sample"


def test_files_are_parts_of_the_time() -> None:
    first, second = come([0, 600, 1_200]), come([None, None, 1_200, 1_800])
    assert rates(load(body(first), body(second))) == [(0, 3, 10.0)]
    other = come([None, None, 1_300, 1_800])
    with pytest.raises(InputRefused, match=r"0\.json, 1\.json: .* has two values at .*: 1200 and"):
        load(body(first), body(other))


def test_a_label_that_prometheus_renamed_has_its_own_name() -> None:
    counter = come([0, 600], cluster="kubernetes-1", exported_cluster="shop")
    assert load(body(counter)).arrivals[0]["cluster"] == "shop"


def test_the_cluster_of_series_without_one_is_stated() -> None:
    counter = come([0, 600])
    del counter["metric"]["cluster"]
    assert load(body(counter)).arrivals[0]["cluster"] is None
    assert load(body(counter), cluster="shop").arrivals[0]["cluster"] == "shop"


def test_retries_and_system_topics_are_left_out() -> None:
    made = load(
        body(
            come([0, 60]),
            come([0, 6_000], topic="%RETRY%pay"),
            come([0, 6_000], topic="SCHEDULE_TOPIC_XXXX"),
            come([0, 6_000], topic="mine", is_system="true"),
        )
    )
    assert {row["topic"] for row in made.arrivals} == {"Orders"}


def test_the_exporter_of_4x_counts_by_offsets() -> None:
    labels = {"cluster": "shop", "broker": "broker-a", "topic": "Orders"}
    offsets = series("rocketmq_producer_offset", [1_000, 1_060], labels)
    assert rates(load(body(offsets))) == [(0, 1, 1.0)]
    # where both exporters count a topic, the broker's own counts
    assert rates(load(body(offsets, come([0, 600])))) == [(0, 1, 10.0)]


def minutes(values: list[float]) -> list[float]:
    """A counter of so many messages a second."""
    total, made = 0.0, [0.0]
    for value in values:
        total += value * STEP_S
        made.append(total)
    return made


def behind(reads: float, comes: float, steps: int = 20) -> list[Mapping[str, Any]]:
    """A group of four that reads less than comes."""
    waits = [1_000 + (comes - reads) * STEP_S * place for place in range(steps + 1)]
    return [come(minutes([comes] * steps)), lag(waits), pods([4] * (steps + 1))]


def test_a_group_that_is_behind_shows_its_service_time() -> None:
    made = load(body(*behind(400.0, 500.0)))
    (row,) = made.capacity
    # 400 a second by four members with 20 threads: 200 ms a message
    assert row["service_ms"] == pytest.approx(200.0)
    assert (row["cluster"], row["consumer_group"], row["threads"]) == ("shop", "pay", 20)
    assert row["service_ms_low"] == pytest.approx(200.0)
    assert not made.unmeasured
    assert made.scaling[3] == {
        "cluster": "shop",
        "consumer_group": "pay",
        "at_ms": (BEGIN_S + 3 * STEP_S) * 1_000,
        "replicas": 4,
        "lag": 19_000,
        "delivered_per_second": None,
    }


def test_a_group_that_keeps_up_shows_no_limit() -> None:
    made = load(body(come(minutes([500.0] * 20)), lag([5] * 21), pods([4] * 21)))
    assert not made.capacity
    assert "it kept up in all but 0 known steps" in made.unmeasured["shop", "pay"]


def test_the_time_after_a_change_of_replicas_shows_nothing() -> None:
    changing = [4 + place // 2 % 2 for place in range(21)]
    parts = behind(400.0, 500.0)
    made = load(body(*parts[:2], pods(changing)))
    assert not made.capacity


def test_what_a_capacity_lacks_is_stated() -> None:
    counter, waits, replicas = behind(400.0, 500.0)
    made = load(body(counter, waits))
    assert "add kube_deployment_spec_replicas" in made.unmeasured["shop", "pay"]
    made = load(body(counter, pods([4] * 21)), deployments={"pay": "pay"})
    assert "has no series of it" in made.unmeasured[None, "pay"]
    other = come([0, 600], topic="Other")
    made = load(body(other, waits, replicas))
    assert made.unmeasured["shop", "pay"] == "the rates of Orders are unknown"


def test_an_exporter_counts_members_in_a_label() -> None:
    counter, waits, _ = behind(400.0, 500.0)
    samples = waits["values"]
    diff = {"group": "pay", "topic": "Orders", "msgModel": "1", "countOfOnlineConsumers": "4"}
    of_group = {"metric": {"__name__": "rocketmq_group_diff", **diff}, "values": samples}
    made = load(body(counter, of_group), cluster="shop")
    assert made.capacity[0]["service_ms"] == pytest.approx(200.0)


def test_a_negative_lag_is_unknown() -> None:
    made = load(body(come([0, 60, 120]), lag([5, -3, 4])))
    assert [row["lag"] for row in made.scaling] == [5, 4]


def test_lag_is_the_sum_over_brokers_where_all_are_known() -> None:
    made = load(body(come([0, 60, 120]), lag([5, 6, 7]), lag([1, None, 2], node_id="broker-b")))
    assert [row["lag"] for row in made.scaling] == [6, 9]


def test_a_deployment_is_found_by_name_or_stated() -> None:
    waits, counter = lag([5, 5]), come([0, 60])
    other = pods([7, 7], deployment="payments", namespace="test")
    parts = (counter, waits, other, pods([3, 3], deployment="payments"))
    assert {r["replicas"] for r in load(body(*parts)).scaling} == {None}
    stated = load(body(*parts), deployments={"pay": "live/payments"})
    assert {r["replicas"] for r in stated.scaling} == {3}
    for text, found in (("payments", 2), ("nowhere", 0)):
        with pytest.raises(InputRefused, match=f"--deployment pay={text}: {found} deployments"):
            load(body(*parts), deployments={"pay": text})


def changed(counter: dict[str, Any], place: int, sample: Any) -> str:
    counter["values"][place] = sample
    return body(counter)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "0.json is not JSON"),
        ("[1]", "is not an answer from Prometheus"),
        (
            json.dumps({"status": "error", "errorType": "bad_data", "error": "too many points"}),
            "0.json: Prometheus refused the query: bad_data: too many points",
        ),
        (
            json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}),
            "0.json: the answer is a vector; expected the matrix of /api/v1/query_range",
        ),
        (
            body({"metric": {"topic": "Orders"}, "values": [[BEGIN_S, "1"]]}),
            'series 1, {topic="Orders"}, lacks the name of its metric: query the metric itself',
        ),
        (body({"metric": 3}), "series 1 has no labels"),
        (body(come([])), "has no values; expected pairs"),
        (body(come(["NaN", "NaN"])), "has no sample with a finite value"),
        (body(come([0, -60])), '"Orders"} is -60 at 2026-11-21 03:21:00Z; a counter is 0 or more'),
        (
            changed(come([0, 60]), 1, [(BEGIN_S + 60) * 1_000, "60"]),
            "time 1795231260000 of sample 2 is not a Unix time in seconds",
        ),
        (changed(come([0, 60]), 1, ["2026-11-21T03:21:00", "60"]), "sample 2 is ['2026-11-21T03:"),
        (changed(come([0, 60]), 1, [BEGIN_S, "60"]), "times must ascend"),
        (changed(come([0, 60]), 1, [BEGIN_S + 60, "many"]), "sample 2 is [1795231260, 'many']"),
        (changed(come([0, 60]), 1, [10**400, "1"]), "sample 2 is"),
        (changed(come([0, 60]), 1, [BEGIN_S + 60]), "sample 2 is [1795231260]"),
        (body(come([0, 60], aggregation="delta")), "counts from its last value (metricsInDelta)"),
        (body(come([0, 60], topic="")), "lacks the label topic"),
        (body(lag([0, 60], consumer_group="")), "lacks the label consumer_group"),
        (body(pods([4, 4.5])), "is 4.5 at 2026-11-21 03:21:00Z; expected a whole number"),
    ],
)
def test_bad_answers_are_refused_with_their_place(text: str, said: str) -> None:
    with pytest.raises(InputRefused) as refused:
        load(text, deployments={"pay": "live/pay"} if "kube" in text else None)
    assert said in str(refused.value)
    assert str(refused.value).startswith("0.json")


def test_other_metrics_are_not_read() -> None:
    answer = parse_answer(
        body(come([0, 60]), series("up", [1, 1], {}), warnings=["partial"]), "a.json", WANTED
    )
    assert answer.others == {"up"}
    assert answer.warnings == ("partial",)
    assert len(answer.series) == 1
