say() {
  printf '%s\n' "$*"
  [ -z "$log" ] || printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >>"$log" || :
}

# Everything that speaks against going on is said at once; then nothing is done.
problem() {
  problems=$((problems + 1))
  say "refused: $*"
}

stop_if_problems() {
  [ "$problems" = 0 ] || { say 'Nothing was changed.'; exit 3; }
}

need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null 2>&1 || problem "$tool is not on this machine"
  done
}

usage() {
  echo "usage: sh $0 $options" >&2
  exit 2
}

# For tests and rehearsals: every path and every tool is taken from below one folder, which must say so
# itself, so that a stray variable cannot lead a real change elsewhere.
rehearse() {
  if [ ! -f "$PEERPATH_ROOT/peerpath-rehearsal" ]; then
    echo "refused: PEERPATH_ROOT is set, and $PEERPATH_ROOT/peerpath-rehearsal is not there" >&2
    exit 3
  fi
  root=$PEERPATH_ROOT
  PATH=$root/bin:$PATH
  echo "Rehearsal below $root: this machine is not touched."
}

begin() {
  umask 077
  yes=no log='' root='' problems=0 todo=0 words=$*
  settings_before
  while [ $# -gt 0 ]; do
    took=0
    if [ "$1" = --yes ]; then yes=yes took=1; else option "$@"; fi
    [ "$took" -gt 0 ] && [ $# -ge "$took" ] || usage
    shift "$took"
  done
  LC_ALL=C
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  export LC_ALL PATH
  [ -z "${PEERPATH_ROOT-}" ] || rehearse
  echo "$title"
  [ "$(id -u)" = 0 ] || problem 'run it as root'
}

open_log() { # folder
  mkdir -p "$1" || { say "refused: $1 cannot be made; nothing was changed."; exit 3; }
  log=$1/log
  say "$title: begins"
}

# Files of our own are for root alone; what other programs make gets their usual modes.
usual() {
  (umask 022 && "$@")
}

dry_run_ends() {
  [ "$yes" = no ] || return 0
  say ''
  say "This was a dry run, and nothing was changed. To do it: sh $0 $words --yes"
  exit 0
}

# What a person must type is printed on lines of its own, and logged.
type_this() {
  say "  $*"
}
