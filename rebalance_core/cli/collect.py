"""The `collect` job: run the bundled script that copies files and queries the cluster, or write
initial files (`--init`).
"""

import shutil
import subprocess
from collections import Counter
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.collect_sources import NAME as SOURCES_NAME
from rebalance_core.cli.collect_sources import of_cluster, read_servers, render_sources
from rebalance_core.cli.job_options import CollectOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.terminal import DRY_RUN, ExitCode, joined
from rebalance_core.contracts.opening_state import EVIDENCE_FILES
from rebalance_core.ingest.collection_settings import SETTINGS_NAME, read_settings
from rebalance_core.ingest.redaction import redact_collection, refuse_places
from rebalance_core.model.errors import OutputExists, UsageError
from rebalance_core.model.nouns import counted
from rebalance_core.storage.place import place_of
from rebalance_core.storage.store_answers import reason_of

if TYPE_CHECKING:
    from rebalance_core.ingest.opening_evidence import OpeningEvidence

NOUNS = {"broker": "broker", "namesrv": "name server", "proxy": "proxy"}
"""Names of the kinds of servers."""
TEMPLATE = """\
# What `rebalance ingest` and `rebalance audit` need to know that no file in this folder states.

# The name of the cluster (brokerClusterName in broker.conf, mqadmin clusterList).
cluster = "{cluster}"

# The time zone in which mqadmin printed times: that of the machine it ran on.
admin_time_zone = "UTC"

# Name every server of the cluster: only an expected server can be reported missing.
# Each has a folder here: brokers/NAME/ with broker.log and config/, namesrv/NAME/ with namesrv.log.
[expected]
brokers = []        # e.g. ["broker-a", "broker-b"]
name_servers = []   # e.g. ["namesrv-1"]

# Only for logs of 4.9 and 5.0 clients, which write local time; others write GMT+8.
[time_zones]
# "clients/billing-1/*" = "America/New_York"
"""


def run(options: CollectOptions) -> JobReport:
    """Run the job and return the report for stdout. The exit code is 3 if anything is missing."""
    if options.init:
        return _init(options) if options.name_server is None else _init_sources(options)
    output = Path(options.output)
    if options.redact is None:
        return _collect(options, output)
    key = Path(options.redact)
    if options.input is not None:
        refuse_places(Path(options.input), output, key)
        if options.dry_run:
            text = joined([*DRY_RUN, f"redacts {options.input} into {output}, key {key}"])
            return JobReport(text, {"job": "collect", "dry_run": True})
        return _redacted(Path(options.input), output, key)
    refuse_places(None, output, key)
    if options.dry_run:
        return _collect(options, output)
    try:
        output.resolve().parent.mkdir(parents=True, exist_ok=True)
        staged = TemporaryDirectory(dir=output.resolve().parent, prefix=".rebalance-collect-")
    except OSError as error:
        raise UsageError(f"--output {output} cannot be written: {reason_of(error)}") from error
    with staged as folder:
        _collect(options, Path(folder))
        return _redacted(Path(folder), output, key)


def _redacted(folder: Path, output: Path, key: Path) -> JobReport:
    done = redact_collection(folder, output, key)
    failed = [asdict(part) for part in read_settings(output).failed]
    facts = {"job": "collect", "output": str(output), "key": str(key), **done, "failed": failed}
    missing = f"; missing parts are listed in its {SETTINGS_NAME}" if failed else ""
    text = joined(
        [
            f"Redacted collection in {output}{missing}: {done['files']} files, {done['clients']} "
            f"client ids and {done['hosts']} hosts renamed; {done['left_out']} files were left "
            "out because ingest does not read them",
            f"The key is {key}: store it safely and do not share it",
        ]
    )
    return JobReport(text, facts, ExitCode.DIFFERENCES if failed else ExitCode.OK)


def _collect(options: CollectOptions, output: Path) -> JobReport:
    """Run the script."""
    folder = files("rebalance_core") / "bundled" / "collect"
    with as_file(folder) as scripts, TemporaryDirectory() as own:
        known = Path(own) / "known"
        words = _words(options, scripts, output)
        if options.state is not None:
            from rebalance_core.ingest.opening_evidence import known_logs

            known.write_text(known_logs(evidence_of(options.state), options.state), "utf-8")
            words += ["--known", str(known)]
        if options.dry_run:
            text = joined([*DRY_RUN, " ".join(words)])
            return JobReport(text, {"job": "collect", "dry_run": True, "command": words})
        code = subprocess.run(words, check=False).returncode
    if code not in (0, 1):
        raise UsageError(f"collect.sh ended with exit code {code}; see its messages above")
    failed = [asdict(part) for part in read_settings(output).failed]
    facts = {"job": "collect", "output": str(output), "complete": code == 0, "failed": failed}
    missing = f"; missing parts are listed above and in {SETTINGS_NAME}" if failed else ""
    text = joined([f"Collection in {output}{missing}"])
    return JobReport(text, facts, ExitCode.OK if code == 0 else ExitCode.DIFFERENCES)


def evidence_of(state: str) -> "OpeningEvidence":
    """Return the state that an earlier run of `ingest` or `audit` left for the next one.

    Raises:
        InputRefused: the run left no state, or the state is damaged or has another version.
    """
    from rebalance_core.checks.opening_state import evidence_folder
    from rebalance_core.ingest.opening_evidence import OpeningEvidence
    from rebalance_core.process.runtime import HERE

    folder = evidence_folder(typed_place(state))
    files = HERE.reader(folder.url)(EVIDENCE_FILES.name)
    return OpeningEvidence.read(folder.url, state, files)


def _script(scripts: Path) -> list[str]:
    bash = shutil.which("bash")
    if bash is None:
        raise UsageError("collect needs bash and GNU tar, find and date; this machine has no bash")
    return [bash, str(scripts / "collect.sh")]


def _words(options: CollectOptions, scripts: Path, output: Path) -> list[str]:
    passed_on = {
        "--sources": options.sources,
        "--cluster": options.cluster,
        "--output": output,
        "--name-server": options.name_server,
        "--admin-time-zone": options.admin_time_zone,
        "--threads": options.threads,
        "--days": options.days,
    }
    words = _script(scripts)
    for name, value in passed_on.items():
        words += [] if value is None else [name, str(value)]
    return [*words, *(["--no-admin"] if options.no_admin else [])]


def _init(options: CollectOptions) -> JobReport:
    """Write a `collection.toml` with the important settings to fill in."""
    if any(character in options.cluster for character in '"\\\n'):
        raise UsageError(f"--cluster {options.cluster!r} is not a cluster name")
    target = Path(options.output) / SETTINGS_NAME
    facts = {"job": "collect", "output": str(target)}
    if options.dry_run:
        return JobReport(joined([*DRY_RUN, f"writes {target}"]), facts | {"dry_run": True})
    _write(target, TEMPLATE.format(cluster=options.cluster), overwrite=options.overwrite)
    return JobReport(
        joined(
            [
                f"{target}: name the cluster's servers in it, put logs, stores and dumps beside it "
                "(docs/ingest.md), then",
                f"  rebalance audit --collection {target.parent} --output audit",
            ]
        ),
        facts,
    )


def _init_sources(options: CollectOptions) -> JobReport:
    """Query the cluster for its servers, and write the file that names them."""
    target, address = Path(options.output) / SOURCES_NAME, options.name_server or ""
    facts: dict[str, Any] = {"job": "collect", "output": str(target)}
    if options.dry_run:
        text = joined([*DRY_RUN, f"asks {address} and writes {target}"])
        return JobReport(text, facts | {"dry_run": True})
    _refuse_existing(target, overwrite=options.overwrite)
    with (
        as_file(files("rebalance_core") / "bundled" / "collect") as scripts,
        TemporaryDirectory() as own,
    ):
        rows = Path(own) / "servers"
        words = [*_script(scripts), "--servers", str(rows), "--name-server", address]
        code = subprocess.run(words, check=False).returncode
        if code != 0:
            raise UsageError(f"--name-server {address} was not queried; see the messages above")
        known = read_servers(rows.read_text("utf-8"))
    servers = of_cluster(known, options.cluster, address)
    text, incomplete = render_sources(servers, options.cluster, address)
    _write(target, text, overwrite=options.overwrite)
    kinds = Counter(server.kind for server in servers)
    facts |= {"cluster": options.cluster, "servers": dict(kinds), "incomplete": incomplete}
    counts = ", ".join(counted(kinds[kind], noun) for kind, noun in NOUNS.items() if kinds[kind])
    left = f"; complete {counted(incomplete, 'line')} by hand" if incomplete else ""
    lines = [
        f"{target}: {counts} of {options.cluster}{left}",
        "Check its log folders, which no server reports, and add the clients; then",
        f"  rebalance collect --sources {target} --cluster {options.cluster} "
        f"--name-server {address} --output collected",
    ]
    return JobReport(joined(lines), facts)


def _refuse_existing(target: Path, *, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise OutputExists(
            f"{target} exists already; edit it, name another --output, or use --overwrite"
        )


def _write(target: Path, text: str, *, overwrite: bool) -> None:
    """Write a file for operators to edit."""
    _refuse_existing(target, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place_of(target).write_text(text)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {reason_of(error)}") from error
