apply() {
  stop_if_problems
  found=$(caches '')
  [ -n "$found" ] || { say 'Nothing to do: vLLM keeps no peer-access answers for this machine outside containers.'; exit 0; }
  say 'put aside, so that vLLM asks again at its next start:'
  printf '%s\n' "$found" | while IFS= read -r one; do say "  $one -> $one.peerpath"; done
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  printf '%s\n' "$found" | while IFS= read -r one; do mv "$one" "$one.peerpath" || exit 1; done ||
    { say 'failed: a file could not be moved; the rollback script puts the others back.'; exit 1; }
  say "$title: done. Restart the engine when gates 4 to 7 hold."
}
