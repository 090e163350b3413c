rollback() {
  pick_target
  stop_if_problems
  if [ ! -f "$target" ] || ! grep -q "^# Peerpath $phase" "$target"; then
    say "Nothing to roll back: $target has nothing of this script."
    exit 0
  fi
  # Only what this script wrote is taken back; later work of somebody's is not thrown away.
  if [ -n "$file" ]; then
    file_text "$kept" 2>/dev/null | cmp -s - "$file" ||
      problem "$file was worked on since: take the block between '# Peerpath $phase begins' and 'ends' out by hand"
  fi
  stop_if_problems
  say "$target:"
  if [ -f "$kept" ]; then show_diff "$(cat "$kept")"; else say '- (the whole file)'; fi
  dry_run_ends
  open_log "$store"
  hold_on
  put_back || { by_hand; exit 1; }
  over=''
  reload || { say 'failed: the engine did not come up with its old settings' && by_hand; exit 1; }
  rm -f "$kept"
  say "$title: done.${file:+ Restart the engine as you are used to.}"
}
