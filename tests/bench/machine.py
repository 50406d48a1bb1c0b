"""What a bench ran on."""

import os
import platform
import subprocess
from pathlib import Path

import numpy
import pyarrow
import pyspark

from rebalance_core.cli.run.java_home import find_java_home


def machine() -> dict[str, str | int | float]:
    """Cores, memory and versions, and how busy it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory GiB": round(memory),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "pyspark": pyspark.__version__,
        "java": _java_version(),
    }


def load() -> float:
    """Processes that ran or waited to, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _java_version() -> str:
    home = find_java_home()
    if home is None:
        return "none"
    told = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True)
    return (told.stderr.splitlines() or ["unknown"])[0]
