apply() {
  stop_if_problems
  found=$(caches '')
  if [ -z "$found" ]; then
    say 'Nothing to do: vLLM keeps no peer-access answers for this machine outside containers.'
    exit 0
  fi
  say 'put aside, so that vLLM asks again at its next start:'
  for one in $found; do say "  $one -> $one.peerpath"; done
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  hold_on
  for one in $found; do mv "$one" "$one.peerpath" || put_back_by_hand "$one could not be moved"; done
  say "$title: done. Restart the engine when gates 4 to 7 hold."
}
