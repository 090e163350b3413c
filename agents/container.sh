# Runs a script inside a container of this machine. Its standard input goes on to that one, so that closing
# it ends that one, too.

script() {
  base64 -d <<'SCRIPT'
@script@
SCRIPT
}

engine() {
  if @engine@ ps -q </dev/null >/dev/null 2>&1; then
    @engine@ "$@"
  else
    sudo -n @engine@ "$@"
  fi
}

main() {
  folder=/tmp/peerpath.${PEERPATH_RUN-}.script
  # shellcheck disable=SC2016
  script | engine exec -i @container@ \
    sh -c 'umask 077; mkdir "$1" && exec cat >"$1/script"' sh "$folder" || return
  engine exec -i -e "PEERPATH_RUN=${PEERPATH_RUN-}" @container@ sh "$folder/script" --watch-stdin
  code=$?
  engine exec @container@ rm -rf "$folder" </dev/null
  return "$code"
}

{ main "$@"; exit; }
