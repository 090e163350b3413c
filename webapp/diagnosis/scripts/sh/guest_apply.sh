undo() {
  say "failed: $*"
  over=''
  if put_back && reload; then
    say 'rolled back: everything is as it was.'
  else
    by_hand
  fi
  exit 1
}

# Flags that stand where this script does not write: the person takes them out.
flags_left() { # new text
  [ -n "$drop_flags" ] || return 0
  [ -z "$file" ] || return 0
  ! printf '%s\n' "$1" | grep -q '^ExecStart=.' || return 0
  say "Take $drop_flags out of the engine's command yourself: it does not stand where this script could change it."
}

apply() {
  pick_target
  stop_if_problems
  new=$(new_text)
  say "$target:"
  if [ -f "$target" ] && printf '%s\n' "$new" | cmp -s - "$target"; then
    say 'Nothing to do: it is like this already.'
    exit 0
  fi
  [ -z "$compose" ] || [ ! -f "$target" ] || grep -q "^# Peerpath $phase" "$target" ||
    problem "$target is there already and not from this script: add the variables to it by hand"
  stop_if_problems
  show_diff "$new"
  flags_left "$new"
  [ -n "$file" ] || say 'then the engine is restarted'
  dry_run_ends
  open_log "$store"
  hold_on
  if [ -f "$target" ] && [ ! -f "$kept" ]; then
    cp "$target" "$kept" && cmp -s "$target" "$kept" || { say 'failed: no backup. Nothing was changed.'; exit 1; }
    say "backup: $kept"
  fi
  over=$target
  usual mkdir -p "$(dirname "$target")" || undo "the folder of $target cannot be made"
  # Written into the old file, so that its owner and mode stay.
  printf '%s\n' "$new" >"$target" || undo "$target could not be written"
  printf '%s\n' "$new" | cmp -s - "$target" || undo "$target is not as it was to become"
  [ -n "$file" ] || chmod 644 "$target"
  reload || undo 'the engine did not come up'
  if [ -n "$file" ]; then
    say "$title: written. Restart the engine as you are used to; NCCL reads its variables at the start."
  else
    say "$title: done. The engine runs; check that it answers."
  fi
}
