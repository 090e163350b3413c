rollback() {
  pick_target
  stop_if_problems
  if [ ! -f "$target" ] || ! grep -q "^# Peerpath $phase" "$target"; then
    say "Nothing to roll back: $target has nothing of this script."
    exit 0
  fi
  if [ -n "$file" ] && [ ! -f "$kept" ]; then
    problem "the backup $kept is missing: take the block between '# Peerpath $phase begins' and 'ends' out by hand"
  fi
  # A start script may have been worked on since; then only the block goes.
  if [ -n "$file" ]; then old=$(without_block <"$file"); else old=''; fi
  stop_if_problems
  say "$target:"
  if [ -f "$kept" ]; then show_diff "$(cat "$kept")"; else say '- (the whole file)'; fi
  dry_run_ends
  open_log "$store"
  hold_on
  if [ -n "$file" ] && [ -z "$drop_flags" ]; then
    cp "$file" "$kept.last" && printf '%s\n' "$old" >"$file" || { by_hand && exit 1; }
  else
    put_back || { by_hand && exit 1; }
  fi
  rm -f "$kept"
  over=''
  reload || { say 'failed: the engine did not come up with its old settings' && by_hand && exit 1; }
  say "$title: done.${file:+ Restart the engine as you are used to.}"
}
