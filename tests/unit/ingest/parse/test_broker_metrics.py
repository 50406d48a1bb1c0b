"""A broker's metrics: how late the revive queues are."""

import re

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.broker_metrics import parse_broker_metrics

LABELS = 'cluster="c",node_id="broker-b",node_type="broker",otel_scope_name="broker-meter"'
COUNTS = "pop_counts"
RECORDED = f"""\
# TYPE rocketmq_pop_checkpoint_buffer_size gauge
rocketmq_pop_checkpoint_buffer_size{{{LABELS}}} 0.0
# TYPE rocketmq_pop_revive_lag_milliseconds gauge
rocketmq_pop_revive_lag_milliseconds{{{LABELS},queue_id="0"}} 1.0
rocketmq_pop_revive_lag_milliseconds{{{LABELS},queue_id="3"}} 12.0
# TYPE rocketmq_pop_revive_latency_milliseconds gauge
rocketmq_pop_revive_latency_milliseconds{{{LABELS},queue_id="0"}} 895.0
rocketmq_pop_revive_latency_milliseconds{{{LABELS},queue_id="3"}} 67012.0
# EOF
"""


def late(queue: int, late_ms: int, waiting: int | None, line: int) -> Fact:
    return of_node("broker-b", queue, late_ms, waiting, line)


def of_node(node: str | None, queue: int, late_ms: int, waiting: int | None, line: int) -> Fact:
    values = {"revive_queue": queue, "late_ms": late_ms, "waiting": waiting, "node": node}
    return Fact("revive_metrics", None, values, f"m:{line}")


def counts(text: str) -> list[dict[str, object]]:
    """Return the counts of groups that pop, of a text that is read whole."""
    facts = parse_broker_metrics(text, "m")
    return [dict(fact.values) for fact in read(facts) if fact.kind == COUNTS]


def read(facts: list[Fact | Unread]) -> list[Fact]:
    """Return the facts, none of which was refused."""
    assert not any(isinstance(fact, Unread) for fact in facts)
    return [fact for fact in facts if not isinstance(fact, Unread)]


def test_the_text_of_5_5() -> None:
    assert parse_broker_metrics(RECORDED, "m") == [late(0, 895, 1, 7), late(3, 67_012, 12, 8)]


def test_without_the_unit_and_with_a_time() -> None:
    text = 'rocketmq_pop_revive_latency{queue_id="7",node_id="b"} 1.2e4 1795974572015\n'
    assert parse_broker_metrics(text, "m") == [of_node("b", 7, 12_000, None, 1)]


def sample(name: str, value: float, topic: str = "T", **labels: str) -> str:
    of = {"consumer_group": "g", "node_id": "b", "topic": topic, **labels}
    printed = ",".join(f'{key}="{text}"' for key, text in of.items())
    return f"{name}{{{printed}}} {value}\n"


def written(kind: str, value: float, topic: str = "T", status: str = "PUT_OK") -> str:
    labels = {"put_status": status, "revive_message_type": kind}
    return sample("rocketmq_pop_revive_in_message_total", value, topic, **labels)


NEXT = "# TYPE rocketmq_processor_watermark gauge\n"
POPPED = (
    sample("rocketmq_consumer_inflight_messages", 2, is_retry="false")
    + sample("rocketmq_consumer_inflight_messages", 3, is_retry="true")
    + sample("rocketmq_messages_out_total", 9, is_retry="false")
    + sample("rocketmq_messages_out_total", 70, is_retry="true")
    + sample("rocketmq_messages_out_total", 800)  # a pull
    + written("CK", 5)
    + written("CK", 4, "%RETRY%g_T")
    + written("CK", 2, "%RETRY%g+T", "FLUSH_SLAVE_TIMEOUT")
    + written("ACK", 7)
    + written("ACK", 1, status="SERVICE_NOT_AVAILABLE")
    + sample("rocketmq_pop_revive_retry_messages_total", 71, put_status="PUT_OK")
    + sample("rocketmq_pop_revive_retry_messages_total", 3, put_status="MESSAGE_ILLEGAL")
)
COUNTED = {
    "consumer_group": "g",
    "topic": "T",
    "node": "b",
    "checkpoints": 11,
    "acknowledgements": 7,
    "failed": 1,
    "put_back": 71,
    "given": 9,
    "given_again": 70,
    "in_flight": 5,
}


def test_what_a_broker_counts_of_a_group() -> None:
    assert counts(POPPED + NEXT) == [COUNTED]
    assert counts(POPPED + "# EOF") == [COUNTED]


def test_what_a_group_that_the_broker_takes_for_pulling_has_in_flight_is_not_shown() -> None:
    text = "".join(line for line in POPPED.splitlines(keepends=True) if "} 3\n" not in line)
    assert counts(text + NEXT) == [COUNTED | {"in_flight": None}]


def test_two_brokers_in_a_text_stay_apart_and_a_second_scrape_replaces_the_first() -> None:
    other = POPPED.replace('node_id="b"', 'node_id="c"')
    assert counts(other + POPPED + NEXT) == [COUNTED | {"node": "c"}, COUNTED]
    assert counts(POPPED + POPPED.replace("} 7\n", "} 8\n") + NEXT) == [
        COUNTED | {"acknowledgements": 8}
    ]


@pytest.mark.parametrize("lines", range(1, len(POPPED.splitlines()) + 1))
def test_a_text_that_lost_its_end_has_no_count_that_is_too_low(lines: int) -> None:
    kept = "".join(POPPED.splitlines(keepends=True)[:lines])
    for found in counts(kept):
        shown = {name: value for name, value in found.items() if value is not None}
        assert shown.items() <= COUNTED.items()
        assert found["put_back"] is None


METRICS = {
    "rocketmq_consumer_inflight_messages": ("in_flight",),
    "rocketmq_messages_out_total": ("given", "given_again"),
    "rocketmq_pop_revive_in_message_total": ("checkpoints", "acknowledgements", "failed"),
    "rocketmq_pop_revive_retry_messages_total": ("put_back",),
}


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [(r" \S+$", " NaN"), (r"$", " 0 x"), (r" (\S+)$", " -1"), ('="b"', '="b'), ("q_", "q?")],
)
@pytest.mark.parametrize("number", range(len(POPPED.splitlines())))
def test_a_metric_with_a_sample_that_is_refused_has_no_count(
    number: int, pattern: str, damage: str
) -> None:
    """The refused line may be of any group, so that a sum without it may be too low."""
    lines = POPPED.splitlines()
    names = [line.partition("{")[0] for line in lines]
    lines[number] = re.sub(pattern, damage, lines[number], count=1)
    for name in METRICS:
        lines[names.index(name)] = f"# TYPE {name} x\n{lines[names.index(name)]}"
    text = "".join(f"{line}\n" for line in lines)
    facts = parse_broker_metrics(text + NEXT, "m")
    found = [dict(each.values) for each in facts if not isinstance(each, Unread)]
    assert len(facts) == len(found) + 1
    assert found == [COUNTED | dict.fromkeys(METRICS[names[number]])]


def test_a_line_that_is_cut_off_states_no_number() -> None:
    text = RECORDED[: RECORDED.index("67012.0") + 2]
    facts = parse_broker_metrics(text, "m")
    assert [fact for fact in facts if not isinstance(fact, Unread)] == [late(0, 895, 1, 7)]
    (cut,) = (fact for fact in facts if isinstance(fact, Unread))
    assert (cut.source, cut.code, cut.message) == (
        "m:8",
        "UNPARSABLE_LINE",
        "is cut off: it ends before the end of its last line",
    )


def test_a_proxys_metrics_are_not_a_brokers() -> None:
    of_proxy = 'rocketmq_proxy_up{node_type="proxy"} 1.0\n'
    (refused,) = parse_broker_metrics(of_proxy, "m")
    assert isinstance(refused, Unread)
    assert (refused.code, refused.message) == ("WRONG_FILE", "it holds only a proxy's metrics")
    assert len(parse_broker_metrics(of_proxy + RECORDED, "m")) == 2, "a broker with a proxy inside"


def test_other_metrics_state_nothing() -> None:
    assert parse_broker_metrics("# HELP up x\nup 1\n", "m") == []


@pytest.mark.parametrize(
    "line",
    [
        "rocketmq_pop_revive_latency 7",
        'rocketmq_pop_revive_latency{node_id="b"} 7',
        'rocketmq_pop_revive_latency{queue_id="x"} 7',
        'rocketmq_pop_revive_latency{queue_id="1"} NaN',
        'rocketmq_pop_revive_latency{queue_id="1"} -1',
        'rocketmq_pop_revive_latency{queue_id="1"} +Inf',
        'rocketmq_pop_revive_latency{queue_id="1"}',
        'rocketmq_pop_revive_latency{queueId="1"} 7',
        'rocketmq_pop_revive_in_message_total{group="g",topic="T",put_status="PUT_OK"} 7',
        'rocketmq_consumer_inflight_messages{consumer_group="g",topic="T",is_retry="true"} NaN',
    ],
)
def test_a_sample_that_does_not_fit_is_refused_by_its_line(line: str) -> None:
    (refused,) = parse_broker_metrics(f"# TYPE a gauge\n{line}\n", "m")
    assert isinstance(refused, Unread)
    assert (refused.source, refused.code) == ("m:2", "UNPARSABLE_LINE")


@pytest.mark.parametrize("text", ["", "<html>404</html>", '{"status": 1}', "curl: (7) Failed"])
def test_what_is_no_metrics_is_refused(text: str) -> None:
    (refused,) = parse_broker_metrics(text, "m")
    assert isinstance(refused, Unread)
    assert refused.code == "WRONG_FILE"
