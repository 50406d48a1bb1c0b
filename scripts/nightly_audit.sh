#!/usr/bin/env bash
# The nightly job: collect, audit the collection, keep the result, publish the metrics, remove old results.
#
#   nightly_audit.sh COLLECTION RESULTS [OPTION…]
#
# Each finding is compared with the last run that looked at its group: a result carries what it could
# not look at itself (not_looked_at.jsonl), so the last one is all that --previous needs.
#
# COLLECTION  the folder of the collected files (docs/ingest.md); with COLLECT the folder that gets a
#             fresh one each night, named by its time
# RESULTS     where results are kept, one folder per run; RESULTS/known.toml is used if it exists
# OPTION…     passed to `rebalance audit`
#
# COLLECT="rebalance collect --sources … --cluster …"  collects first, into COLLECTION/<time>; what it
#                         could not collect is in that folder's collection.toml, and the audit names it
# KEEP_COLLECTIONS=7      days after which what COLLECT collected is removed
# KEEP_DAYS=35            older results are removed once a newer one is complete
# TEXTFILES=DIR           node_exporter's textfile folder, which gets rebalance_audit.prom
# HISTORY=DIR             where the kept results are folded into history, last (docs/operations.md);
#                         its metrics go to TEXTFILES as rebalance_history.prom
# FOLD="rebalance history"  the command that folds
# REBALANCE="rebalance"   the command, e.g. "spark-submit … jobs/audit.py" without the job's name
#
# Exit codes are the audit's: 0 passed, 3 findings, anything else: no verdict, because the audit failed
# or nothing was collected (the collector's code). 5 also where another run is still working in RESULTS.
# Later failures are reported on stderr and do not change the verdict.
set -euo pipefail

if (( $# < 2 )); then
  echo "usage: nightly_audit.sh COLLECTION RESULTS [OPTION…]" >&2
  exit 2
fi
collection=$1 results=$2 time=$(date -u +%Y-%m-%dT%H%M%S)
shift 2
result=$results/$time
read -r -a command <<< "${REBALANCE:-rebalance audit}"
mkdir -p "$results" || exit 2
exec 9> "$results/.lock" || exit 2
if ! flock --nonblock 9; then
  echo "nightly_audit: another audit is running in $results" >&2
  exit 5
fi

code=0
if [[ -n ${COLLECT:-} ]]; then
  collections=$collection collection=$collection/$time
  read -r -a collect <<< "$COLLECT"
  "${collect[@]}" --output "$collection" 9>&- || code=$?
  # 3: something is missing, which the audit names.
  if [[ $code -ne 0 && $code -ne 3 ]]; then
    echo "nightly_audit: no verdict, nothing was collected: ${collect[0]} ended with $code" >&2
    exit "$code"
  fi
fi
options=(--collection "$collection" --output "$result")
[[ -f $results/known.toml ]] && options+=(--accepted "$results/known.toml")
before=()
[[ -f $results/latest/_run.json ]] && before=(--previous "$results/latest/")

audit() {
  code=0
  "${command[@]}" "${options[@]}" "$@" 9>&- || code=$?
}

audit "${before[@]}" "$@"
if [[ $code -eq 4 && ${#before[@]} -gt 0 ]]; then
  # A damaged result of last night must not take every later night with it.
  echo "nightly_audit: refused; once more without comparing with $results/latest" >&2
  audit "$@"
fi
if [[ $code -ne 0 && $code -ne 3 ]]; then
  echo "nightly_audit: no verdict, the audit ended with $code; $results/latest is as it was" >&2
  exit "$code"
fi

# The night has its verdict. Nothing below takes it away.
set +eu
trap 'exit "$code"' HUP INT PIPE TERM

failed() {
  echo "nightly_audit: $1; the verdict stands" >&2
}

publish() { # FILE NAME: renamed into place, as the exporter must not read half a file
  [[ -n ${TEXTFILES:-} ]] || return 0
  cp "$1" "$TEXTFILES/$2.new" && mv "$TEXTFILES/$2.new" "$TEXTFILES/$2" && return 0
  rm -f "$TEXTFILES/$2.new"
  failed "$TEXTFILES/$2 could not be written"
}

remove_old() { # FOLDER DAYS KEPT: folders that this script named
  find "$1" -mindepth 1 -maxdepth 1 -type d -mtime "+$2" ! -path "$3" \
    -name '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]' -exec rm -rf {} + ||
    failed "not all old folders of $1 were removed"
}

ln -sfn "$(basename "$result")" "$results/latest" || failed "$results/latest could not be moved"
publish "$result/metrics.prom" rebalance_audit.prom
remove_old "$results" "${KEEP_DAYS:-35}" "$result"
[[ -z ${COLLECT:-} ]] || remove_old "$collections" "${KEEP_COLLECTIONS:-7}" "$collection"

if [[ -n ${HISTORY:-} ]]; then
  read -r -a fold <<< "${FOLD:-rebalance history}"
  owners=()
  [[ -f $results/owners.toml ]] && owners=(--owners "$results/owners.toml")
  if "${fold[@]}" --runs "$results" --output "$HISTORY" --overwrite "${owners[@]}" 9>&-; then
    publish "$HISTORY/metrics.prom" rebalance_history.prom
  else
    failed "$HISTORY is as it was, the history ended with $?"
  fi
fi
exit "$code"
