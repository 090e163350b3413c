rollback() {
  stop_if_problems
  files=''
  for one in "$root"/etc/systemd/network/10-peerpath-*.link; do
    [ -f "$one" ] && grep -q "^# Peerpath $phase;" "$one" && files="$files $one" && say "- $one"
  done
  [ -n "$files" ] || { say 'Nothing to roll back.'; exit 0; }
  say 'The names then follow the board again: do this only once the VM is back on its old board.'
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  for one in "$root"/etc/systemd/network/10-peerpath-*.link; do
    grep -q "^# Peerpath $phase;" "$one" && rm -f "$one"
  done
  fresh_ramdisk || { say 'failed; type:' && type_this 'update-initramfs -u'; exit 1; }
  say "$title: done."
}
