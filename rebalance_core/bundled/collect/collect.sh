#!/usr/bin/env bash
# Collects what `rebalance ingest --collection DIR` reads: logs and stores of the machines named in
# SOURCES, and what the admin commands say of every group and topic. README.md beside it explains.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
FAILED=() # what was not collected, and why, by turns
# shellcheck source=copy.sh
source "$HERE/copy.sh"

usage() {
  cat <<'TEXT'
usage: collect.sh --sources FILE --cluster NAME --output DIR [options]

  --sources FILE          machines and folders, one a line (README.md); without it the cluster is
                          asked and nothing is copied:
                          broker|namesrv NAME LOGS [STORE]   client NAME LOGS [OFFSETS [ZONE]]
                          proxy NAME LOGS [HOST:PORT]        (of its remoting port)
                          * for NAME: all of pods{[NAMESPACE:]LABELS}:FOLDER or hosts{FILE}:FOLDER
  --cluster NAME          the RocketMQ cluster
  --output DIR            a folder that does not exist yet, or is empty
  --name-server ADDRESSES name servers for the admin commands (default: $NAMESRV_ADDR)
  --admin-time-zone ZONE  zone that the admin commands print times in (default: this machine's)
  --threads N             questions to the cluster at one time (default: 4)
  --days N                only logs written in the last N days (default: all)
  --no-admin              copy files only
  --known FILE            a log in it is copied from where an earlier run ended: that run's folder in the first
                          line, then, tabs between, a folder of the collection, the SHA-256 of the
                          first 4,096 bytes, bytes read, 1 if lines can follow, 1 if it was packed
  --servers FILE          only write the servers that the name servers know (Servers.java)

environment: ROCKETMQ_HOME (its lib/ asks the cluster), JAVA_HOME (of Java 8 or newer; default: java on
  PATH), COLLECT_SSH (default: ssh), COLLECT_KUBECTL (default: kubectl), and one of ROCKETMQ_CREDENTIALS (a file like conf/tools.yml) or
  ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY
exit codes: 0 complete, 1 something is missing and was named (collection.toml lists it under [[failed]]),
  2 usage, or the output cannot be written
TEXT
}

refuse() {
  printf 'collect.sh: %s\n' "$@" >&2
  exit 2
}

fail() { # WHAT WHY: a path in the collection, a broker or a question; and a sentence
  printf 'collect.sh: %s\n' "$2" >&2
  FAILED+=("$1" "$2")
}

parse_options() {
  SOURCES="" CLUSTER="" OUTPUT="" NAMESRV=${NAMESRV_ADDR:-} ZONE="" THREADS=4 DAYS="" ADMIN=yes SERVERS="" KNOWN=""
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage && exit 0 ;;
      --no-admin) ADMIN=no && shift && continue ;;
      --sources | --cluster | --output | --name-server | --admin-time-zone | --threads | --days | --servers | --known) ;;
      *) refuse "unknown option $1; collect.sh --help lists them" ;;
    esac
    [ $# -gt 1 ] || refuse "$1 needs a value"
    case $1 in
      --sources) SOURCES=$2 ;;
      --cluster) CLUSTER=$2 ;;
      --output) OUTPUT=$2 ;;
      --name-server) NAMESRV=$2 ;;
      --admin-time-zone) ZONE=$2 ;;
      --threads) THREADS=$2 ;;
      --days) DAYS=$2 ;;
      --servers) SERVERS=$2 ;;
      --known) KNOWN=$2 ;;
    esac
    shift 2
  done
}

check_options() {
  [ -n "$CLUSTER" ] && [ -n "$OUTPUT" ] ||
    refuse "--cluster and --output are needed; collect.sh --help says what they are"
  [ -n "$SOURCES" ] || [ "$ADMIN" = yes ] || refuse "--no-admin needs --sources: else there is nothing to do"
  [ -z "$SOURCES" ] || { [ -f "$SOURCES" ] && [ -r "$SOURCES" ]; } ||
    refuse "--sources $SOURCES cannot be read: it is no readable plain file"
  [ -z "$KNOWN" ] || [ -r "$KNOWN" ] || refuse "--known $KNOWN cannot be read"
  plain_name "$CLUSTER" || refuse "--cluster '$CLUSTER' is not a cluster name"
  [[ $THREADS =~ ^[1-9][0-9]?$ ]] || refuse "--threads '$THREADS' is not a number from 1 to 99"
  [[ $DAYS =~ ^[0-9]*$ ]] || refuse "--days '$DAYS' is not a number of days"
  [ ! -e "$OUTPUT" ] || [ -z "$(ls -A "$OUTPUT")" ] || refuse "--output $OUTPUT is not empty"
  ZONE=${ZONE:-$(zone_here)}
  [[ $ZONE =~ ^[A-Za-z0-9_+/-]+$ ]] || refuse "--admin-time-zone '$ZONE' is no name of a time zone"
  [ "$ADMIN" = no ] || check_admin
}

check_admin() {
  [ -n "$NAMESRV" ] || refuse "--name-server or NAMESRV_ADDR is needed (or --no-admin)"
  compgen -G "${ROCKETMQ_HOME:-/none}/lib/rocketmq-tools-*.jar" >/dev/null ||
    refuse "ROCKETMQ_HOME '${ROCKETMQ_HOME:-}' has no lib/rocketmq-tools-*.jar"
  local jars=("$ROCKETMQ_HOME"/lib/rocketmq-tools-*.jar)
  VERSION=${jars[0]##*/rocketmq-tools-}
  [[ ! $VERSION =~ ^([0-3]\.|4\.[0-8]\.|4\.9\.[0-3]($|[^0-9])) ]] ||
    refuse "${jars[0]} lacks questions that are asked; the lib/ of any release from 4.9.4 on asks older brokers, too"
  BIN=${JAVA_HOME:+$JAVA_HOME/bin/}
  command -v "${BIN}java" >/dev/null || refuse "'${BIN}java' is no Java; set JAVA_HOME"
}

plain_name() { # a part of a path and of a TOML text; .part marks what is not whole
  [[ $1 =~ ^[^/\"\\[:cntrl:]]+$ ]] && [ "$1" != . ] && [ "$1" != .. ] && [[ $1 != *.part ]]
}

zone_here() {
  local zone=${TZ:-}
  [ -n "$zone" ] || zone=$(readlink /etc/localtime | sed -n 's#.*/zoneinfo/##p') || true
  [ -n "$zone" ] || zone=$(cat /etc/timezone 2>/dev/null) || true
  zone=${zone#:}
  [ "$zone" != Etc/UTC ] || zone=UTC
  printf '%s' "${zone:-UTC}"
}

read_sources() { # lines to the array PLACES; every mistake is named before anything is copied
  PLACES=() MISTAKES=()
  [ -n "$SOURCES" ] || return 0
  local line=0 kind name logs store zone extra place
  local -A SEEN=()
  while read -r kind name logs store zone extra || [ -n "$kind" ]; do
    line=$((line + 1))
    case $kind in
      "" | \#*) continue ;;
      broker | namesrv | client | proxy) ;;
      *) mistake "'$kind' is not broker, namesrv, client or proxy" && continue ;;
    esac
    [ -n "$logs" ] || mistake "a $kind needs a name and a folder of logs"
    [ "$kind" != broker ] || [ -n "$store" ] || mistake "a broker needs a store"
    [ "$kind" != proxy ] || [[ ${store:--} =~ ^(-|[^/:]+:[0-9]+)$ ]] ||
      mistake "'$store' is not host:port of a proxy's remoting port"
    [ -z "$extra" ] || mistake "too many words: $extra"
    plain_name "${name:-/}" || mistake "'${name:-}' is no name"
    for place in "$logs" "$store"; do # ssh and kubectl would take it for an option
      [[ ! $place =~ ^-[^/:]*: ]] || mistake "'${place%%:*}' is no host: it begins with -"
    done
    if [ "$name" = '*' ]; then
      add_each "$kind" "$logs" "${store:--}" "${zone:--}"
    else
      add_place "$kind" "$name" "$logs" "${store:--}" "${zone:--}"
    fi
  done <"$SOURCES"
  [ "${#MISTAKES[@]}" -eq 0 ] || refuse "${MISTAKES[@]}"
  [ "${#PLACES[@]}" -gt 0 ] || [ "${#FAILED[@]}" -gt 0 ] || refuse "$SOURCES names no machine"
}

mistake() {
  MISTAKES+=("$SOURCES:$line: $1")
}

add_place() { # KIND NAME LOGS STORE ZONE
  local key="$1/${2,,}" # many file systems take names for one that differ by case alone
  [ "${SEEN[$key]:-$2}" = "$2" ] ||
    mistake "$1 $2 and ${SEEN[$key]} differ by case alone: they may be one folder"
  [ "${SEEN[$key]:-}" != "$2" ] || mistake "$1 $2 is there twice"
  SEEN[$key]=$2
  PLACES+=("$*")
}

add_each() { # KIND LOGS STORE ZONE: a place for each pod or host that LOGS chooses, named after it
  local kind=$1 logs=$2 store=$3 chosen machine name address why folder second
  if [[ ! $logs =~ ^((pods|hosts)\{[^{}]+\}):(.+)$ ]]; then
    mistake "the name * goes with pods{LABELS}:FOLDER or hosts{FILE}:FOLDER"
    return
  fi
  chosen=${BASH_REMATCH[1]} folder=${BASH_REMATCH[3]}
  [[ $store != *\{* || $store == "$chosen":* ]] || mistake "logs and store are of other machines: '$logs', '$store'"
  make_work
  if ! "${BASH_REMATCH[2]}_of" "${chosen:${#BASH_REMATCH[2]}}" >"$WORK/machines" 2>"$WORK/errors"; then
    why=$(head -n 3 "$WORK/errors" | tr '\n' ' ')
    fail "$kind $chosen" "$chosen cannot be listed: ${why:-no reason is given}"
    return
  fi
  [ -s "$WORK/machines" ] || fail "$kind $chosen" "$chosen chooses no machine"
  while read -r name machine address _; do
    if ! plain_name "$name" || [[ $name == -* || $name == *[:{}]* ]]; then
      mistake "'$name' of $chosen is no name"
      continue
    fi
    second=${store/#"$chosen":/"$machine":}
    add_place "$kind" "$name" "$machine:$folder" "${second/#\*:/"$address":}" "$4"
  done <"$WORK/machines"
}

pods_of() { # {[NAMESPACE:]LABELS}: a line for each pod that runs: its name, how places name it, its address
  local labels=${1:1:-1} namespace=""
  [[ $labels != *:* ]] || namespace=${labels%%:*} labels=${labels#*:}
  kubectl_in "$namespace" get pods --selector "$labels" --field-selector status.phase=Running \
    -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.status.podIP}{"\n"}{end}' </dev/null |
    while read -r name address; do printf '%s pod{%s:%s} %s\n' "$name" "$namespace" "$name" "$address"; done
}

hosts_of() { # {FILE}: a line for each host in it; the file lies beside SOURCES, if its path is not absolute
  local file=${1:1:-1} host
  [[ $file == /* ]] || file=$(dirname -- "$SOURCES")/$file
  while read -r host _ || [ -n "$host" ]; do
    [[ -z $host || $host == \#* ]] || printf '%s %s %s\n' "$host" "$host" "${host##*@}"
  done <"$file"
}

any_rocksdb() { # yes if a broker keeps its configurations in a RocksDB
  local place kind store
  for place in "${PLACES[@]}"; do
    read -r kind _ _ store _ <<<"$place"
    if [ "$kind" = broker ] && list_store "$store"; then
      printf yes && return
    fi
  done
  printf no
}

in_java() { # CLASS ARGUMENT…: a program of this folder, as compiled for the version of RocketMQ's lib/
  local form=5.1 # as build_collector.py names them
  case $VERSION in 4.*) form=4.9 ;; 5.0.*) form=5.0 ;; esac
  NAMESRV_ADDR=$NAMESRV "${BIN}java" -Xmx1g -Duser.timezone="$ZONE" -Drocketmq.client.logRoot="$WORK" \
    -Drocketmq.log.root="$WORK" -cp "$HERE/classes/$form:$ROCKETMQ_HOME/conf:$ROCKETMQ_HOME/lib/*" "$@"
}

ask_cluster() {
  local place kind name address what why proxies=() status=0
  for place in "${PLACES[@]}"; do
    read -r kind name _ address _ <<<"$place"
    [ "$kind" != proxy ] || [ "$address" = - ] || proxies+=("$name=$address")
  done
  mkdir -p "$OUTPUT/mqadmin" "$WORK/report"
  COLLECT_EXPORT=$(any_rocksdb) COLLECT_REPORT=$WORK/report in_java Collect \
    "$OUTPUT/mqadmin" "$CLUSTER" "$THREADS" "${proxies[@]}" >"$WORK/stdout" || status=$?
  if [ "$status" -eq 2 ]; then
    rmdir "$OUTPUT/mqadmin" "$OUTPUT" 2>/dev/null || true
    refuse "nothing is collected of cluster $CLUSTER"
  fi
  [ "$status" -eq 0 ] || grep -qs $'^mqadmin\t' "$WORK/report/failed" || fail mqadmin "not every question to the cluster was answered"
  [ ! -e "$WORK/report/failed" ] || while IFS=$'\t' read -r what why; do
    FAILED+=("$what" "$why") # the program named it already
  done <"$WORK/report/failed"
}

expect_listed() { # brokers of the sources that the name server does not list
  local place kind name store listed
  [ -e "$WORK/report/brokers" ] || return 0
  for place in "${PLACES[@]}"; do
    read -r kind name _ <<<"$place"
    [ "$kind" = broker ] && ! grep -Fxq -- "$name" "$WORK/report/brokers" || continue
    # A slave may be called anything: its topics.json has the topic that every broker names after itself.
    while IFS= read -r listed; do
      for store in "$OUTPUT/brokers/$name"/config-*/topics.json; do
        [ ! -f "$store" ] || ! grep -Fq "\"$listed\"" "$store" || continue 3
      done
    done <"$WORK/report/brokers"
    fail "$name" "broker $name is expected, but the name server lists no such broker in cluster $CLUSTER: it was not asked anything"
  done
}

names_of() { # the names of all places of one kind, as a TOML list
  local place kind name list=""
  for place in "${PLACES[@]}"; do
    read -r kind name _ <<<"$place"
    [ "$kind" != "$1" ] || list+="${list:+, }\"$name\""
  done
  printf '[%s]' "$list"
}

toml_text() { # a TOML string of any bytes
  local text=${1//\\/\\\\}
  text=$(printf '%s' "${text//\"/\\\"}" | LC_ALL=C tr '\000-\037\177' ' ')
  ! command -v iconv >/dev/null || text=$(printf '%s' "$text" | iconv -c -f UTF-8 -t UTF-8) || true
  printf '"%s"' "$text"
}

write_settings() { # last: a folder without collection.toml is no collection
  local place kind name zone at head begins size ending
  {
    printf 'cluster = "%s"\nadmin_time_zone = "%s"\n' "$CLUSTER" "$ZONE"
    [ ! -e "$WORK/continued" ] || printf 'continues = %s\n' "$(toml_text "$(head -n 1 "$KNOWN")")"
    printf '\n[time_zones]\n'
    for place in "${PLACES[@]}"; do
      read -r kind name _ _ zone <<<"$place"
      [ "$kind" != client ] || [ "$zone" = - ] || printf '"clients/%s/*" = "%s"\n' "$name" "$zone"
    done
    printf '\n[expected]\nbrokers = %s\nname_servers = %s\n' "$(names_of broker)" "$(names_of namesrv)"
    [ "$(names_of proxy)" = "[]" ] || printf 'proxies = %s\n' "$(names_of proxy)"
    for ((at = 0; at < ${#FAILED[@]}; at += 2)); do
      printf '\n[[failed]]\nwhat = %s\nwhy = %s\n' "$(toml_text "${FAILED[at]}")" "$(toml_text "${FAILED[at + 1]}")"
    done
    [ ! -e "$WORK/continued" ] || while IFS=$'\t' read -r name head begins size ending; do
      printf '\n[[continued]]\nlog = %s\nhead = "%s"\nbegins_at = %s\nsize = %s\nending = "%s"\n' "$(toml_text "$name")" "$head" "$begins" "$size" "$ending"
    done <"$WORK/continued"
  } >"$WORK/collection.toml" && cp "$WORK/collection.toml" "$OUTPUT/collection.toml.part" &&
    mv "$OUTPUT/collection.toml.part" "$OUTPUT/collection.toml" ||
    refuse "$OUTPUT/collection.toml cannot be written: what was collected so far is no collection"
}

make_work() {
  [ -z "${WORK:-}" ] || return 0
  WORK=$(mktemp -d) || refuse "no folder for temporary files can be made; set TMPDIR"
  trap finish EXIT
}

finish() { # what ended before collection.toml was written is no collection
  local code=$?
  rm -rf "$WORK"
  [ "$code" -ne 1 ] || [ -n "$SERVERS" ] || [ -e "$OUTPUT/collection.toml" ] || refuse "ended early; what is in $OUTPUT is no collection"
}

main() {
  parse_options "$@"
  if [ -n "$SERVERS" ]; then
    check_admin
    make_work
    ZONE=$(zone_here)
    in_java Servers "$SERVERS" >"$WORK/stdout"
    exit
  fi
  check_options
  read_sources
  mkdir -p -- "$OUTPUT" || refuse "--output $OUTPUT cannot be made"
  OUTPUT=$(cd -- "$OUTPUT" >/dev/null && pwd)
  make_work
  # The logs last: they then tell of everything that the answers and stores show.
  [ "$ADMIN" = no ] || ask_cluster
  local place words
  # What brokers were just asked to export is copied before anything that takes long.
  for place in "${PLACES[@]}"; do
    read -r -a words <<<"$place"
    copy_stores_of "${words[@]}"
  done
  for place in "${PLACES[@]}"; do
    read -r -a words <<<"$place"
    copy_place "${words[@]}"
  done
  expect_listed
  write_settings
  find "$OUTPUT" -type f | wc -l | awk '{print $1 ($1 == 1 ? " file" : " files") " in the collection"}' >&2
  [ ! -e "$WORK/continued" ] ||
    printf '%s logs from where %s ended\n' "$(wc -l <"$WORK/continued")" "$(head -n 1 "$KNOWN")" >&2
  [ "${#FAILED[@]}" -eq 0 ]
}

main "$@"
