check_setting() { # name value
  if printf '%s\n' "$present" | grep -Fxq "$1=$2"; then
    say "  ok: $1=$2"
  else
    todo=$((todo + 1))
    say "  NOT so: the engine does not run with $1=$2"
  fi
}

# The environment of a process that runs, not what a file says.
read_environment() {
  if [ -n "$unit" ]; then
    pid=$(systemctl show -p MainPID --value "$unit" 2>/dev/null </dev/null)
    present=$(tr '\0' '\n' 2>/dev/null <"$root/proc/${pid:-none}/environ")
  elif [ -n "$compose" ]; then
    present=$(docker compose -f "$compose" exec -T "$service" env 2>/dev/null </dev/null)
  else
    say "  of $file only the text can be checked, not what runs:"
    present=$(sed -n "s/^export \([A-Z0-9_]*\)='\(.*\)'\$/\1=\2/p" "$file")
  fi
}

verify() {
  pick_target
  stop_if_problems
  read_environment
  settings check_setting
  count=$(cat "$root"/tmp/nccl.* 2>/dev/null | grep -Eo 'via (P2P|SHM|NET)' | sort | uniq -c | tr '\n' ' ')
  [ -z "$count" ] || say "  transports in /tmp/nccl.*: $count(give these files to the session)"
  [ "$todo" = 0 ] || { say "$title: $todo points do not hold."; exit 1; }
  say "$title: holds."
}
