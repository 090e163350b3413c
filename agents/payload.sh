# Runs a program from a private folder and removes it. Its standard input is this script's own: it
# says nothing, and when it closes, the one who asked is gone and the program has to stop.

unpack() {
  base64 -d >"$folder/program" <<'PROGRAM'
@program@
PROGRAM
}

# What left its group, by the mark that all of a run's processes carry.
# shellcheck disable=SC2046,SC2317
end_left() {
  kill -9 $(grep -lsF "RUN=$PEERPATH_RUN" /proc/[0-9]*/environ | tr -dc '0-9\n' | grep -vx $$) 2>/dev/null
}

# shellcheck disable=SC2317
stop() { # exit code
  trap '' INT TERM HUP PIPE
  trap - EXIT
  [ -z "$group" ] || kill -KILL "-$group" 2>/dev/null
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
  [ "$1" -lt 129 ] || [ -z "${PEERPATH_RUN-}" ] || end_left
  cd / || :
  rm -rf "$folder"
  exit "$1"
}

# A program that does not stop by itself gets five seconds.
watch_stdin() {
  { while read -r _; do :; done; sleep 5; kill -TERM $$; } <&3 >/dev/null 2>&1 &
  watcher=$!
}

become() {
  if timeout -k 2 9 true 2>/dev/null; then
    exec timeout -k 5 @seconds@ "$@"
  fi
  command -v setsid >/dev/null && exec setsid "$@"
  exec "$@"
}

main() {
  umask 077
  group='' watcher=''
  for base in "${TMPDIR:-/tmp}" /tmp /dev/shm /run; do
    folder=$(mktemp -d "$base/peerpath.${PEERPATH_RUN-}XXXXXXXX" 2>/dev/null) && break
  done
  trap 'stop $?' EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  trap 'stop 129' HUP
  trap 'stop 141' PIPE
  unpack
  sum=$(sha256sum <"$folder/program")
  if [ "${sum%% *}" != @sha256@ ]; then
    echo 'peerpath: the copy of the program is damaged; nothing was run' >&2
    exit 3
  fi
  cd "$folder" || exit 3
  exec 3<&0 </dev/null
  become @command@ <&3 3<&- &
  group=$!
  watch_stdin
  exec 3<&-
  wait "$group" 2>/dev/null
  stop $?
}

{ main "$@"; exit; }
