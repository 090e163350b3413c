drop_record() { :; }

# Back to the configuration that P0 kept, whatever was changed since.
rollback() {
  find_vm
  free_to_change
  newest_save
  [ -n "$saved" ] || problem "nothing was kept in $store, so there is nothing to go back to"
  stop_if_problems
  old=$saved/etc_pve_qemu-server_$vmid.conf
  (cd "$saved" && sha256sum -c sums >/dev/null 2>&1) || problem "files in $saved were changed"
  [ -f "$old" ] || problem "$old is not there"
  stop_if_problems
  if same_config "$conf" "$old"; then
    say "Nothing to do: VM $vmid is configured as it was kept in $saved."
    exit 0
  fi
  say "VM $vmid $vm_name goes back to $saved:"
  diff "$conf" "$old" | grep '^[<>]' | sed -e 's/^</-/' -e 's/^>/+/'
  say 'steps: backup, qm shutdown, copy, qm showcmd, qm start, wait for the guest'
  dry_run_ends
  open_log "$store"
  hold_on
  back_up
  stop_vm
  stage=changed
  cp "$old" "$conf" || undo "the configuration could not be written"
  cmp -s "$old" "$conf" || undo "the configuration could not be written"
  read_config || undo "the configuration cannot be read any more: $config"
  shown=$(qm showcmd "$vmid" --pretty 2>&1 </dev/null) || undo "the VM would not start: $shown"
  start_vm
  wait_for_guest
  say "$title: done."
}
