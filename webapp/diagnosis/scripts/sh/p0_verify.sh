verify() {
  find_vm
  stop_if_problems
  newest_save
  if [ -z "$saved" ]; then
    say "NOT so: nothing was kept in $store yet. Run the apply script of this phase."
    exit 1
  fi
  (cd "$saved" && sha256sum -c sums >/dev/null 2>&1) || { say "NOT so: files in $saved were changed"; exit 1; }
  say "ok: $saved is complete and unchanged"
  if same_config "$conf" "$saved/etc_pve_qemu-server_$vmid.conf"; then
    say "ok: VM $vmid is configured as it was kept"
  else
    say "VM $vmid is configured otherwise than it was kept; the rollback script of this phase shows how."
  fi
}
