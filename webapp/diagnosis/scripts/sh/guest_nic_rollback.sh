rollback() {
  stop_if_problems
  files=$(ours)
  for one in $files; do say "- $one"; done
  [ -n "$files" ] || { say 'Nothing to roll back.'; exit 0; }
  say 'The names then follow the board again: do this only once the VM is back on its old board.'
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  trap '' HUP PIPE
  trap 'remove_by_hand "it was stopped by a signal" "$files"' INT TERM
  for one in $files; do rm -f "$one" || remove_by_hand "$one could not be removed" "$files"; done
  fresh_ramdisk || remove_by_hand 'the initial RAM disk could not be made' "$files"
  say "$title: done."
}
