rollback() {
  stop_if_problems
  found=$(caches .peerpath)
  [ -n "$found" ] || { say 'Nothing to roll back.'; exit 0; }
  for one in $found; do say "  $one -> ${one%.peerpath}"; done
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  hold_on
  for one in $found; do mv "$one" "${one%.peerpath}" || put_back_by_hand "$one could not be moved"; done
  say "$title: done."
}
