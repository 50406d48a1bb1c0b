"""Workers that end with the process that started them, however that ended."""

import os
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """Make this worker end when its parent is gone.

    A parent that is killed (SIGKILL, out of memory) tells its pool nothing: workers would wait for
    pieces for ever, and hold on to its standard output, so that whoever reads that waits too.
    """
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(parent: int) -> None:
    wait([parent])
    os._exit(1)
