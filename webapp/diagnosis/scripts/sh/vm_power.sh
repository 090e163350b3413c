# What to type to get back, for every point at which this can end.
way_back() {
  case $stage in
    untouched) say 'Nothing was changed.' ;;
    stopping)
      say "The configuration is unchanged. If VM $vmid went down meanwhile, type:"
      type_this "qm start $vmid"
      ;;
    stopped)
      say "The configuration is as it was and VM $vmid is down. Type:"
      type_this "qm start $vmid"
      ;;
    changed)
      say "VM $vmid has the new configuration, or a part of it. To go back, type:"
      type_this "qm shutdown $vmid"
      type_this "cp $backup $conf"
      [ -z "${undone-}" ] || type_this "mv $undone $store/$phase.keys"
      [ "$was_running" = no ] || type_this "qm start $vmid"
      ;;
  esac
}

fail() {
  say "failed: $*"
  way_back
  exit 1
}

# A terminal that goes away must not leave the work half done; Ctrl-C is a person's wish.
hold_on() {
  trap '' HUP PIPE
  trap 'fail "it was stopped by a signal"' INT TERM
}

back_up() {
  backup=$store/$phase.$(date +%Y-%m-%dT%H%M%S).conf
  cp "$conf" "$backup" && cmp -s "$conf" "$backup" || fail "$backup could not be written"
  say "backup: $backup"
}

stop_vm() {
  was_running=no
  if [ "$(vm_status)" = stopped ]; then
    say "VM $vmid is stopped; it will not be started"
  else
    was_running=yes stage=stopping
    say "shutting VM $vmid down (qm shutdown, up to five minutes)"
    qm shutdown "$vmid" --timeout 300 </dev/null || say 'qm shutdown complained'
    [ "$(vm_status)" = stopped ] ||
      fail "VM $vmid did not shut down: shut its system down from inside, then run this again"
  fi
  stage=stopped
  # Proxmox applies pending changes when it stops a VM; there were none, so nothing may differ.
  cmp -s "$backup" "$conf" || fail "the configuration was changed by somebody meanwhile"
}

start_old() { # after the old configuration is back
  stage=stopped
  say 'the old configuration is back'
  [ "$was_running" = no ] || usual qm start "$vmid" </dev/null || say 'qm start complained'
  [ "$was_running" = no ] || [ "$(vm_status)" = running ] ||
    fail "VM $vmid does not start with its old configuration either"
  say "rolled back: VM $vmid is as it was."
  exit 1
}

# Only for a start that failed, or was bound to.
undo() {
  say "failed: $*"
  stage=changed
  [ "$(vm_status)" = stopped ] || fail "VM $vmid is in between: $(vm_status)"
  cp "$backup" "$conf"
  cmp -s "$backup" "$conf" || fail 'the old configuration could not be put back'
  drop_record
  start_old
}

start_vm() {
  if [ "$was_running" = no ]; then
    say "VM $vmid was stopped and stays so. Start it with: qm start $vmid"
    return 0
  fi
  say "starting VM $vmid"
  started=$(usual qm start "$vmid" 2>&1 </dev/null) || say "qm start complained: $started"
  sleep 3
  [ "$(vm_status)" = running ] || undo "VM $vmid does not run after qm start: $started"
  say "VM $vmid runs"
}

agent_enabled() {
  case $(value_of agent) in
    1 | 1,* | enabled=1 | enabled=1,* | *,enabled=1 | *,enabled=1,*) return 0 ;;
    *) return 1 ;;
  esac
}

# Running is what the host can see; whether the guest is up only its agent or a person can tell.
wait_for_guest() {
  [ "$was_running" = yes ] || return 0
  if agent_enabled; then
    say 'waiting for the guest agent, up to five minutes'
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
      qm agent "$vmid" ping >/dev/null 2>&1 </dev/null && { say 'the guest agent answers'; return 0; }
      [ "$(vm_status)" = running ] || undo "VM $vmid stopped again after its start"
      sleep 10
    done
    say 'The guest agent does not answer. Look at the console.'
  else
    say 'The guest has no agent enabled, so look at its console: is it up, with its network?'
    if [ -t 0 ]; then
      printf 'Is it up? [yes/no] '
      read -r answer
      [ "$answer" != yes ] || { say 'a person says the guest is up'; return 0; }
    fi
  fi
  stage=changed
  way_back
  exit 4
}

# QEMU says so and goes on: peers' BARs are not mapped, and a clique would be a false promise.
warn_of_unmapped_bars() {
  case $(value_of args) in *x-nv-gpudirect-clique*) ;; *) return 0 ;; esac
  printf '%s\n' "$1" | grep -E 'vfio.*dma_map|PCI peer-to-peer transactions' >/dev/null || return 0
  say "WARNING: QEMU could not map a GPU's memory for the others: $1"
  say 'A clique must not stay set then. Run the rollback script now.'
  stage=changed
  way_back
  exit 4
}
