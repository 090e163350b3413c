# One file a network card: it keeps the name it has now, matched by its hardware address, wherever the new
# board puts it (systemd.link(5)). The copy in the initial RAM disk must know it, too.
cards() { # function that takes name and address
  for card in "$root"/sys/class/net/*; do
    name=${card##*/}
    [ -e "$card/device" ] || continue
    address=$(cat "$card/address" 2>/dev/null)
    case $name in '' | *[!A-Za-z0-9_.-]*) continue ;; esac
    case $address in ??:??:??:??:??:??) ;; *) continue ;; esac
    case $address in *[!0-9a-f:]*) continue ;; esac
    "$1" "$name" "$address"
  done
}

link_file() { # name
  echo "$root/etc/systemd/network/10-peerpath-$1.link"
}

link_text() { # name address
  printf '# Peerpath %s; the rollback script removes this file.\n[Match]\nMACAddress=%s\n\n[Link]\nName=%s\n' \
    "$phase" "$2" "$1"
}

# Files of this script, by the mark in their first line.
ours() {
  for one in "$root"/etc/systemd/network/10-peerpath-*.link; do
    case ${one##*/} in *[!A-Za-z0-9_.-]*) continue ;; esac
    [ -f "$one" ] && grep -q "^# Peerpath $phase;" "$one" && echo "$one"
  done
}

remove_by_hand() { # why, and the files
  say "failed: $1. Without these files the names follow the board again; type:"
  for one in $2; do [ ! -e "$one" ] || type_this "rm -f $one"; done
  if command -v update-initramfs >/dev/null 2>&1; then
    type_this 'update-initramfs -u'
  else
    type_this 'dracut --force'
  fi
  exit 1
}

# Names given in the initial RAM disk are not changed again later (systemd issues 9006 and 9807).
fresh_ramdisk() {
  if command -v update-initramfs >/dev/null 2>&1; then
    update-initramfs -u </dev/null
  elif command -v dracut >/dev/null 2>&1; then
    dracut --force </dev/null
  else
    say 'There is neither update-initramfs nor dracut: make the initial RAM disk anew in your way.'
  fi
}
