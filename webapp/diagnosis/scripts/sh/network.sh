# The new board moves the network card to another place on the guest's bus, and so to another name.
warn_first() {
  disks=$(printf '%s\n' "$config" | grep '^ide[0-9]: ' | grep -v -e media=cdrom -e cloudinit)
  [ -z "$disks" ] || say "Note: on q35 another controller carries $disks; the guest must find it by UUID."
  say 'BEFORE this, fix the network name inside the guest: write there, and make its initial RAM disk anew:'
  number=0
  [ -n "$nics" ] || say '  a .link file for each card, by its hardware address'
  for nic in $nics; do
    say "  /etc/systemd/network/10-peerpath-$number.link:"
    type_this '[Match]'
    type_this "MACAddress=$nic"
    type_this '[Link]'
    type_this "Name=(its name today: ip -br link | grep -i $nic)"
    number=$((number + 1))
  done
  say 'Without that the guest comes up without a network; its console still works.'
}
