"""Run trials: ``python -m tests.degraded --trials N --seed S [--subject NAME] [--workers 2]``."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.degraded.damages import DAMAGES, HARMLESS
from tests.degraded.trials import Trial, run_trial, table


def _trials(seeds: range, workers: int, **chosen: Any) -> Iterator[Trial]:
    run_one = partial(run_trial, **chosen)
    if workers == 1:
        yield from map(run_one, seeds)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(run_one, seeds, chunksize=4)


def run() -> int:
    """Print each trial that failed and then the table; 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.degraded", description=__doc__)
    parser.add_argument("--trials", type=int, default=60, help="how many; seeds count up")
    parser.add_argument("--seed", type=int, default=1, help="of the first; one trial replays it")
    parser.add_argument("--subject", help="this recording or case only, in place of the drawn one")
    parser.add_argument("--kind", choices=sorted(DAMAGES | HARMLESS), help="this damage only")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="a file that gets every trial as a line more")
    chosen = parser.parse_args()
    done = []
    seeds = range(chosen.seed, chosen.seed + chosen.trials)
    for trial in _trials(seeds, chosen.workers, subject=chosen.subject, kind=chosen.kind):
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
