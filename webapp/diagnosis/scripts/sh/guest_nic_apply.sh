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
  file=$(link_file "$1")
  ! link_text "$1" "$2" | cmp -s - "$file" || return 0
  written="$written $file"
  link_text "$1" "$2" >"$file" && chmod 644 "$file" || give_up "$file could not be written"
}

give_up() { # why
  for one in $written; do rm -f "$one"; done
  remove_by_hand "$1" "$written"
}

apply() {
  found=0 written=''
  stop_if_problems
  cards plan_card
  [ "$found" != 0 ] || problem 'no network card with a device behind it was found'
  stop_if_problems
  [ "$todo" != 0 ] || { say 'Nothing to do.'; exit 0; }
  dry_run_ends
  open_log "$root/root/peerpath/guest"
  trap '' HUP PIPE
  trap 'give_up "it was stopped by a signal"' INT TERM
  usual mkdir -p "$root/etc/systemd/network" || give_up 'the folder could not be made'
  cards write_card
  fresh_ramdisk || give_up 'the initial RAM disk could not be made'
  say "$title: done. It counts from the next boot on, and nothing has to be restarted now."
}
