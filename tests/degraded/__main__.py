"""Run trials: ``python -m tests.degraded --trials N --seed S [--subject NAME] [--workers 2]``."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.degraded.trials import Trial, run_trial, table


def _trials(seeds: range, subject: str | None, workers: int) -> Iterator[Trial]:
    if workers == 1:
        yield from (run_trial(seed, subject) for seed in seeds)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(partial(run_trial, subject=subject), seeds, chunksize=4)


def run() -> int:
    """Print each trial that failed and then the table; 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.degraded", description=__doc__)
    parser.add_argument("--trials", type=int, default=60, help="how many; seeds count up")
    parser.add_argument("--seed", type=int, default=1, help="of the first; one trial replays it")
    parser.add_argument("--subject", help="this recording or case only, in place of the drawn one")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="a file that gets every trial as a line more")
    chosen = parser.parse_args()
    done = []
    seeds = range(chosen.seed, chosen.seed + chosen.trials)
    for trial in _trials(seeds, chosen.subject, chosen.workers):
        done.append(trial)
        if trial.wrong:
            print(trial.told(), flush=True)
        if chosen.json:
            with chosen.json.open("a", encoding="utf-8") as log:
                print(json.dumps(asdict(trial)), file=log)
    print(table(done))
    return int(any(trial.failed for trial in done))


if __name__ == "__main__":
    sys.exit(run())
