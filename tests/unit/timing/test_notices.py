"""How soon members act on a join or a loss, by the notices of their brokers and group."""

import numpy as np
import pytest

from rebalance_core.model.events import Event
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import NOTICES_BATCHED, REGULAR
from tests.unit.replay.histories import event, history, join, topic

T0 = 1_700_000_000_000
CHANGE_MS = T0 + 400_123
OPTIONS = ClockOptions(exact_times=True)
NOTICES_SEEDS = 300


def latencies(happens: Event, mode: str | None, *, notified: bool) -> tuple[str, np.ndarray]:
    """(why not at once, seconds until `a` acts in each future)."""
    switches = [event(T0 + 100, "NOTICES", broker_name="a", detail=mode)] if mode else []
    timeline = build_timeline(
        history(
            topic(T0, 4),
            *switches,
            join(T0 + 1_017, "b"),
            join(T0 + 11_017, "a"),
            happens,
            notified=notified,
        ),
        OPTIONS,
    )
    log = play_seeds(timeline, range(NOTICES_SEEDS), OPTIONS)
    (lifetime,) = (each.index for each in timeline.lifetimes if each.client_id == "a")
    late = (log.lifetime == lifetime) & (log.at_us > (CHANGE_MS - 1_000) * 1_000)
    first = np.full(NOTICES_SEEDS, np.inf)
    np.minimum.at(first, log.seed[late], log.at_us[late] / 1e6 - CHANGE_MS / 1e3)
    return reason_of(timeline), first


JOIN, LOST = join(CHANGE_MS, "0"), event(CHANGE_MS, "CONSUMER_LOST", "b")


@pytest.mark.parametrize(
    ("happens", "mode", "notified", "reason", "least_s", "most_s"),
    [
        (JOIN, None, True, REGULAR, 0.0, 2.5),
        (JOIN, "ON", True, REGULAR, 0.0, 2.5),
        (JOIN, None, False, REGULAR, 15.0, 21.5),
        (JOIN, "OFF", True, REGULAR, 15.0, 21.5),
        (JOIN, "BATCHED", True, NOTICES_BATCHED, 10.0, 16.5),
        (LOST, None, False, REGULAR, 0.0, 2.5),
        (LOST, "OFF", True, REGULAR, 15.0, 21.5),
    ],
)
def test_members_act_on_the_notices_they_get(
    happens: Event, mode: str | None, notified: bool, reason: str, least_s: float, most_s: float
) -> None:
    """The slowest of many futures: a second, a batch of 15 s, or a wait of 20 s."""
    why, found = latencies(happens, mode, notified=notified)
    assert why == reason
    assert np.isfinite(found).all()
    assert least_s <= found.max() <= most_s
    assert found.min() >= -1
