"""RocketMQ's and Kafka's own assignors on points, each in a JVM of its own."""

import subprocess
import tempfile
from pathlib import Path

from rebalance_core.cli.run.java_home import find_java_home
from tests.bench.assignors.jars import NotToBeHad, class_path
from tests.bench.assignors.owners import Answer
from tests.bench.assignors.points import Point

SOURCES = Path(__file__).parent
ALLOCATE, REBALANCE = "rocketmq-allocate", "rocketmq-rebalance"
ROCKETMQ = (ALLOCATE, REBALANCE)
RANGES = "server-range"
"""Its answer is first and last partitions: no partition is listed."""
KAFKA = (RANGES, "server-range-listed", "server-uniform", "client-range", "client-sticky")
AS_AVG = (RANGES, "server-range-listed", "client-range")
"""They divide as AVG does."""
JVM = ("-Xms2g", "-Xmx8g")
CAPPED = "capped"


class Released:
    """The compiled programs; a context that removes them again.

    Raises:
        NotToBeHad: No compiler, or no jars.
    """

    def __init__(self) -> None:
        home = find_java_home()
        if home is None:
            raise NotToBeHad("no Java 17 or newer was found")
        self._java, compiler = home / "bin/java", home / "bin/javac"
        if not compiler.exists():
            raise NotToBeHad(f"{home} has no javac (Debian: apt-get install default-jdk-headless)")
        jars = class_path(self._java)
        self._folder = tempfile.TemporaryDirectory()
        self._class_path = ":".join(map(str, [self._folder.name, *jars]))
        subprocess.run(
            [compiler, "-d", self._folder.name, "-cp", self._class_path,
             *sorted(SOURCES.glob("*.java"))],
            check=True,
        )  # fmt: skip

    def __enter__(self) -> "Released":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def answers(
        self, assignor: str, points: list[Point], cap: float, enough: float
    ) -> dict[Point, Answer]:
        """What one assignor gives on points.

        Args:
            assignor: One of `ROCKETMQ` and `KAFKA`.
            points: Small ones first: a capped point costs a JVM.
            cap: Processor seconds after which a point, with its preparation, is given up.
            enough: Seconds after which a point is not run once more.
        """
        found: dict[Point, Answer] = {}
        while len(found) < len(points):
            left = points[len(found) :]
            lines = self._run(assignor, left, cap, enough)
            if not lines:
                raise RuntimeError(f"{assignor} gave no answer on {left[0]}")
            for point, (name, *fields) in zip(left, lines, strict=False):
                assert name == str(point), f"{name} is not {point}"
                found[point] = Answer(None) if fields == [CAPPED] else _answer(fields)
        return found

    def _run(
        self, assignor: str, points: list[Point], cap: float, enough: float
    ) -> list[list[str]]:
        command = [str(self._java), *JVM, "-cp", self._class_path, "Assignors", assignor,
                   str(cap), str(enough)]  # fmt: skip
        text = "".join(f"{point.line()}\n" for point in points)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{assignor}: {done.stderr[-2000:]}")
        return [line.split("\t") for line in done.stdout.splitlines()]


def _answer(fields: list[str]) -> Answer:
    seconds, _, moves, most, fewest, crc = fields
    return Answer(float(seconds), int(moves), int(most), int(fewest), int(crc))
