keep_file() { # path
  [ -f "$root$1" ] || return 0
  say "  $1"
  [ "$yes" = no ] || cp "$root$1" "$save/$(printf '%s' "${1#/}" | tr '/' '_')" || save_fail "$1"
}

keep_answer() { # name command...
  name=$1
  shift
  command -v "$1" >/dev/null 2>&1 || return 0
  say "  the answer to: $*"
  [ "$yes" = no ] || "$@" >"$save/$name" 2>&1 </dev/null || say "    (it ended with an error, which is kept)"
}

save_fail() {
  say "failed: $1 could not be kept. Nothing of the VM was changed."
  exit 1
}

apply() {
  find_vm
  stop_if_problems
  save=$store/P0.$(date +%Y-%m-%dT%H%M%S)
  say "It changes nothing in VM $vmid $vm_name. It keeps, in $save:"
  if [ "$yes" = yes ]; then
    open_log "$store"
    mkdir -p "$save" || save_fail "$save"
  fi
  keep_file "/etc/pve/qemu-server/$vmid.conf"
  keep_file /etc/pve/mapping/pci.cfg
  keep_file /etc/kernel/cmdline
  keep_file /etc/default/grub
  keep_file /proc/cmdline
  keep_answer qm-config.txt qm config "$vmid" --current
  keep_answer qm-pending.txt qm pending "$vmid"
  keep_answer qm-showcmd.txt qm showcmd "$vmid" --pretty
  keep_answer boot-tool.txt proxmox-boot-tool status
  keep_answer efibootmgr.txt efibootmgr -v
  keep_answer pveversion.txt pveversion -v
  keep_answer mappings.txt pvesh get /cluster/mapping/pci --output-format json
  dry_run_ends
  (cd "$save" && sha256sum -- *.conf *.txt *_* 2>/dev/null | sort -u >sums) || save_fail "$save/sums"
  [ -s "$save/sums" ] || save_fail "$save/sums"
  say "kept: $save. Make sure that you can reach this host's console without the VM before you go on."
}
