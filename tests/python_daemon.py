"""Spark's daemon of Python workers, which has what they all import before it forks them.

Spark's own has nothing: each worker takes a second to import the same, and collects the garbage
among all of it after every task.
"""

import gc
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # what forks must have no thread

import pyspark.worker  # noqa: F401
from pyspark import daemon

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    daemon.manager()
