drop_record() { :; }

old_value() { # file key: from the part of a configuration before its snapshots
  sed -n -e '/^\[/q' -e "/^$2: /{s///p;q;}" "$1"
}

# Each line of this phase goes back, whatever else was changed meanwhile. One that is neither as it was
# nor as this phase left it is somebody's later work.
compare_recorded() {
  for key in $keys; do
    case $key in *[!a-z0-9]* | '') problem "$store/$phase.keys is damaged"; return 0 ;; esac
    now=$(value_of "$key") old=$(old_value "$store/$phase.before" "$key")
    same "$key" "$now" "$old" && continue
    todo=$((todo + 1))
    same "$key" "$now" "$(old_value "$store/$phase.after" "$key")" ||
      problem "$key is '$now', which this phase did not set; it was '$old' before: put it right by hand"
    [ -z "$now" ] || say "- $key: $now"
    [ -z "$old" ] || say "+ $key: $old"
  done
}

put_old_values() {
  gone=''
  set --
  for key in $keys; do
    old=$(old_value "$store/$phase.before" "$key")
    if [ -n "$old" ]; then
      set -- "$@" "--$key" "$old"
    elif [ -n "$(value_of "$key")" ]; then
      gone=$gone${gone:+,}$key
    fi
  done
  [ -z "$gone" ] || set -- "$@" --delete "$gone"
  qm set "$vmid" "$@" </dev/null
}

# The machine goes back in the same step as pcie=1, so the rule is asked of the old values.
old_is_startable() {
  for key in $keys; do
    case $key in hostpci*) ;; *) continue ;; esac
    case $(old_value "$store/$phase.before" "$key"),$(old_value "$store/$phase.before" machine) in
      *pcie=1*q35*) ;;
      *pcie=1*) problem "$key had pcie=1 without q35 before: the VM would not start" ;;
    esac
  done
}

rollback() {
  find_vm
  free_to_change
  stop_if_problems
  if [ ! -f "$store/$phase.keys" ]; then
    say "Nothing to roll back: $store has no record that $phase was applied to VM $vmid with its script."
    exit 0
  fi
  keys=$(sort -u "$store/$phase.keys" | tr '\n' ' ')
  say "VM $vmid $vm_name:"
  compare_recorded
  old_is_startable
  stop_if_problems
  if [ "$todo" = 0 ]; then
    say 'Nothing to do: every line is as it was before this phase.'
    exit 0
  fi
  say 'steps: backup, qm shutdown, qm set, qm showcmd, qm start, wait for the guest'
  dry_run_ends
  open_log "$store"
  hold_on
  back_up
  stop_vm
  stage=changed
  answer=$(put_old_values 2>&1) || undo "qm set failed: $answer"
  read_config || undo "the configuration cannot be read any more: $config"
  for key in $keys; do
    same "$key" "$(value_of "$key")" "$(old_value "$store/$phase.before" "$key")" ||
      undo "$key is not as it was to become"
  done
  shown=$(qm showcmd "$vmid" --pretty 2>&1 </dev/null) || undo "the VM would not start: $shown"
  start_vm
  # Whoever goes back to what this phase set can roll it back again.
  mv "$store/$phase.keys" "$store/$phase.keys.undone" && undone=$store/$phase.keys.undone
  wait_for_guest
  say "$title: done."
}
