"""Starts of pods out of the joins of a group's last deploys."""

from rebalance_core.model.events import Event
from rebalance_core.planning.rollout.recorded_starts import recorded_starts, start_basis
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.scenario.pods import Pace, Start
from rebalance_core.synthetic.draws import Draws
from tests.unit.replay.histories import event

MEMBERS = 12
HOUR_MS = 3_600_000


def deploys(pace: Pace, times: int = 1) -> list[Event]:
    """A group that is deployed every hour."""
    events = [join(0, f"0-{place}") for place in range(MEMBERS)]
    for number in range(1, times + 1):
        begin_ms = number * HOUR_MS
        for place, turn in enumerate(pace.turns(MEMBERS, Draws(number, "starts"))):
            events.append(join(begin_ms + turn.join_ms, f"{number}-{place}"))
            events.append(
                event(
                    begin_ms + turn.stop_ms,
                    "CONSUMER_LEAVE",
                    client_id=f"{number - 1}-{place}",
                    channel_id="x",
                )
            )
    return events


def join(at_ms: int, client_id: str) -> Event:
    return event(at_ms, "CONSUMER_JOIN", client_id=client_id, channel_id="x")


def test_starts_of_pods_that_replace_stopped_ones() -> None:
    starts = recorded_starts(deploys(Pace(0, 3, 15_000)))
    assert starts == (15_000,) * MEMBERS


def test_the_first_pods_of_a_surge_have_no_time() -> None:
    starts = recorded_starts(deploys(Pace(3, 0, 15_000)))
    assert starts == (15_000,) * (MEMBERS - 3)


def test_a_spread_is_found_again() -> None:
    pace = Pace(0, 3, 15_000, spread_ms=5_000)
    basis = start_basis(Search("restart", "g"), recorded_starts(deploys(pace, 3)))
    assert abs(basis.start.median_ms - 15_000) < 2_500
    assert 2_500 < basis.start.stated_spread_ms < 6_000
    assert basis.words == "the start of 36 pods in the last deploys of these groups"


def test_what_is_no_deploy_has_no_starts() -> None:
    whole = deploys(Pace(0, 3, 15_000))
    assert recorded_starts(whole[:MEMBERS]) == ()
    assert recorded_starts(whole[:-2]) == ()


def test_what_is_stated_outranks_the_tables_and_these_a_default() -> None:
    starts = (10_000, 20_000, 30_000)
    stated = Search("restart", "g", start=Start(9_000, 1_000))
    assert start_basis(stated, starts).start == Start(9_000, 1_000)
    down = start_basis(Search("restart", "g", down=9_000), starts)
    assert down.start.median_ms == 9_000
    assert down.words.startswith("the spread of 3 pods")
    default = start_basis(Search("restart", "g", down=20_000), starts[:2])
    assert default.start == Start(20_000, 5_681)
    assert default.words.startswith("a default")
    assert default.of(Search("restart", "g", down=20_000)).default().start == Start(20_000, 5_681)
