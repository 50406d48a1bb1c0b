"""Fresh random cases: the released classes of one version against ours.

    python -m tests.oracle.compare 4.9.7 --cases 500 --seed 1 [--charset GBK]

Prints ``N cases, M differences`` and exits 1 if there are any. Needs pyspark, Java 17 and Maven
Central (or a filled ivy cache: the folder of ``--ivy``).
"""

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import sort_client_ids, sort_queues
from rebalance_core.strategies.registry import make_strategy
from tests.oracle.cases import Case, random_case

SHOWN = 20  # differences printed


def ours(case: Case, version: str, charset: str) -> tuple[str, str]:
    """(name, result) of our strategy, written as in the allocation vectors."""
    params = dict(case.params)
    if case.name.endswith("CONSISTENT_HASH"):
        params["platform_charset"] = charset
    try:
        strategy = make_strategy(case.name, params, version)
    except AllocationError as error:
        return case.name, _thrown(error)
    try:
        queues, client_ids = sort_queues(case.queues), sort_client_ids(case.client_ids)
        share = strategy.allocate(case.client_id, queues, client_ids)
    except AllocationError as error:
        return strategy.name, _thrown(error)
    if strategy.returns_null:
        return strategy.name, "null"
    return strategy.name, ",".join(f"{q.topic}|{q.broker_name}|{q.queue_id}" for q in share)


def _thrown(error: AllocationError) -> str:
    message = "null" if error.java_message is None else error.java_message
    return f"!{error.java_class}: {message}"


def main() -> int:
    """Runs the comparison; the exit code."""
    parser = argparse.ArgumentParser(description="The released classes against ours.")
    parser.add_argument("version")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--charset", default="UTF-8", help="default charset of the JVM")
    options = parser.parse_args()
    print(f"version {options.version}, charset {options.charset}, seed {options.seed}")

    # Before the JVM starts: an unresolvable host name would kill the session.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from tests.oracle.upstream import Upstream

    # The client writes its own logs below user.home, ivy its downloads.
    home = Path(tempfile.gettempdir()) / "rebalance-oracle"
    home.mkdir(exist_ok=True)
    upstream = Upstream(options.version, options.charset, str(home))
    print(f"classes from {upstream.loaded_from()}")
    rng, differences = random.Random(options.seed), 0
    kinds: Counter[str] = Counter()
    for number in range(options.cases):
        case = random_case(rng)
        expected, actual = upstream.answer(case), ours(case, options.version, options.charset)
        result = expected[1]
        kinds[
            "exception" if result[:1] == "!" else "queues" if result not in ("", "null") else "none"
        ] += 1
        if expected != actual:
            differences += 1
            if differences <= SHOWN:
                print(f"case {number}: {case}\n  upstream {expected}\n  ours     {actual}")
    upstream.stop()
    print(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    print(f"{options.cases} cases, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
