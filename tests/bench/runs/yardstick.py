"""A fixed piece of work: seconds divided by its seconds can be compared between machines."""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_000_000
NAMES = 5_000
ROUNDS = 3


def yardstick() -> float:
    """Processor seconds of sorting, naming and writing a million rows; the best of three rounds.

    Nothing of this project is in it: numpy and pyarrow do what the jobs have them do.
    """
    return min(_round() for _ in range(ROUNDS))


def _round() -> float:
    random = np.random.default_rng(1)
    names = pa.array([f"name-{number:05d}" for number in range(NAMES)])
    begin = time.process_time()
    key = random.integers(0, 1 << 40, ROWS)
    order = np.argsort(key, kind="stable")
    code = np.cumsum(key[order] % NAMES) % NAMES
    columns = {f"n{i}": names.take(pa.array((code + i) % NAMES)) for i in range(4)}
    columns |= {"key": pa.array(key[order]), "order": pa.array(order)}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table(columns), Path(folder) / "rows.parquet", compression="zstd")
    return time.process_time() - begin
