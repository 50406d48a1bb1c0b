"""Simulated time over a whole input: the same rows however the seeds are split and played."""

from multiprocessing import active_children
from pathlib import Path

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS, HOLDERS, PROPAGATION
from rebalance_core.engine import propagation
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.process import propagation_pass
from rebalance_core.process.propagate import propagate, propagation_forecast
from rebalance_core.process.simulate import simulate
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from tests.unit.process.propagation_inputs import lost_at_one_broker, unknown_member, write_tables

FEW = PropagationOptions(seeds=12, handover_seeds=5, holder_seeds=4)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> ArrowTables:
    folder = write_tables(tmp_path_factory.mktemp("tables") / "in", unknown_member())
    return read_input_tables(str(folder))


@pytest.fixture(scope="module")
def made(inputs: ArrowTables) -> dict[str, pa.Table]:
    return propagate(inputs, FEW)


def test_every_change_has_a_row(made: dict[str, pa.Table]) -> None:
    rows = made[PROPAGATION.name].to_pylist()
    assert [(row["consumer_group"], row["cause"]) for row in rows] == [
        ("letters", "BROKER_DOWN"),
        ("letters", "CONSUMER_LEAVE"),
        ("orders", "CONSUMER_JOIN"),
        ("orders", "CONSUMER_LOST"),
        ("orders", "BROKER_DOWN"),
    ]
    join, lost, down = rows[2:]
    assert 500 < join["convergence_ms_p50"] <= join["convergence_ms_max"] < 5_000
    assert 0 < lost["convergence_ms_p50"] < 5_000
    assert 5_000 < down["convergence_ms_max"] < 60_000
    assert join["orphan_queue_seconds"] > 0.1
    assert lost["read_again"] > 0


def test_hand_overs_are_of_the_first_seeds(made: dict[str, pa.Table]) -> None:
    rows = made[HANDOVERS.name].to_pylist()
    assert {row["seed"] for row in rows} == set(range(5))
    assert {row["consumer_group"] for row in rows} == {"orders"}  # the other one broadcasts
    joined = [row for row in rows if row["cause"] == "CONSUMER_JOIN"]
    assert {row["to_client_id"] for row in joined} >= {"c3"}


def test_holders_are_of_the_first_seeds_and_hand_queues_over_as_the_hand_overs_say(
    made: dict[str, pa.Table],
) -> None:
    rows = made[HOLDERS.name].to_pylist()
    assert {row["seed"] for row in rows} == set(range(4))
    assert {row["consumer_group"] for row in rows} == {"letters", "orders"}
    keys = [tuple(row[name] for name in HOLDERS.key) for row in rows]
    assert len(keys) == len(set(keys))
    place = ("consumer_group", "seed", "topic", "broker_name", "queue_id")
    begun = {(*(row[n] for n in place), row["client_id"], row["from_ms"]) for row in rows}
    ended = {(*(row[n] for n in place), row["client_id"], row["to_ms"]) for row in rows}
    passed = [row for row in made[HANDOVERS.name].to_pylist() if row["seed"] < 4]
    for row in passed:
        queue = tuple(row[name] for name in place)
        if row["start_ms"] is not None:
            assert (*queue, row["to_client_id"], row["start_ms"]) in begun
        if row["drop_ms"] is not None:
            assert (*queue, row["from_client_id"], row["drop_ms"]) in ended
    assert len(passed) > 20


def test_an_unknown_member_is_rejected(made: dict[str, pa.Table]) -> None:
    (row,) = made[REJECTED.name].to_pylist()
    assert row["issues"][0]["code"] == "UNKNOWN_MEMBER"
    assert "'c9'" in row["issues"][0]["message"]


def test_who_was_lost_at_one_broker_lives_on(tmp_path: Path) -> None:
    read = read_input_tables(str(write_tables(tmp_path / "in", lost_at_one_broker())))
    made = propagate(read, FEW)
    assert not len(made[REJECTED.name])
    assert made[PROPAGATION.name]["cause"].to_pylist().count("CONSUMER_LOST") == 2


def test_processes_and_pieces_change_nothing(
    inputs: ArrowTables, made: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagation, "PIECE_STEPS", 7)
    monkeypatch.setattr(propagation, "SLICE_ROWS", 1)
    small = propagate(inputs, FEW, processes=2)
    assert all(small[name].equals(made[name]) for name in made)


def test_several_processes_give_the_same(
    inputs: ArrowTables, made: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagation, "PIECE_STEPS", 40)
    spread = propagate(inputs, FEW, processes=2)
    assert all(spread[name].equals(made[name]) for name in made)


def test_seeds_are_numbers_of_futures(inputs: ArrowTables, made: dict[str, pa.Table]) -> None:
    later = propagate(inputs, PropagationOptions(seeds=3, first_seed=2, handover_seeds=9))
    whole = made[HANDOVERS.name].to_pylist()
    assert later[HANDOVERS.name].to_pylist() == [row for row in whole if 2 <= row["seed"] < 5]


def test_one_group(inputs: ArrowTables) -> None:
    made = propagate(inputs, PropagationOptions(seeds=2, group="let*"))
    assert set(made[PROPAGATION.name]["consumer_group"].to_pylist()) == {"letters"}


def test_what_is_assumed_of_timers_counts(inputs: ArrowTables, made: dict[str, pa.Table]) -> None:
    clock = ClockOptions(phases=RANDOM_PHASES, lost_notices=1.0)
    unheard = propagate(inputs, PropagationOptions(seeds=12, clock=clock))[PROPAGATION.name]
    joins = [
        row["convergence_ms_p50"]
        for table in (made[PROPAGATION.name], unheard)
        for row in table.to_pylist()
        if row["cause"] == "CONSUMER_JOIN"
    ]
    assert joins[0] < 2_000 < joins[1]


def test_a_group_of_unknown_subscriptions_is_left_out_and_counted(tmp_path: Path) -> None:
    unstated = {**unknown_member(), "event_type": "CONSUMER_JOIN"}
    read = read_input_tables(str(write_tables(tmp_path / "in", unstated)))
    made = propagate(read, PropagationOptions(seeds=2))
    assert set(made[PROPAGATION.name]["consumer_group"].to_pylist()) == {"letters"}
    _, facts = propagation_forecast(read, PropagationOptions(seeds=2), BadRowLimits())
    assert facts["groups_of_unknown_subscriptions"] == 1


def test_a_group_whose_queues_are_shared_has_no_rows(tmp_path: Path) -> None:
    proxied = {
        **unknown_member(),
        "event_type": "CONSUMER_JOIN",
        "consumer_group": "grpc",
        "subscriptions": ["T"],
        "rebalance_mode": "PROXY",
    }
    read = read_input_tables(str(write_tables(tmp_path / "in", proxied)))
    made = propagate(read, PropagationOptions(seeds=2, group="grpc"))
    assert [len(made[name]) for name in (PROPAGATION.name, HANDOVERS.name)] == [0, 0]


def test_a_run_that_is_given_up_leaves_no_process(
    inputs: ArrowTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagation, "PIECE_STEPS", 7)

    def give_up(rows: pa.Table) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(propagation_pass, "propagation", give_up)
    others = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        propagate(inputs, FEW, processes=2)
    assert set(active_children()) == others


@pytest.mark.parametrize("seeds", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_the_windows_of_diffs_contain_what_is_simulated(inputs: ArrowTables, seeds: int) -> None:
    """An action of a member comes no later than the ledger's ``latest_ms`` of the change."""
    latest: dict[tuple[str, int], int] = {}
    for row in simulate(inputs).diffs.to_pylist():
        if row["kind"] != "INITIAL" and not row["topic"].startswith("%RETRY%"):
            key = row["consumer_group"], row["change_ms"]
            latest[key] = max(latest.get(key, 0), row["latest_ms"])
    made = propagate(inputs, PropagationOptions(seeds=seeds, handover_seeds=0))
    changes = made[PROPAGATION.name].to_pylist()
    assert len(changes) == len(latest)
    for row in changes:
        over_ms = row["change_ms"] + row["convergence_ms_max"]
        assert over_ms <= latest[row["consumer_group"], row["change_ms"]], row
