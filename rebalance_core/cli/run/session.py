"""The only place that builds a SparkSession."""

import atexit
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from rebalance_core.cli.run.java_home import require_java_home
from rebalance_core.cli.run.jvm import jvm_output
from rebalance_core.cli.run.run_record import python_version
from rebalance_core.cli.run.spark_failure import connect_address, under_spark_submit
from rebalance_core.model.errors import UsageError
from rebalance_core.spark import SparkSession
from rebalance_core.spark.spark_versions import context_of, refuse_too_old, require_connect
from rebalance_core.storage.package_zip import write_package

TREE_CONF = Path(__file__).resolve().parents[3] / "conf"

# All settings that affect results; everything else is up to the operator.
RESULT_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}

QUICK_SETTINGS = {
    # Recording the line of Python that created each column doubles the time to build plans.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The JVM holds each batch on its way to Python at least twice per task; with the default of 64
    # MiB, that is much of its default heap of 1 GiB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    # glibc returns a Python worker's freed arrays to the system after every block and reclaims them
    # page by page, which takes a tenth of the kernels' time.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": "268435456",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": "268435456",
    "spark.executorEnv.MALLOC_TOP_PAD_": "67108864",
}

JVM_OF_TASKS = "-XX:TieredStopAtLevel=1"
"""For a JVM that only moves packed rows between tasks, because fully compiling its code takes
longer than a job with two stages.
"""


CONNECT_PORT = 15002
"""Default port of Spark Connect."""
ANSWER_SECONDS = 10.0
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables that gRPC reads."""


def prepare_environment(master: str | None) -> None:
    """Set the environment variables that Spark reads when it starts, unless they are already set.

    Raises:
        UsageError: no suitable Java was found.
    """
    # Workers with a different interpreter would lack this package's dependencies.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if under_spark_submit():
        return
    if master is None or master.startswith("local"):
        # A host name that does not resolve, as in many containers, would end the session.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_HOME" not in os.environ and (TREE_CONF / "spark-defaults.conf").is_file():
        os.environ.setdefault("SPARK_CONF_DIR", str(TREE_CONF))
    os.environ["JAVA_HOME"] = str(require_java_home())


def open_session(
    app_name: str,
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    show_spark: bool = True,
    rows_in_jvm: bool = True,
) -> SparkSession:
    """Return the existing or a new session, with the settings that results depend on.

    Args:
        app_name: shown in the Spark UI and history.
        master: Spark master, or the address of a Connect server; None leaves it to spark-submit,
            SPARK_REMOTE and the configuration.
        settings: further Spark settings of this run.
        show_spark: let a JVM that is started for the session write to stderr; otherwise see
            `jvm_output`.
        rows_in_jvm: False if Python computes all rows, see `JVM_OF_TASKS`; the operator's
            SPARK_SUBMIT_OPTS and Spark configuration override it.
    """
    address = connect_address(master)
    if address is not None:
        if not address.startswith("sc:"):
            prepare_environment(address)  # SPARK_REMOTE=local: a server in this process
        with jvm_output(shown=show_spark) if address.startswith("local") else nullcontext():
            return _connected(address, {**RESULT_SETTINGS, **(settings or {})})
    os.environ.pop("SPARK_REMOTE", None)  # it would override the master
    active = SparkSession.getActiveSession()
    if active is None:
        prepare_environment(master)
        if not rows_in_jvm:
            _prefer_jvm_option(JVM_OF_TASKS)
        builder = SparkSession.builder.appName(app_name)
        # Spark's progress bar is for people; in a log file it is noise.
        bar = str(sys.stderr.isatty()).lower()
        builder = builder.config("spark.ui.showConsoleProgress", bar)
        if master is not None:
            builder = builder.master(master)
        # Static settings only apply before the session exists.
        for key, value in {**QUICK_SETTINGS, **RESULT_SETTINGS, **(settings or {})}.items():
            builder = builder.config(key, value)
        with nullcontext() if under_spark_submit() else jvm_output(shown=show_spark):
            session = builder.getOrCreate()
        refuse_too_old(session.version)
        # A JVM that exits before its executors reports them as failures.
        atexit.register(_stop, session)
        return session
    _set(active, {**RESULT_SETTINGS, **(settings or {})})
    return active


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set the dynamic settings of an existing session; static settings stay unchanged."""
    for key, value in settings.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)


def _connected(address: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session on a Connect server, whose workers receive this package.

    Raises:
        ModuleNotFoundError: the packages of the extra ``connect`` are not installed.
        UsageError: nothing answers there, or the server is too old.
    """
    require_connect()
    refuse_no_answer(address)
    session = SparkSession.builder.remote(address).getOrCreate()
    refuse_too_old(session.version)
    atexit.register(_stop, session)
    _set(session, settings)
    with TemporaryDirectory() as folder:
        package = Path(folder) / "rebalance_core.zip"
        write_package(package)
        session.addArtifacts(str(package), pyfile=True)
    return session


def refuse_no_answer(address: str) -> None:
    """Raise `UsageError` unless a Connect server responds, since its client would otherwise try for
    ten minutes.

    A server behind a proxy is not checked.
    """
    place = urlsplit(address)
    if place.scheme != "sc" or any(name in os.environ for name in _PROXIES):
        return
    try:
        with socket.create_connection((place.hostname, place.port or CONNECT_PORT), ANSWER_SECONDS):
            return
    except (OSError, ValueError) as error:  # no such port
        raise UsageError(
            f"no Spark Connect server answers at {place.hostname}: {error}; see --master and "
            "SPARK_REMOTE"
        ) from error


def _prefer_jvm_option(option: str) -> None:
    # Spark's launcher puts this variable before the options of its configuration.
    launcher_options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    if option not in launcher_options:
        os.environ["SPARK_SUBMIT_OPTS"] = f"{option} {launcher_options}".rstrip()


def _stop(session: SparkSession) -> None:
    with suppress(Exception):  # a dead JVM has already been reported
        session.stop()


def versions(session: SparkSession) -> dict[str, str | None]:
    """Return the versions of Spark, Python and Java for the run's record."""
    java = None
    if context_of(session) is not None:
        jvm: Any = session._jvm
        java = str(jvm.System.getProperty("java.version"))
    return {"spark": session.version, "python": python_version(), "java": java}
