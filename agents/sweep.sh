# Ends whatever a run left on this machine: sh sweep.sh MARK
# A run's processes carry its mark in their environment, or belong to a session whose leader does.

find_run() {
  found='' marked=' '
  # shellcheck disable=SC2013
  for file in $(grep -lsF "PEERPATH_RUN=$mark" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    marked="$marked${file%/environ} "
  done
  for file in /proc/[0-9]*/stat; do
    read -r stat 2>/dev/null <"$file" || continue
    pid=${stat%% *}
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case $1 in Z | X) continue ;; esac
    case $marked in *" $pid "* | *" $4 "*) found="$found $pid" ;; esac
  done
}

end_run() { # signal
  for pid in $found; do
    kill "-$1" "$pid" 2>/dev/null && continue
    [ ! -d "/proc/$pid" ] || sudo -n kill "-$1" "$pid" 2>/dev/null
  done
}

wait_for_end() {
  tries=20
  while [ "$tries" -gt 0 ]; do
    find_run
    [ -n "$found" ] || return 0
    tries=$((tries - 1))
    sleep 0.1
  done
}

main() {
  mark=$1
  find_run
  end_run TERM
  wait_for_end
  end_run KILL
  [ -z "$found" ] || wait_for_end
  for base in "${TMPDIR:-/tmp}" /tmp /dev/shm /run; do
    rm -rf "$base/peerpath.$mark"*
  done
  # shellcheck disable=SC2086
  set -- $found
  printf '\n=%s= left %s\n' "$mark" "$#"
}

{ main "$@"; exit; }
