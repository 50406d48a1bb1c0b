"""Let promtool and a Prometheus server read metrics.prom, the alert rules and the dashboard.

    test_prometheus.py [METRICS_FILE]

Without a file, the metrics of an audit and a history of one recorded night are made. Needs
`prometheus` and `promtool` on the PATH (Debian: apt-get install prometheus). Serves the file on a
free port, lets a server scrape it once a second, and sends it every query of the alert rules and
the dashboard. Exits with 1 if anything is refused, a sample is missing, or a query of the dashboard
has no result.
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
BUNDLED = TREE / "rebalance_core/bundled/prometheus"
RULES, DASHBOARD = BUNDLED / "rebalance.rules.yml", BUNDLED / "rebalance.dashboard.json"
WAIT_SECONDS = 30


class RefusedQuery(Exception):
    """The server does not understand a query."""


def serve(text: bytes) -> ThreadingHTTPServer:
    """Start a server that answers every request with the metrics."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Suppress the log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def dashboard_queries() -> list[str]:
    """Return the queries of the dashboard, of all clusters."""
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    return [text.replace("$cluster", ".*") for text in queries]


def alert_queries() -> list[str]:
    """Return the conditions of the alerts."""
    return re.findall(r"^ +expr: (.*)$", RULES.read_text("utf-8"), re.MULTILINE)


def query(port: int, expression: str) -> list[dict[str, object]]:
    """Return the result of an instant query; empty while the server does not answer."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}"
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            result: list[dict[str, object]] = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise RefusedQuery(f"{expression}: {error.read().decode()}") from error
    except OSError:
        return []
    return result


def scraped(metrics: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """Return what a Prometheus server has after scraping the file: samples by name, and results by
    query of alerts and dashboard; -1: it refuses the query.
    """
    names = sorted({line.split("{")[0] for line in metrics.decode().splitlines() if "{" in line})
    server, port = serve(metrics), free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"rule_files: ['{RULES}']\n"
            "scrape_configs:\n"
            f"  - job_name: rebalance\n    static_configs: [{{targets: ['127.0.0.1:"
            f"{server.server_port}']}}]\n"
        )
        words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
        words += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        running = subprocess.Popen(words)
        try:
            end = time.monotonic() + WAIT_SECONDS
            while not query(port, names[-1]) and time.monotonic() < end:
                time.sleep(0.5)
            samples = {name: len(query(port, name)) for name in names}
            answers = {}
            for text in (*alert_queries(), *dashboard_queries()):
                try:
                    answers[text] = len(query(port, text))
                except RefusedQuery as error:
                    print(error)
                    answers[text] = -1
            return samples, answers
        finally:
            running.terminate()
            running.wait()
            server.shutdown()


def main(path: Path) -> int:
    """Check the file and the rules; return 1 if either is refused."""
    metrics = path.read_bytes()
    checks = [
        subprocess.run(["promtool", "check", "metrics"], input=metrics, check=False).returncode,
        subprocess.run(["promtool", "check", "rules", str(RULES)], check=False).returncode,
    ]
    found, answers = scraped(metrics)
    for name, samples in found.items():
        written = sum(line.startswith(name + "{") for line in metrics.decode().splitlines())
        print(f"{name}: {samples} samples of {written}")
        checks.append(samples != written)
    selecting = set(dashboard_queries())
    for text, results in answers.items():
        print(f"{results} results of {text}")
        checks.append(results < (text in selecting and "stalled" not in text))  # none stands still
    return 1 if any(checks) else 0


def demo_metrics(folder: Path) -> Path:
    """Audit a recording, fold the one night, and return the metrics of both."""
    from rebalance_core.cli.main import main as rebalance

    collection = TREE / "tests/recordings/data/nightly/collection"
    rebalance("audit", ["--collection", str(collection), "--output", str(folder / "runs/night")])
    rebalance("history", ["--runs", str(folder / "runs"), "--output", str(folder / "history")])
    both = folder / "metrics.prom"
    texts = [(folder / name / "metrics.prom").read_text() for name in ("runs/night", "history")]
    both.write_text("".join(texts))
    return both


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(demo_metrics(Path(made))))
