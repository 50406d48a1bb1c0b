#!/usr/bin/env bash
# One night: audit what was collected, keep the result, hand the metrics on, remove old nights.
#
#   nightly_audit.sh COLLECTION NIGHTS [OPTION…]
#
# COLLECTION  the folder of this night's files (docs/ingest.md)
# NIGHTS      where results are kept, a folder a night; NIGHTS/known.toml is used if it is there
# OPTION…     handed on to `rebalance audit`
#
# KEEP_DAYS=35            older nights go, if a newer one is whole
# TEXTFILES=DIR           node_exporter's textfile folder, which gets rebalance_audit.prom
# REBALANCE="rebalance"   the command, e.g. "spark-submit … jobs/audit.py" without the job's name
#
# Ends as the audit ends: 0 green, 3 findings, anything else: the audit itself failed. 5 also where
# another night is still being audited in NIGHTS.
set -euo pipefail

collection=${1:?name the collection} nights=${2:?name the folder for results}
shift 2
night=$nights/$(date -u +%Y-%m-%dT%H%M%S)
read -r -a command <<< "${REBALANCE:-rebalance audit}"
options=(--collection "$collection" --output "$night")
[[ -f $nights/known.toml ]] && options+=(--accepted "$nights/known.toml")
[[ -f $nights/latest/_run.json ]] && options+=(--previous "$nights/latest/")
mkdir -p "$nights"
exec 9> "$nights/.lock"
if ! flock --nonblock 9; then
  echo "nightly_audit: another audit is running in $nights" >&2
  exit 5
fi

code=0
"${command[@]}" "${options[@]}" "$@" 9>&- || code=$?
if [[ $code -ne 0 && $code -ne 3 ]]; then
  echo "nightly_audit: no verdict, the audit ended with $code; $nights/latest is as it was" >&2
  exit "$code"
fi

ln -sfn "$(basename "$night")" "$nights/latest"
if [[ -n ${TEXTFILES:-} ]]; then
  # Renamed into place: the exporter must not read half a file.
  cp "$night/metrics.prom" "$TEXTFILES/rebalance_audit.prom.new"
  mv "$TEXTFILES/rebalance_audit.prom.new" "$TEXTFILES/rebalance_audit.prom"
fi
find "$nights" -mindepth 1 -maxdepth 1 -type d -name '20*' -mtime "+${KEEP_DAYS:-35}" \
  ! -path "$night" -exec rm -rf {} +
exit "$code"
