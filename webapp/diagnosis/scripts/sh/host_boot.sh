# Memory that must stay for the host itself beside the reserved pages, GiB; our choice.
keep_gib=16

set_pages() {
  pages="hugepagesz=1G hugepages=$hugepages_gib"
}

lower() {
  tr '[:upper:]' '[:lower:]'
}

# What started this host, as firmware and loader say; a changed file of the other loader has no effect.
loader_now() {
  [ -d "$root/sys/firmware/efi" ] || { echo grub-bios; return; }
  entries=$(efibootmgr -v 2>/dev/null </dev/null)
  current=$(printf '%s\n' "$entries" | sed -n 's/^BootCurrent: \([0-9A-F]*\)$/\1/p')
  case $(printf '%s\n' "$entries" | grep "^Boot${current:-none}" | lower) in
    *systemd-boot* | *'linux boot manager'*) echo systemd-boot ;;
    *grub* | *shim*) echo grub-uefi ;;
    *) echo unknown ;;
  esac
}

pick_boot_file() {
  loader=$(loader_now)
  case $loader in
    systemd-boot) boot_file=$root/etc/kernel/cmdline refresh='proxmox-boot-tool refresh' ;;
    grub-*) boot_file=$root/etc/default/grub refresh=update-grub ;;
    *)
      problem "which boot loader started this host cannot be told: add '$pages' to its kernel command line by hand (systemd-boot: /etc/kernel/cmdline, then proxmox-boot-tool refresh; GRUB: GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then update-grub), and reboot it"
      return 0
      ;;
  esac
  [ "$loader" = "$boot_loader" ] ||
    problem "this host was started by $loader and the session knows $boot_loader: give it the host's answers again"
  [ -f "$boot_file" ] || problem "$boot_file is not there"
  need "${refresh%% *}"
  managed=$(proxmox-boot-tool status 2>&1 </dev/null) || managed=''
  case $loader-$managed in
    systemd-boot-) problem 'proxmox-boot-tool manages no boot partition, so /etc/kernel/cmdline would change nothing' ;;
    grub-*) case $managed in
      *'configured with: grub'* | *', grub'* | '') ;;
      *) problem "GRUB started this host, and proxmox-boot-tool keeps its partitions for another loader: $managed" ;;
    esac ;;
  esac
  case $managed in
    *'mount of '*failed* | *espmounts*) problem "a boot partition cannot be read, and refresh would pass over it in silence: $managed" ;;
  esac
}

with_pages() { # the file, with the pages on its kernel command line
  if [ "$loader" = systemd-boot ]; then
    sed "1s/ *\$/ $pages/" "$boot_file"
  else
    sed "s/^\(GRUB_CMDLINE_LINUX_DEFAULT=\"[^\"]*\)\"\$/\1 $pages\"/" "$boot_file"
  fi
}

without_pages() {
  sed "s/ $pages//" "$boot_file"
}

fits_the_file() {
  if [ "$loader" = systemd-boot ]; then
    [ "$(grep -c . "$boot_file")" = 1 ] || problem "$boot_file has more than one line"
  else
    [ "$(grep -c '^GRUB_CMDLINE_LINUX_DEFAULT="[^"]*"$' "$boot_file")" = 1 ] ||
      problem "$boot_file has no single GRUB_CMDLINE_LINUX_DEFAULT=\"…\" line: add '$pages' by hand, then $refresh"
  fi
  grep -q 'hugepages=' "$boot_file" && ! grep -q " $pages" "$boot_file" &&
    problem "$boot_file reserves huge pages already, in another way: change that by hand"
}

show_boot_change() { # new text
  printf '%s\n' "$1" | diff "$boot_file" - | grep '^[<>]' | sed -e 's/^</-/' -e 's/^>/+/'
}

take_over() {
  if [ "$loader" = systemd-boot ]; then usual proxmox-boot-tool refresh; else usual update-grub; fi
}

# The file is written in place of the old one only once the loader took it over; else it goes back.
write_boot_file() { # new text
  boot_backup=$store/$phase.$(date +%Y-%m-%dT%H%M%S).${boot_file##*/}
  cp "$boot_file" "$boot_backup" && cmp -s "$boot_file" "$boot_backup" || boot_fail "$boot_backup could not be written"
  say "backup: $boot_backup"
  printf '%s\n' "$1" >"$boot_file" || boot_fail "$boot_file could not be written"
  answer=$(take_over 2>&1 </dev/null) || boot_fail "$refresh failed: $answer"
  say "$refresh: done"
}

boot_fail() {
  say "failed: $*"
  if cp "$boot_backup" "$boot_file" && cmp -s "$boot_backup" "$boot_file" && take_over >/dev/null 2>&1 </dev/null; then
    say "$boot_file is as it was."
  else
    say "$boot_file may be changed. To go back, type:"
    type_this "cp $boot_backup $boot_file"
    type_this "$refresh"
  fi
  if [ -z "${undoing-}" ]; then
    say "VM $vmid was not touched."
  else
    say "VM $vmid is rolled back; its pages stay reserved until this is run again:"
    type_this "sh $0 $words"
  fi
  exit 1
}

reserved_gib() {
  cat "$root/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages" 2>/dev/null || echo 0
}

# Pages of 1 GiB are reserved when the host boots; without them the VM would not start. So this comes
# first, and the rest of the phase after a reboot, by the same script.
prepare_host() {
  set_pages
  [ -n "$hugepages_gib" ] && [ "$todo" != 0 ] || return 0
  [ "$(value_of hugepages)" = '' ] || return 0
  [ "$(reserved_gib)" -lt "$hugepages_gib" ] || return 0
  case " $(cat "$root/proc/cmdline") " in
    *" hugepages=$hugepages_gib "*)
      problem "the host booted with hugepages=$hugepages_gib and only $(reserved_gib) pages of 1 GiB are free: its memory did not suffice, or another VM holds them"
      ;;
  esac
  total_gib=$(awk '$1 == "MemTotal:" { print int($2 / 1048576) }' "$root/proc/meminfo")
  [ "$total_gib" -ge $((hugepages_gib + keep_gib)) ] ||
    problem "the host has $total_gib GiB: $hugepages_gib reserved would leave it less than $keep_gib"
  pick_boot_file
  stop_if_problems
  fits_the_file
  stop_if_problems
  if grep -q " $pages" "$boot_file"; then
    say "$boot_file has '$pages' already: reboot the host, then run this again."
    exit 4
  fi
  new=$(with_pages)
  say "first $boot_file ($loader), as the VM needs pages of 1 GiB that are reserved at boot:"
  show_boot_change "$new"
  say "steps: backup, write, $refresh; then you reboot the host and run this script again for the VM"
  dry_run_ends
  open_log "$store"
  trap '' HUP PIPE
  trap 'boot_fail "it was stopped by a signal"' INT TERM
  echo "$hugepages_gib $loader" >"$store/$phase.boot"
  write_boot_file "$new"
  say 'Now reboot the host when it suits, then run this script again: it will change the VM.'
  exit 4
}

# What the apply script reserved, and in whose file, as it recorded.
look_at_host() {
  reserved=no
  read -r hugepages_gib boot_loader 2>/dev/null <"$store/$phase.boot" || return 0
  case $hugepages_gib in *[!0-9]* | '') problem "$store/$phase.boot is damaged"; return 0 ;; esac
  set_pages
  pick_boot_file
  stop_if_problems
  grep -q " $pages" "$boot_file" && reserved=yes
}

undo_host() {
  [ "$reserved" = yes ] || return 0
  undoing=yes
  new=$(without_pages)
  say "$boot_file ($loader):"
  show_boot_change "$new"
  dry_run_ends
  [ -n "$log" ] || open_log "$store"
  trap '' HUP PIPE
  trap 'boot_fail "it was stopped by a signal"' INT TERM
  write_boot_file "$new"
  say 'The pages are given back at the next reboot of the host.'
}
