# Which lines this phase changed, and how they were and became: what the rollback goes by.
record() {
  had_record=no
  if [ -f "$store/$phase.keys" ]; then
    had_record=yes
    cp "$store/$phase.after" "$store/$phase.after.last"
  else
    cp "$backup" "$store/$phase.before" && cmp -s "$backup" "$store/$phase.before" || return 1
  fi
  cp "$conf" "$store/$phase.after" && cmp -s "$conf" "$store/$phase.after" || return 1
  changes note_key
  [ -s "$store/$phase.keys" ]
}

note_key() {
  printf '%s\n' "$1" >>"$store/$phase.keys"
}

drop_record() {
  case ${had_record-} in
    yes) mv "$store/$phase.after.last" "$store/$phase.after" ;;
    no) rm -f "$store/$phase.keys" "$store/$phase.before" "$store/$phase.after" ;;
  esac
}

prove() {
  read_config || undo "the configuration cannot be read any more: $config"
  todo=0
  changes holds
  [ "$todo" = 0 ] || undo 'the configuration is not as it was to become'
  shown=$(qm showcmd "$vmid" --pretty 2>&1 </dev/null) || undo "the VM would not start: $shown"
  for pair in $cliques; do
    case $shown in
      *"device.${pair%=*}.x-nv-gpudirect-clique=${pair#*=}"[!0-9]* | \
        *"device.${pair%=*}.x-nv-gpudirect-clique=${pair#*=}") ;;
      *) undo "the QEMU command line has no clique for ${pair%=*}" ;;
    esac
    case $shown in
      *"id=${pair%=*},"* | *"id=${pair%=*}'"*) ;;
      *) undo "the QEMU command line has no device with the id ${pair%=*}" ;;
    esac
  done
  if [ -n "$cliques" ] && printf '%s\n' "$shown" | grep -q 'kvm=off'; then
    undo 'the QEMU command line hides KVM (kvm=off), and then a clique is ignored'
  fi
  say 'proved: qm showcmd builds the command line as wanted'
}

apply() {
  find_vm
  free_to_change
  changes compare
  never_pcie_without_q35
  check_gpus
  warn_first
  stop_if_problems
  say "VM $vmid $vm_name:"
  changes show_change
  if [ "$todo" = 0 ]; then
    say 'Nothing to do: the configuration is like this already.' \
      'A VM that ran before that still needs a stop and a start.'
    exit 0
  fi
  say 'steps: backup, qm shutdown, qm set, qm showcmd, qm start, wait for the guest'
  dry_run_ends
  open_log "$store"
  hold_on
  back_up
  stop_vm
  stage=changed
  say 'changing the configuration (qm set)'
  answer=$(write_changes 2>&1) || undo "qm set failed: $answer"
  prove
  record || undo 'what was changed could not be recorded'
  start_vm
  warn_of_unmapped_bars "${started-}"
  wait_for_guest
  say "$title: done. Check it with the verify script; the rollback script undoes it."
}
