# What the driver grants in the guest: necessary, and not yet a proof that bytes arrive.
check_grant() { # r or w, name
  answer=$(nvidia-smi topo -p2p "$1" 2>&1 </dev/null) || {
    todo=$((todo + 1))
    say "  NOT so: nvidia-smi answers: $answer"
    return 0
  }
  bad=$(printf '%s\n' "$answer" | awk '
    $1 ~ /^GPU[0-9]+$/ && ($2 == "X" || /[ \t]X/) { for (i = 2; i <= NF; i++) if ($i != "X" && $i != "OK") n++ }
    END { print n + 0 }')
  if [ "$bad" = 0 ] && printf '%s\n' "$answer" | grep -q OK; then
    say "  ok: every pair may $2"
  else
    todo=$((todo + 1))
    say "  NOT so: $bad entries of topo -p2p $1 are not OK"
  fi
}

# vLLM remembers whether peer access worked; what it learned before the change is out of date. A user names
# these files: only names that mean nothing to a shell are looked at.
caches() { # "", or the ending of those put aside
  for one in "$root"/root/.cache/vllm "$root"/home/*/.cache/vllm; do
    [ -d "$one" ] && find "$one" -maxdepth 1 -type f -name "gpu_p2p_access_cache_for_*.json$1"
  done | grep -x '[A-Za-z0-9_.,/@+-]*'
}

put_back_by_hand() { # why
  say "failed: $1."
  left=$(caches .peerpath)
  if [ -n "$left" ]; then say 'To go back, type:'; else say 'No file is put aside.'; fi
  for one in $left; do type_this "mv $one ${one%.peerpath}"; done
  exit 1
}

hold_on() {
  trap '' HUP PIPE
  trap 'put_back_by_hand "it was stopped by a signal"' INT TERM
}
