"""Many members at many brokers: engines agree also on the draws that one of them leaves out."""

import numpy as np
import pytest

from rebalance_core.model.events import OBSERVED
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.timer_periods import NEVER, Times
from rebalance_core.timing.vectorized import known_notices, play_seeds, steady
from rebalance_core.timing.vectorized.known_notices import KnownNotices, ListNotices
from rebalance_core.timing.vectorized.member_lists import MemberList
from tests.unit.replay.histories import history, topic
from tests.unit.timing.futures import COLUMNS, happens, joins

BROKERS, MEMBERS, SEEDS = 12, 16, range(3)
FASTEST, SLOWEST = 5, 60


@pytest.mark.parametrize(
    "options",
    [ClockOptions(), ClockOptions(lost_notices=0.4), ClockOptions(rtt_us=20_000, exact_times=True)],
    ids=["default", "lost", "far"],
)
@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
@pytest.mark.parametrize("all_drawn", [0, 1 << 30], ids=["some drawn", "all drawn"])
def test_a_restart_of_a_third(
    options: ClockOptions, version: str, all_drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_last = []

    def last_alone(answers: steady._Answers) -> steady._Answers:
        by_last.append(answers)
        return whole(answers)

    whole = steady._Answers.last_alone
    monkeypatch.setattr(steady._Answers, "last_alone", last_alone)
    monkeypatch.setattr(known_notices, "_ALL_DRAWN", all_drawn)
    events = [topic(0, 2, "T", f"b{number:02}") for number in range(BROKERS)]
    events += [joins(1, f"c{number:02}", detail=OBSERVED) for number in range(MEMBERS)]
    for number in range(0, MEMBERS, 3):
        at_ms = 600_000 + number * 37 % 500
        events.append(happens(at_ms, "CONSUMER_LEAVE", f"c{number:02}"))
        events.append(joins(at_ms + 4_000, f"c{number:02}r"))
    events.sort(key=lambda event: event.event_ms)
    made = history(*events, client_version=version, broker_version=version)
    timeline = build_timeline(made, options)
    played = play_seeds(timeline, SEEDS, options)
    plain = play_seeds_one_by_one(timeline, list(SEEDS), options)
    for name in COLUMNS:
        assert np.array_equal(getattr(played, name), getattr(plain, name)), name
    assert len(played) > 100
    assert by_last


def lists(random: np.random.Generator, elements: int, seeds: int) -> list[ListNotices]:
    """Notices of three lists, some of them suppressed, of members that come and go."""
    made = []
    for _ in range(3):
        sent = random.integers(0, 1_000, (7, seeds))
        sent[random.random(sent.shape) < 0.2] = NEVER
        since = random.integers(-500, 700, (elements // seeds, seeds))
        place = MemberList.__new__(MemberList)
        place.since, place.until = since, since + random.integers(0, 900, since.shape)
        ticks = random.integers(0, 1 << 40, sent.shape)
        newer = np.where(random.random(sent.shape) < 0.5, sent + SLOWEST // 2, NEVER)
        made.append(ListNotices(place, ticks, sent, newer))
    return made


def arrival(elements: np.ndarray, ticks: np.ndarray, sent: Times) -> Times:
    """Delays that depend on notice and element; element 1 is never woken."""
    delay = FASTEST + (ticks * 31 + elements * 17) % (SLOWEST - FASTEST)
    return np.where(elements == 1, NEVER, np.minimum(sent, NEVER) + delay)


@pytest.mark.parametrize("all_drawn", [0, 1 << 30], ids=["some drawn", "all drawn"])
@pytest.mark.parametrize("seed", range(20))
def test_the_first_notice_after_a_time(
    seed: int, all_drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_notices, "_ALL_DRAWN", all_drawn)
    random = np.random.default_rng(seed)
    seeds, elements = 4, 20
    notices = lists(random, elements, seeds)
    known = KnownNotices(notices, seeds, arrival, FASTEST, SLOWEST)
    who = np.repeat(np.arange(elements), 30)
    at_us = random.integers(-100, 1_200, len(who))
    enough_us = at_us + np.where(
        random.random(len(who)) < 0.5, 0, random.integers(0, 400, len(who))
    )
    found = known.first_after(who, at_us, enough_us)
    any_found = 0
    for element, at, enough, its in zip(who, at_us, enough_us, found, strict=True):
        woken = sorted(wakes_of(notices, int(element), seeds))
        first = next((each for each in woken if each > at), NEVER)
        if first > enough:
            assert its == first
        else:
            assert at < its <= enough
            assert its in woken
            any_found += its != first
    assert bool(any_found) == (not all_drawn)


def wakes_of(notices: list[ListNotices], element: int, seeds: int) -> list[int]:
    """Of one element, by hand."""
    lifetime, future = divmod(element, seeds)
    found = []
    for each in notices:
        since, until = each.place.since[lifetime, future], each.place.until[lifetime, future]
        for tick, sent, newer in zip(
            each.ticks[:, future], each.sent[:, future], each.newer[:, future], strict=True
        ):
            woken = int(arrival(np.array(element), tick, sent))
            if sent < NEVER and since <= sent < until and woken < min(newer, NEVER):
                found.append(woken)
    return found
