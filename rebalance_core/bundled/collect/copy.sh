# Copies logs and stores of one machine into the collection; sourced by collect.sh.
# shellcheck shell=bash disable=SC2153 # OUTPUT and DAYS are options of collect.sh

STORES="topics.json subscriptionGroup.json consumerOffset.json"
LATER="messageRequestMode.json consumerOrderInfo.json" # from 5.0 on
# What to copy, as find writes it; quoted once more for the shell at the other end.
BROKER_LOGS="-name broker.log -o -name 'broker.*.log*' -o -name lock.log -o -name 'lock.*.log*' \
  -o -name filter.log -o -name 'filter.*.log*'"
# Its members are in broker.log; proxy.log has its starts and its mode.
PROXY_LOGS="-name broker.log -o -name 'broker.*.log*' -o -name proxy.log -o -name 'proxy.*.log*'"
NAMESRV_LOGS="-name namesrv.log -o -name 'namesrv.*.log*'"
CLIENT_LOGS="-name rocketmq_client.log -o -name 'rocketmq_client.log.*' -o -name 'rocketmq_client-*.log*'"
STORE_FILES="-name topics.json -o -name subscriptionGroup.json -o -name consumerOffset.json \
  -o -name topics.json.bak -o -name subscriptionGroup.json.bak -o -name consumerOffset.json.bak \
  -o -name messageRequestMode.json -o -name messageRequestMode.json.bak \
  -o -name consumerOrderInfo.json -o -name consumerOrderInfo.json.bak"
OFFSET_FILES="-name offsets.json"

fetch() { # LOCATION TARGET DEPTH FIND-EXPRESSION: the files below [host:]folder that fit
  local location=$1 target=$2 depth=$3 expression=$4 host="" status=0
  if [[ $location =~ ^([^/:]+):(.*)$ ]]; then
    host=${BASH_REMATCH[1]} location=${BASH_REMATCH[2]}
  fi
  local script
  script="cd '${location//\'/\'\\\'\'}' || exit 9
find . -maxdepth $depth -type f \( $expression \) -print0 | tar -cf - --null -T -"
  mkdir -p "$target"
  if [ -n "$host" ]; then
    "${COLLECT_SSH:-ssh}" "$host" "$script" </dev/null | tar -xf - -C "$target" 2>/dev/null || status=$?
  else
    sh -c "$script" | tar -xf - -C "$target" 2>/dev/null || status=$?
  fi
  # tar says 1 when a file grew while it was read, as a log does.
  if [ "$status" -gt 1 ] || [ -z "$(find "$target" -type f -print -quit)" ]; then
    fail "$1 gave nothing for ${target#"$OUTPUT"/}"
  fi
}

copy_place() {
  local kind=$1 name=$2 logs=$3 second=$4 recent="" depth=4
  [ -z "$DAYS" ] || recent=" \) -a \( -mtime -$DAYS"
  case $kind in
    broker)
      fetch "$logs" "$OUTPUT/brokers/$name" $depth "$BROKER_LOGS$recent"
      ;;
    namesrv) fetch "$logs" "$OUTPUT/namesrv/$name" $depth "$NAMESRV_LOGS$recent" ;;
    proxy) fetch "$logs" "$OUTPUT/proxy/$name" $depth "$PROXY_LOGS$recent" ;;
    client)
      fetch "$logs" "$OUTPUT/clients/$name" $depth "$CLIENT_LOGS$recent"
      [ "$second" = - ] || fetch "$second" "$OUTPUT/clients/$name/rocketmq_offsets" $depth "$OFFSET_FILES"
      ;;
  esac
}

list_store() { # LOCATION [TARGET]: path, size and seconds of the files below config/, if a RocksDB is among them
  local location=$1 host="" listing
  if [[ $location =~ ^([^/:]+):(.*)$ ]]; then
    host=${BASH_REMATCH[1]} location=${BASH_REMATCH[2]}
  fi
  local script="cd '${location//\'/\'\\\'\'}' && find config -type f -exec stat -c '%n %s %Y' {} +"
  if [ -n "$host" ]; then
    listing=$("${COLLECT_SSH:-ssh}" "$host" "$script" </dev/null 2>/dev/null) || true
  else
    listing=$(sh -c "$script" 2>/dev/null) || true
  fi
  grep -Eq '^config/(topics|metadata|rdb)/CURRENT ' <<<"$listing" || return 1
  [ -z "${2:-}" ] || printf '%s\n' "$listing" >"$2"
}

copy_stores_of() {
  [ "$1" != broker ] || copy_stores "$4" "$OUTPUT/brokers/$2/config-$(date +%s%3N)"
}

copy_stores() { # the broker replaces its files every few seconds: the .bak of one that was missed
  local store files=$STORE_FILES listing
  # Beside a RocksDB there may be none of them; this one is everywhere.
  ! list_store "$1" || files+=" -o -name delayOffset.json"
  fetch "$1/config" "$2" 1 "$files"
  for store in $STORES $LATER; do
    if [ ! -s "$2/$store" ] && [ -s "$2/$store.bak" ]; then
      mv "$2/$store.bak" "$2/$store"
    fi
  done
  rm -f "$2"/*.bak
  # After the copy: so it tells when the copied files were written.
  listing="$(dirname "$2")/store-files-$(date +%s%3N).txt"
  if list_store "$1" "$listing"; then
    say_rocksdb "$1" "$2" "$listing"
    return
  fi
  for store in $STORES; do
    [ -s "$2/$store" ] || fail "$1/config has no $store"
  done
}

say_rocksdb() { # LOCATION COPY LISTING: what a broker with a RocksDB does not give, and what would
  local store missing=""
  if grep -q '^config/rdb/CURRENT ' "$3"; then
    printf 'collect.sh: %s\n' "$1/config/rdb (configManagerVersion=v2) cannot be exported: its offsets are those of consumerProgress, its topics and groups those of topicStatus and exportMetadata" >&2
    [ "$ADMIN" = yes ] || fail "$1: without the admin commands nothing tells its offsets"
    return
  fi
  for store in $STORES; do
    [ -s "$2/$store" ] || missing+="${missing:+, }$store"
  done
  [ -z "$missing" ] ||
    fail "$1/config is a RocksDB and has no $missing: run mqadmin rocksDBConfigToJson -b ADDRESS right before (brokers of 5.3.2 or newer)"
  [ "$ADMIN" = yes ] || [ -n "$missing" ] ||
    printf 'collect.sh: %s\n' "$1/config is a RocksDB: its JSON files are as old as the last mqadmin rocksDBConfigToJson" >&2
}
