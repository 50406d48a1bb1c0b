# Copies logs and stores of one machine into the collection; sourced by collect.sh.
# shellcheck shell=bash disable=SC2153 # OUTPUT and DAYS are options of collect.sh

STORES="topics.json subscriptionGroup.json consumerOffset.json"
LATER="messageRequestMode.json consumerOrderInfo.json" # from 5.0 on
# What to copy, as find writes it; quoted once more for the shell at the other end.
BROKER_LOGS="-name 'broker.log*' -o -name 'broker.*.log*' -o -name 'lock.log*' -o -name 'lock.*.log*' \
  -o -name 'filter.log*' -o -name 'filter.*.log*' -o -name pop.log" # of pop.log, which never rests, the newest file
# Its members are in broker.log; proxy.log has its starts and its mode.
PROXY_LOGS="-name 'broker.log*' -o -name 'broker.*.log*' -o -name 'proxy.log*' -o -name 'proxy.*.log*'"
NAMESRV_LOGS="-name 'namesrv.log*' -o -name 'namesrv.*.log*'"
CLIENT_LOGS="-name 'rocketmq_client.log*' -o -name 'rocketmq_client-*.log*'"
STORE_FILES="-name topics.json -o -name subscriptionGroup.json -o -name consumerOffset.json \
  -o -name topics.json.bak -o -name subscriptionGroup.json.bak -o -name consumerOffset.json.bak \
  -o -name messageRequestMode.json -o -name messageRequestMode.json.bak \
  -o -name consumerOrderInfo.json -o -name consumerOrderInfo.json.bak"
OFFSET_FILES="-name offsets.json"
HEAD_BYTES=4096 # so many first and last bytes identify what was read of a log, as in opening_evidence.py
MOST_KNOWN=60000 # characters of a command; logs beyond are copied whole

# Runs where the logs are; $1: "HEAD:SIZE:GOES_ON:PACKED:ENDING …" of those that were read before, then
# files. A file that is one of them goes to descriptor 4 from where it was read to, after its name, head,
# the bytes read before, its size, its ending, the bytes that follow and its time, and before ok or
# changed; the names of all others to standard output. A log that is renamed or cut off meanwhile stays
# open as what it was.
# shellcheck disable=SC2016 # it is expanded there; it may hold no single quote
CONTINUE='
known=$1
shift
digest() {
  if [ "$1" = 1 ]; then gzip -dc <"$open" | tail -c +"$2"; else tail -c +"$2" <"$open"; fi 2>/dev/null |
    head -c "$3" | sha256sum | head -c 64
}
ending() {
  from=$(($2 > '$HEAD_BYTES' ? $2 - '$HEAD_BYTES' : 0))
  digest "$1" $((from + 1)) $(($2 - from))
}
rest() {
  if [ "$packed" = 0 ]; then
    { tail -c +$((before + 1)) <"$open"; head -c "$length" /dev/zero; } 2>/dev/null | head -c "$length"
  elif [ "$was_packed" = 1 ]; then
    gzip -nc </dev/null
  else
    gzip -dc <"$open" | tail -c +$((before + 1)) | gzip -nc
  fi
}
go_on() {
  case $1 in *[[:cntrl:]]*) return 1 ;; *.gz) packed=1 ;; *) packed=0 ;; esac
  open=/proc/self/fd/3
  [ -e "$open" ] || open=$1
  head=$(digest "$packed" 1 '$HEAD_BYTES')
  case $known in *" $head:"*) ;; *) return 1 ;; esac
  was=${known#*" $head:"}
  IFS=: read -r before goes_on was_packed was_ending <<END
${was%% *}
END
  size=$(stat -Lc %s "$open") && time=$(stat -Lc %Y "$open") || return 1
  if [ "$packed" != "$was_packed" ] || [ "$size" != "$before" ]; then
    [ "$goes_on" = 1 ] && [ "$was_packed" = 0 ] || return 1
    [ "$packed" = 0 ] || gzip -t <"$open" 2>/dev/null || return 1
  fi
  [ "$(ending $((packed - was_packed)) "$before")" = "$was_ending" ] || return 1
  ending=$(ending 0 "$size")
  if [ "$packed" = 0 ]; then length=$((size - before)); else length=$(rest | wc -c); fi
  [ "$length" -ge 0 ] || return 1
  printf "%s\\0" "$1" "$head" "$before" "$size" "$ending" "$length" "$time" >&4
  [ "$length" = 0 ] || rest >&4
  if [ "$(digest "$packed" 1 '$HEAD_BYTES')$(ending 0 "$size")" = "$head$ending" ]; then
    printf "ok\\0" >&4
  else
    printf "changed\\0" >&4
  fi
}
for file do
  go_on "$file" 3<"$file" 2>/dev/null || printf "%s\\0" "$file"
done
'

kubectl_in() { # NAMESPACE ARGUMENT…: kubectl, there; COLLECT_KUBECTL may hold options, too
  local namespace=$1 words
  read -r -a words <<<"${COLLECT_KUBECTL:-kubectl}"
  "${words[@]}" ${namespace:+--namespace "$namespace"} "${@:2}"
}

reach() { # LOCATION SCRIPT: runs the script in folder, host:folder or pod{[namespace:]pod}:folder
  local location=$1 host="" namespace="" pod=""
  if [[ $location =~ ^pod\{(([^:{}]*):)?([^:{}]+)\}:(.*)$ ]]; then
    namespace=${BASH_REMATCH[2]} pod=${BASH_REMATCH[3]} location=${BASH_REMATCH[4]}
  elif [[ $location =~ ^([^/:]+):(.*)$ ]]; then
    host=${BASH_REMATCH[1]} location=${BASH_REMATCH[2]}
  fi
  local script="cd -- '${location//\'/\'\\\'\'}' >/dev/null || exit 9
$2"
  if [ -n "$pod" ]; then
    kubectl_in "$namespace" exec "$pod" -- sh -c "$script" </dev/null
  elif [ -z "$host" ]; then
    sh -c "$script" </dev/null
  elif [ -n "${COLLECT_SSH:-}" ]; then
    "$COLLECT_SSH" "$host" "$script" </dev/null
  else
    ssh -- "$host" "$script" </dev/null
  fi
}

fetch() { # LOCATION TARGET DEPTH FIND-EXPRESSION: the files below [host:]folder that fit; fails if not all are whole
  local target=$2 script names="-print0"
  known_logs "${target#"$OUTPUT"/}"
  # First the names, NUL-terminated, and the status of find as "/0"; then what follows of logs that were
  # read before, up to "/whole"; then the other files. So what is missing is known by name, wherever the
  # stream was cut. sort passes names on when it has all.
  [ -z "$LOGS_BEFORE" ] || names="-exec sh -c '$CONTINUE' sh '$LOGS_BEFORE' {} +"
  script="LC_ALL=C; export LC_ALL
find . -maxdepth $3 -type f \( $4 \) -print0; printf '/%s\\000' \$?
{ { find . -maxdepth $3 -type f \( $4 \) $names 2>/dev/null; ${LOGS_BEFORE:+printf '/whole\\000' >&4;} } | sort -z |
  tar -cf - --hard-dereference --no-recursion --null -T -; } 4>&1"
  mkdir -p "$target"
  STATUSES=(0 0)
  rm -f "$WORK"/names "$WORK"/found "$WORK"/members
  { reach "$1" "$script" | receive "$target" || STATUSES=("${PIPESTATUS[@]}"); } 2>"$WORK/errors"
  keep_cut_apart "$target"
  WHY=$(why_incomplete "$target")
  [ -z "$WHY" ]
}

receive() { # TARGET: names and archive of `fetch` on standard input
  local name=""
  : >"$WORK/names" || return 3
  while IFS= read -r -d '' name && [[ $name != /* ]]; do
    printf '%s\0' "$name" >>"$WORK/names" || return 3
  done
  printf '%s' "$name" >"$WORK/found" || return 3
  [ -z "$LOGS_BEFORE" ] || receive_rests "$1" || return
  # tar itself writes nothing with --to-command: no owners, modes, links, devices, and no path of its own.
  COLLECT_TARGET=$1 COLLECT_HERE=$HERE LC_ALL=C tar -xPvvf - \
    --to-command='exec bash "$COLLECT_HERE/receive.sh"' >"$WORK/members"
}

known_logs() { # PLACE, a folder of the collection: LOGS_BEFORE, its logs that an earlier run read
  local place head rest
  LOGS_BEFORE=""
  [ -n "$KNOWN" ] || return 0
  while IFS=$'\t' read -r place head rest; do
    [ "$place" != "$1" ] || LOGS_BEFORE+=" $head:${rest//$'\t'/:}"
  done <"$KNOWN"
  [ -z "$LOGS_BEFORE" ] || LOGS_BEFORE+=" "
  [ "${#LOGS_BEFORE}" -le "$MOST_KNOWN" ] || LOGS_BEFORE=${LOGS_BEFORE:0:MOST_KNOWN}
  LOGS_BEFORE=${LOGS_BEFORE% *}${LOGS_BEFORE:+ }
}

receive_rests() { # TARGET: what follows of logs that were read before, as CONTINUE writes it
  local name head begins size ending length time state
  while IFS= read -r -d '' name && [[ $name != /* ]]; do
    for state in head begins size ending length time; do
      IFS= read -r -d '' "${state?}" || return 3
    done
    [[ $name != *[[:cntrl:]]* && "$head $ending" =~ ^[0-9a-f]{64}\ [0-9a-f]{64}$ && "$begins $size $length $time" =~ ^[1-9][0-9]*( [0-9]+){3}$ ]] || return 3
    head -c "$length" | COLLECT_TARGET=$1 TAR_FILENAME=$name TAR_SIZE=$length TAR_MTIME=$time bash "$HERE/receive.sh" || return 3
    IFS= read -r -d '' state || state=""
    if [ "$state" = ok ]; then
      printf '%s\t%s\t%s\t%s\t%s\n' "${1#"$OUTPUT"/}/${name#./}" "$head" "$begins" "$size" "$ending" >>"$WORK/continued" || return 3
    else
      mv "$1/$name" "$1/$name.part" && [ "$state" = changed ] || return 3
    fi
  done
  [ "$name" = /whole ]
}

keep_cut_apart() { # TARGET: a file that shrank or failed while it was read arrives filled up with NULs
  local name
  sed -nE 's/^(.*: )?tar: (\.\/.*): (File shrank by|Read error at) .*/\2/p' "$WORK/errors" | while IFS= read -r name; do
    [ ! -f "$1/$name" ] || mv "$1/$name" "$1/$name.part"
  done
}

why_incomplete() { # TARGET: why not everything that `fetch` found was copied whole; else nothing
  local name count=0 missing=() special reasons=() shown
  if [[ $(cat "$WORK/found" 2>/dev/null) != /[0-9]* ]]; then
    reasons+=("gave nothing for ${1#"$OUTPUT"/} (the command ended with ${STATUSES[0]})")
  else
    while IFS= read -r -d '' name; do
      count=$((count + 1))
      [ -f "$1/$name" ] || missing+=("${name#./}")
    done <"$WORK/names"
    [ "$count" -gt 0 ] || reasons+=("gave nothing for ${1#"$OUTPUT"/}: no file there has such a name")
    [ "$(<"$WORK/found")" = /0 ] || reasons+=("not every folder below it could be read")
    if [ "${#missing[@]}" -gt 0 ]; then
      shown=$(printf '%s, ' "${missing[@]:0:3}")
      [ "${#missing[@]}" -le 3 ] || shown+="…, "
      reasons+=("${#missing[@]} of $count files were not copied whole (${shown%, })")
    fi
    special=$(grep -v '^-' "$WORK/members" | head -n 3 || true)
    [ -z "$special" ] || reasons+=("the archive holds what is no plain file, which was not unpacked: ${special//$'\n'/, }")
    # 1: a file grew while it was read, as a log does.
    [ "${#reasons[@]}" -gt 0 ] || [ "${STATUSES[0]}" -le 1 ] || reasons+=("the command ended with ${STATUSES[0]}")
    [ "${#reasons[@]}" -gt 0 ] || [ "${STATUSES[1]}" -eq 0 ] || reasons+=("unpacking ended with ${STATUSES[1]}")
  fi
  [ "${#reasons[@]}" -gt 0 ] || return 0
  shown=$(printf '%s; ' "${reasons[@]}")
  printf '%s' "${shown%; }"
  grep -vE 'file changed as we read it|Exiting with failure status|Child returned status|does not look like a tar' "$WORK/errors" |
    LC_ALL=C tr '\000-\011\013-\037\177' ' ' | head -n 3 | while IFS= read -r name; do printf ': %s' "$name"; done || true
}

fetch_or_fail() { # as fetch
  fetch "$@" && return
  fail "${2#"$OUTPUT"/}" "$1 $WHY"
  return 1
}

copy_place() { # what fails is named, and the rest is copied
  local kind=$1 name=$2 logs=$3 second=$4 recent="" depth=4
  [ -z "$DAYS" ] || recent=" \) -a \( -mtime -$DAYS"
  case $kind in
    broker) fetch_or_fail "$logs" "$OUTPUT/brokers/$name" $depth "$BROKER_LOGS$recent" ;;
    namesrv) fetch_or_fail "$logs" "$OUTPUT/namesrv/$name" $depth "$NAMESRV_LOGS$recent" ;;
    proxy) fetch_or_fail "$logs" "$OUTPUT/proxy/$name" $depth "$PROXY_LOGS$recent" ;;
    client)
      fetch_or_fail "$logs" "$OUTPUT/clients/$name" $depth "$CLIENT_LOGS$recent" || true
      [ "$second" = - ] || fetch_or_fail "$second" "$OUTPUT/clients/$name/rocketmq_offsets" $depth "$OFFSET_FILES"
      ;;
  esac || true
}

list_store() { # LOCATION [TARGET]: path, size and seconds of the files below config/, if a RocksDB is among them; 2: not known
  local listing="" try
  for try in 1 2; do # a file that is just being replaced makes find fail
    listing=$(reach "$1" "find config -type f -exec stat -c '%n %s %Y' {} + && echo end" 2>/dev/null) || true
    [[ $listing != *end ]] || break
  done
  [[ $listing == *end ]] || return 2
  listing=${listing%end}
  grep -Eq '^config/(topics|metadata|rdb)/CURRENT ' <<<"$listing" || return 1
  [ -z "${2:-}" ] || { printf '%s' "$listing" >"$2.part" && mv "$2.part" "$2"; } || return 2
}

copy_stores_of() {
  [ "$1" != broker ] || copy_stores "$4" "$OUTPUT/brokers/$2/config-$(date +%s%3N)"
}

copy_stores() { # the broker replaces its files every few seconds: another try, and the .bak of one that was missed
  local store files=$STORE_FILES listing form=0
  # Beside a RocksDB there may be none of them; this one is everywhere.
  ! list_store "$1" || files+=" -o -name delayOffset.json"
  if ! fetch "$1/config" "$2" 1 "$files"; then
    rm -rf "$2"
    fetch_or_fail "$1/config" "$2" 1 "$files" || return 0
  fi
  for store in $STORES $LATER; do
    if [ ! -s "$2/$store" ] && [ -s "$2/$store.bak" ]; then
      mv "$2/$store.bak" "$2/$store"
    fi
  done
  rm -f "$2"/*.bak
  # After the copy: so it tells when the copied files were written.
  listing="$(dirname "$2")/store-files-$(date +%s%3N).txt"
  list_store "$1" "$listing" || form=$?
  if [ "$form" -eq 0 ]; then
    say_rocksdb "$1" "$2" "$listing"
    return
  fi
  [ "$form" -eq 1 ] ||
    fail "${listing#"$OUTPUT"/}" "$1/config could not be listed: whether the broker keeps its configurations in RocksDB is unknown"
  for store in $STORES; do
    [ -s "$2/$store" ] || fail "${2#"$OUTPUT"/}/$store" "$1/config has no $store"
  done
}

say_rocksdb() { # LOCATION COPY LISTING: what a broker with a RocksDB does not give, and what would
  local store missing=""
  if grep -q '^config/rdb/CURRENT ' "$3"; then
    printf 'collect.sh: %s\n' "$1/config/rdb (configManagerVersion=v2) cannot be exported: its offsets are those of consumerProgress, its topics and groups those of topicStatus and exportMetadata" >&2
    [ "$ADMIN" = yes ] || fail "${2#"$OUTPUT"/}/consumerOffset.json" "$1: without the admin commands nothing tells its offsets"
    return
  fi
  for store in $STORES; do
    [ -s "$2/$store" ] || missing+="${missing:+, }$store"
  done
  [ -z "$missing" ] ||
    fail "${2#"$OUTPUT"/}" "$1/config is a RocksDB and has no $missing: run mqadmin rocksDBConfigToJson -b ADDRESS right before (brokers of 5.3.2 or newer)"
  [ "$ADMIN" = yes ] || [ -n "$missing" ] ||
    printf 'collect.sh: %s\n' "$1/config is a RocksDB: its JSON files are as old as the last mqadmin rocksDBConfigToJson" >&2
}
