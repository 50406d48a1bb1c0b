#!/usr/bin/env bash
# The nightly job: audit the collection, keep the result, publish the metrics, remove old results.
#
#   nightly_audit.sh COLLECTION RESULTS [OPTION…]
#
# Each finding is compared with the last run that looked at its group: a result carries what it could
# not look at itself (not_looked_at.jsonl), so the last one is all that --previous needs.
#
# COLLECTION  the folder of the collected files (docs/ingest.md)
# RESULTS     where results are kept, one folder per run; RESULTS/known.toml is used if it exists
# OPTION…     passed to `rebalance audit`
#
# KEEP_DAYS=35            older results are removed once a newer one is complete
# TEXTFILES=DIR           node_exporter's textfile folder, which gets rebalance_audit.prom
# HISTORY=DIR             where the kept results are folded into history, last (docs/operations.md);
#                         its metrics go to TEXTFILES as rebalance_history.prom
# FOLD="rebalance history"  the command that folds
# REBALANCE="rebalance"   the command, e.g. "spark-submit … jobs/audit.py" without the job's name
#
# Exit codes are the audit's: 0 passed, 3 findings, anything else: the audit itself failed. 5 also
# where another run is still working in RESULTS.
set -euo pipefail

if (( $# < 2 )); then
  echo "usage: nightly_audit.sh COLLECTION RESULTS [OPTION…]" >&2
  exit 2
fi
collection=$1 results=$2
shift 2
result=$results/$(date -u +%Y-%m-%dT%H%M%S)
read -r -a command <<< "${REBALANCE:-rebalance audit}"
options=(--collection "$collection" --output "$result")
[[ -f $results/known.toml ]] && options+=(--accepted "$results/known.toml")
[[ -f $results/latest/_run.json ]] && options+=(--previous "$results/latest/")
mkdir -p "$results"
exec 9> "$results/.lock"
if ! flock --nonblock 9; then
  echo "nightly_audit: another audit is running in $results" >&2
  exit 5
fi

code=0
"${command[@]}" "${options[@]}" "$@" 9>&- || code=$?
if [[ $code -ne 0 && $code -ne 3 ]]; then
  echo "nightly_audit: no verdict, the audit ended with $code; $results/latest is as it was" >&2
  exit "$code"
fi

ln -sfn "$(basename "$result")" "$results/latest"
if [[ -n ${TEXTFILES:-} ]]; then
  # Renamed into place: the exporter must not read half a file.
  cp "$result/metrics.prom" "$TEXTFILES/rebalance_audit.prom.new"
  mv "$TEXTFILES/rebalance_audit.prom.new" "$TEXTFILES/rebalance_audit.prom"
fi
find "$results" -mindepth 1 -maxdepth 1 -type d -name '20*' -mtime "+${KEEP_DAYS:-35}" \
  ! -path "$result" -exec rm -rf {} +

if [[ -n ${HISTORY:-} ]]; then
  # The night has its verdict; a history that fails takes nothing from it.
  read -r -a fold <<< "${FOLD:-rebalance history}"
  owners=()
  [[ -f $results/owners.toml ]] && owners=(--owners "$results/owners.toml")
  if "${fold[@]}" --runs "$results" --output "$HISTORY" --overwrite "${owners[@]}" 9>&-; then
    if [[ -n ${TEXTFILES:-} ]]; then
      cp "$HISTORY/metrics.prom" "$TEXTFILES/rebalance_history.prom.new"
      mv "$TEXTFILES/rebalance_history.prom.new" "$TEXTFILES/rebalance_history.prom"
    fi
  else
    echo "nightly_audit: $HISTORY is as it was, the history ended with $?" >&2
  fi
fi
exit "$code"
