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
      copy_stores "$second" "$OUTPUT/brokers/$name/config-$(date +%s%3N)"
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

copy_stores() { # the broker replaces its files every few seconds: the .bak of one that was missed
  local store
  fetch "$1/config" "$2" 1 "$STORE_FILES"
  for store in $STORES $LATER; do
    if [ ! -s "$2/$store" ] && [ -s "$2/$store.bak" ]; then
      mv "$2/$store.bak" "$2/$store"
    fi
    [ -s "$2/$store" ] || [[ $LATER == *$store* ]] || fail "$1/config has no $store (a RocksDB store cannot be copied)"
  done
  rm -f "$2"/*.bak
}
