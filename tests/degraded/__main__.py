"""Run trials: ``python -m tests.degraded [--each N | --trials N] [--seed S] [--workers 2]``."""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from tests.degraded.damages import KINDS
from tests.degraded.trials import Chosen, Trial, run_chosen, table


def _trials(chosen: list[Chosen], workers: int) -> Iterator[Trial]:
    if workers == 1:
        yield from map(run_chosen, chosen)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(run_chosen, each) for each in chosen]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            pool.shutdown(cancel_futures=True)


def run() -> int:
    """Print each trial that failed and then the table; 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.degraded", description=__doc__)
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--each", type=int, help="trials of each kind (2)")
    many.add_argument("--trials", type=int, help="trials of drawn kinds, at times of several")
    parser.add_argument("--seed", type=int, default=1, help="of the first; seeds count up")
    parser.add_argument("--subject", help="this recording or case only, in place of the drawn one")
    parser.add_argument(
        "--kind", action="append", choices=sorted(KINDS), help="this damage only; repeatable"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="a file that gets every trial as a line more")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + (asked.trials or asked.each or 2))
    kinds = asked.kind or ([None] if asked.trials else sorted(KINDS))
    chosen = [(seed, asked.subject, kind) for kind in kinds for seed in seeds]
    done = []
    for trial in _trials(chosen, asked.workers):
        done.append(trial)
        if trial.wrong:
            print(trial.described(), flush=True)
        if asked.json:
            with asked.json.open("a", encoding="utf-8") as log:
                print(json.dumps(asdict(trial)), file=log)
    print(table(done))
    return int(any(trial.failed for trial in done))


if __name__ == "__main__":
    sys.exit(run())
