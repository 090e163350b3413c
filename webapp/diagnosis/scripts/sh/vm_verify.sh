ok() { say "  ok: $*"; }

not_ok() {
  todo=$((todo + 1))
  say "  NOT so: $*"
}

check_holds() {
  now=$(value_of "$1")
  if same "$1" "$now" "$3"; then ok "$1: $3"; else not_ok "$1 is '$now' and was to become '$3'"; fi
}

# The command line of the process that runs, not the one a start would get.
read_running() {
  pid=$(cat "$root/run/qemu-server/$vmid.pid" 2>/dev/null)
  running=$(tr '\0' '\n' 2>/dev/null <"$root/proc/${pid:-none}/cmdline")
}

check_running() {
  read_running
  if [ -z "$running" ]; then
    not_ok "the running QEMU of VM $vmid cannot be read"
    return 0
  fi
  for pair in $cliques; do
    if printf '%s\n' "$running" | grep -Fxq "device.${pair%=*}.x-nv-gpudirect-clique=${pair#*=}"; then
      ok "${pair%=*} runs with clique ${pair#*=}"
    else
      not_ok "${pair%=*} runs without clique ${pair#*=}: the VM was not stopped and started since"
    fi
  done
  will_be machine
  case $wanted in
    *q35*)
      if printf '%s\n' "$running" | grep -Eq '^(type=)?(pc-)?q35'; then
        ok 'it runs on q35'
      else
        not_ok 'it does not run on q35: it was not stopped and started since'
      fi
      ;;
  esac
}

# Since the last start: QEMU's own words about peers' memory.
check_start_log() {
  command -v journalctl >/dev/null 2>&1 || { say '  not looked: there is no journalctl'; return 0; }
  said=$(journalctl -b -q --no-pager 2>/dev/null </dev/null |
    grep -E 'vfio.*dma_map|PCI peer-to-peer transactions|IO_PAGE_FAULT' | tail -n 5)
  if [ -z "$said" ]; then
    ok 'no message about unmapped GPU memory in the journal since boot'
  else
    not_ok "the journal has messages about GPU memory; if they are from this VM's last start, roll back: $said"
  fi
}

verify() {
  find_vm
  stop_if_problems
  changes check_holds
  answer=$(qm pending "$vmid" 2>&1 </dev/null) || not_ok "what is pending cannot be read: $answer"
  pending=$(printf '%s\n' "$answer" | grep -E '^(new|del)') &&
    not_ok "changes are pending: $pending"
  if [ "$(vm_status)" = running ]; then
    ok "VM $vmid runs"
    check_running
    [ -z "$cliques" ] || check_start_log
  else
    not_ok "VM $vmid does not run: $(vm_status)"
  fi
  if [ "$todo" = 0 ]; then
    say "$title: the host's side holds. What the guest sees is checked in the guest."
  else
    say "$title: $todo points do not hold."
    exit 1
  fi
}
