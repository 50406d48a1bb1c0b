"""A killed run leaves no process behind. The processes are real, as nothing else can be killed."""

import subprocess
import sys

PARENT = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from rebalance_core.process.pool import end_with_parent

pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=end_with_parent)
pool.submit(time.sleep, 0).result()
pool.submit(time.sleep, 600)
print("at work", flush=True)
time.sleep(600)
"""


def test_workers_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"at work\n"
        parent.kill()
        # ends once no process holds the parent's standard output: the busy worker, and the idle one
        parent.communicate(timeout=60)


def test_in_the_first_process_there_is_no_parent_to_follow() -> None:
    follow = "from rebalance_core.process.pool import end_with_parent as end; end()"
    done = subprocess.run([sys.executable, "-c", f"{follow}; print('on')"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"on\n")
