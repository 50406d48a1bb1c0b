"""What every test shares: its lane by its folder, and one session for the whole run."""

import gc
import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from rebalance_core.strategies import custom
from tests.object_store import make_bucket, running_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent
LANES = ("unit", "conformance", "spark", "jobs", "bench", "oracle")
WITH_SESSION = ("tests/spark/", "tests/jobs/", "tests/oracle/")
ALONE = (
    "tests/jobs/test_cli_process.py",
    "tests/jobs/test_explain_job.py",
    "tests/jobs/test_morning_after.py",
    "tests/jobs/test_notebook.py",
    "tests/jobs/test_object_store.py",
)
"""Files whose tests share no session; those that need a JVM start one in a process of their own."""
LONG = (
    "tests/jobs/test_cli_process.py",
    "tests/unit/kernels/test_equality.py",
    "tests/recordings/test_timing",
    "tests/jobs/test_notebook.py",
    "tests/docs/test_blocks.py",
    "tests/unit/test_layers.py",
)
"""Files that begin early: a run ends well where only short ones are left for the end."""
LANE_OF_FOLDER = (
    dict(zip(LANES, LANES, strict=True))
    | dict.fromkeys(("cases", "degraded", "history", "recordings"), "conformance")
    | {"docs": "unit"}
)

# The whole run lasts about as long as a JVM needs to warm up: compile little, collect simply, and
# take Spark's classes as they are (a seventh of the time that a short job takes).
FAST_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

SESSION_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Planning again after each stage is what small runs spend most time on; tests/jobs do it.
    "spark.sql.adaptive.enabled": "false",
    # A few rows are computed before code for them is compiled: a quarter of what tests of catalogs
    # took. Jobs under spark-submit compile it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.default.parallelism": "2",
    "spark.driver.extraJavaOptions": FAST_JVM,
    "spark.driver.memory": "2g",
    # Each relation of a broadcast join takes a page at least, and lives as long as what is kept.
    "spark.buffer.pageSize": "1m",
    "spark.driver.host": "127.0.0.1",
    # mapInArrow checks no types by default; a wrong one would show up far away.
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "LoadScopeScheduling":
    """One worker begins with all tests that share the session: two at once starve each other.

    All others go by whole files, so that what a file shares is made once. They begin in the order
    of the collection.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneWithSession(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
        def _split_scope(self, nodeid: str) -> str:
            return "session" if shares_session(nodeid) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return OneWithSession(config, log)


def shares_session(nodeid: str) -> bool:
    """All tests of these folders, but those that run in a process or start a JVM of their own."""
    return nodeid.startswith(WITH_SESSION) and not (
        nodeid.startswith(ALONE) or "[process" in nodeid
    )


def begins(nodeid: str) -> int:
    """When a test begins among those of a run with workers."""
    if shares_session(nodeid):
        return 0
    return 1 if nodeid.startswith(LONG) else 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test with the lane whose folder it lies in, unless it names one itself."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: begins(item.nodeid))
    for item in items:
        named = any(item.get_closest_marker(lane) for lane in LANES)
        if TESTS in item.path.parents and not named:
            lane = LANE_OF_FOLDER.get(item.path.relative_to(TESTS).parts[0])
            if lane is not None:
                item.add_marker(lane)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves: they stay to the end of the run.

    What tests make lies in few cycles, so it is looked for seldom.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, object, object]:
    """A test that the time limit interrupts does not fail those after it in the same session."""
    if call.excinfo is not None and "from pytest-timeout" in str(call.excinfo.value):
        abandon_call()
    return (yield)


def abandon_call() -> None:
    """Let this thread's next call of the JVM use a new connection.

    A call that was interrupted before its answer came leaves that answer to the next one, and every
    later call gets the answer of the one before it.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        connection = SparkContext._gateway._gateway_client.get_thread_connection()
        if connection is not None:
            connection.close()
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.cancelAllJobs()


def pytest_report_header() -> str:
    """Random tests take their seed from here: PYTEST_SEED=… runs them again."""
    return f"seed of random tests: {os.environ.get('PYTEST_SEED', '0 (PYTEST_SEED sets it)')}"


@pytest.fixture(scope="session", autouse=True)
def played_in_this_process() -> Iterator[None]:
    """Starting processes costs more than the few futures of a test; tests of them say how many."""
    with mock.patch("rebalance_core.process.runtime.usable_cores", return_value=1):
        yield


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of this run's random tests; printed at its head."""
    return int(os.environ.get("PYTEST_SEED", "0"))


@pytest.fixture
def registered_plugins() -> Iterator[None]:
    """Own strategies, hash functions and resolvers that a test registers are gone after it."""
    before = custom.plugins()
    yield
    custom.install(before)


@pytest.fixture(scope="session")
def store_of_the_run() -> Iterator[str]:
    """The URL of the one S3 of the run."""
    with running_store() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(store_of_the_run: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """`s3a://` URL of an empty bucket; the environment says how it is reached."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store_of_the_run)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
    monkeypatch.setattr("rebalance_core.storage.access.SETTLE_SECONDS", 0.0)
    name = f"b{uuid.uuid4().hex}"
    make_bucket(store_of_the_run, name)
    return f"s3a://{name}"


@pytest.fixture(scope="session")
def session_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The one session of the run: starting a second one costs 13 s."""
    from rebalance_core.cli.run.session import open_session

    warehouse = tmp_path_factory.mktemp("warehouse")
    settings = SESSION_SETTINGS | {
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.python.daemon.module": "tests.python_daemon",
    }
    session = open_session("tests", master="local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark(session_of_the_run: "SparkSession") -> Iterator["SparkSession"]:
    """A session; the frames that a module's tests keep go with the module."""
    yield session_of_the_run
    session_of_the_run.catalog.clearCache()
