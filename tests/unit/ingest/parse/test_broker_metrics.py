"""A broker's metrics: how late the revive queues are."""

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.broker_metrics import parse_broker_metrics

LABELS = 'cluster="c",node_id="broker-b",node_type="broker",otel_scope_name="broker-meter"'
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
    values = {"revive_queue": queue, "late_ms": late_ms, "waiting": waiting}
    return Fact("revive_metrics", None, values, f"m:{line}")


def test_the_text_of_5_5() -> None:
    assert parse_broker_metrics(RECORDED, "m") == [late(0, 895, 1, 7), late(3, 67_012, 12, 8)]


def test_without_the_unit_and_with_a_time() -> None:
    text = 'rocketmq_pop_revive_latency{queue_id="7",node_id="b"} 1.2e4 1795974572015\n'
    assert parse_broker_metrics(text, "m") == [late(7, 12_000, None, 1)]


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
