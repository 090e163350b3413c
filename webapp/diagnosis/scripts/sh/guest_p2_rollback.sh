rollback() {
  stop_if_problems
  found=$(caches .peerpath)
  [ -n "$found" ] || { say 'Nothing to roll back.'; exit 0; }
  printf '%s\n' "$found" | while IFS= read -r one; do say "  $one -> ${one%.peerpath}"; done
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  printf '%s\n' "$found" | while IFS= read -r one; do mv "$one" "${one%.peerpath}" || exit 1; done ||
    { say 'failed: a file could not be moved back.'; exit 1; }
  say "$title: done."
}
