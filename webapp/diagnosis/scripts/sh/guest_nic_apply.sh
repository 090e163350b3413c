plan_card() {
  found=$((found + 1))
  if link_text "$1" "$2" | cmp -s - "$(link_file "$1")"; then
    say "  $1 keeps its name already ($2)"
    return 0
  fi
  todo=$((todo + 1))
  say "  $(link_file "$1"):"
  link_text "$1" "$2" | sed 's/^/+ /'
}

write_card() {
  link_text "$1" "$2" >"$(link_file "$1")" && chmod 644 "$(link_file "$1")" || failed=yes
}

remove_card() {
  rm -f "$(link_file "$1")"
}

apply() {
  found=0 failed=no
  stop_if_problems
  cards plan_card
  [ "$found" != 0 ] || problem 'no network card with a device behind it was found'
  stop_if_problems
  [ "$todo" != 0 ] || { say 'Nothing to do.'; exit 0; }
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  trap '' HUP PIPE
  usual mkdir -p "$root/etc/systemd/network" || failed=yes
  cards write_card
  if [ "$failed" = no ] && fresh_ramdisk; then
    say "$title: done. It counts from the next boot on, and nothing has to be restarted now."
    exit 0
  fi
  cards remove_card
  say 'failed; the files were removed again.'
  type_this 'update-initramfs -u'
  exit 1
}
