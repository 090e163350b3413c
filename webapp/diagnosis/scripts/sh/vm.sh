options='[--yes] [--with-snapshots]'

settings_before() {
  with_snapshots=no stage=untouched
}

option() {
  [ "$1" != --with-snapshots ] || with_snapshots=yes took=1
}

# Without control characters: what a configuration holds is shown on a terminal.
read_config() {
  config=$(qm config "$vmid" --current 2>&1 </dev/null) || return 1
  config=$(printf '%s\n' "$config" | tr -d '\001-\010\013-\037\177')
}

value_of() { # key
  printf '%s\n' "$config" | sed -n "/^$1: /{s///p;q;}"
}

# Order of a property string, and "host=" before an address, mean nothing to Proxmox.
same() { # key value value
  [ "$2" != "$3" ] || return 0
  case $1 in
    hostpci* | machine | cpu) [ "$(properties "$2")" = "$(properties "$3")" ] ;;
    *) return 1 ;;
  esac
}

properties() {
  printf '%s\n' "$1" | tr ',' '\n' | sed 's/^host=//' | sort
}

vm_status() {
  qm status "$vmid" 2>/dev/null </dev/null | sed -n 's/^status: //p'
}

find_vm() {
  conf=$root/etc/pve/qemu-server/$vmid.conf
  store=$root/root/peerpath/$vmid
  need qm sed awk cmp
  stop_if_problems
  read_config || problem "VM $vmid is not on this host: $config"
  stop_if_problems
  [ -f "$conf" ] || problem "$conf is not there"
  [ -z "$vm_name" ] || [ "$(value_of name)" = "$vm_name" ] ||
    problem "VM $vmid is named '$(value_of name)' here and '$vm_name' in the session"
  if [ -n "$vm_uuid" ]; then
    case $(value_of smbios1 | tr '[:upper:]' '[:lower:]') in
      *"uuid=$vm_uuid"*) ;;
      *) problem "VM $vmid has not the UUID $vm_uuid that the session knows: it is another VM" ;;
    esac
  fi
}

free_to_change() {
  [ -z "$(value_of lock)" ] ||
    problem "VM $vmid is locked ($(value_of lock)): wait until that ends"
  [ "$(value_of template)" != 1 ] || problem "VM $vmid is a template"
  answer=$(qm pending "$vmid" 2>&1 </dev/null) || problem "what is pending cannot be read: $answer"
  pending=$(printf '%s\n' "$answer" | grep -E '^(new|del)') &&
    problem "changes are pending and would be applied as well: $pending"
  snapshots=$(sed -n 's/^\[\(.*\)\]$/\1/p' "$conf" | grep -v -e '^PENDING$' -e '^special:')
  [ -z "$snapshots" ] || [ "$with_snapshots" = yes ] ||
    problem "VM $vmid has snapshots ($(echo "$snapshots" | tr '\n' ' ')); rolling one back would undo this. \
If that is meant: --with-snapshots"
  { ha-manager config; cat "$root/etc/pve/ha/resources.cfg"; } 2>/dev/null </dev/null |
    grep -Eq "^vm: ?$vmid\$" &&
    problem "high availability manages VM $vmid, and then start and stop return before anything happened: \
ha-manager remove vm:$vmid first, add it again afterwards"
  case $(vm_status) in
    running | stopped) ;;
    *) problem "VM $vmid is neither running nor stopped: $(vm_status)" ;;
  esac
}

# -- the lines that change: functions that `changes` calls with key, old and new value

compare() {
  now=$(value_of "$1")
  same "$1" "$now" "$3" && return 0
  todo=$((todo + 1))
  same "$1" "$now" "$2" ||
    problem "$1 is '$now' here and was '$2' for the session: give it the host's answers again, \
then make this script again"
}

show_change() {
  now=$(value_of "$1")
  if same "$1" "$now" "$3"; then
    say "  $1: $3"
    return 0
  fi
  [ -z "$now" ] || say "- $1: $now"
  [ -z "$3" ] || say "+ $1: $3"
}

pick() { # the value that $wanted_key will have
  [ "$1" != "$wanted_key" ] || wanted=$3
}

will_be() { # key
  wanted_key=$1 wanted=$(value_of "$1")
  changes pick
}

holds() { # counts what is not as wanted
  now=$(value_of "$1")
  same "$1" "$now" "$3" || { todo=$((todo + 1)) && say "  not so: $1 is '$now', not '$3'"; }
}

# The VM would not start: "q35 machine model is not enabled" (qemu-server, PCI.pm).
never_pcie_without_q35() {
  will_be machine
  case $wanted in *q35*) return 0 ;; esac
  for key in $(printf '%s\n' "$config" | sed -n 's/^\(hostpci[0-9]*\): .*/\1/p'); do
    will_be "$key"
    case ",$wanted," in
      *,pcie=1,* | *,pcie=on,* | *,pcie=yes,* | *,pcie=true,*)
        problem "$key has pcie=1 and the machine is not q35: the VM would not start"
        ;;
    esac
  done
}

# Addresses behind one hostpci line: its own, or all that its mapping names on this node.
addresses_of() { # hostpci value
  case ,$1, in
    *,mapping=*)
      mapping=${1#*mapping=}
      mapping=${mapping%%,*}
      node=$(uname -n)
      awk -v wanted="$mapping" -v node="node=${node%%.*}" '
        /^[^ \t]/ { name = $1; if (name == "pci:") name = $2 }
        name == wanted && $1 == "map" {
          here = 0; path = ""
          count = split($2, words, ",")
          for (i = 1; i <= count; i++) {
            if (words[i] == node) here = 1
            if (words[i] ~ /^path=/) path = substr(words[i], 6)
          }
          if (here) print path
        }' "$root/etc/pve/mapping/pci.cfg" 2>/dev/null
      ;;
    *) printf '%s\n' "$1" | tr ',' '\n' | sed -n -e 's/^host=//' -e '/^[0-9a-fA-F:.;]*$/p' | sed 1q ;;
  esac
}

# QEMU refuses a clique on anything but a display function of NVIDIA, and -set finds only entries of one
# function.
check_gpu() { # hostpci key
  will_be "$1"
  # Slots of one mapping draw from the same devices: they are looked at once.
  case "|$seen|" in *"|$wanted|"*) return 0 ;; esac
  seen="$seen|$wanted"
  found=$(addresses_of "$wanted")
  [ -n "$found" ] || problem "$1 ($wanted) names no device of this node"
  for address in $found; do
    case $address in
      *';'* | *:??) problem "$1 passes more than one function ($address): name one function, ….0" ;;
    esac
    case $address in ????:*:*) ;; *) address=0000:$address ;; esac
    device=$root/sys/bus/pci/devices/$(printf '%s' "$address" | tr '[:upper:]' '[:lower:]')
    kind=$(cat "$device/vendor" "$device/class" 2>/dev/null | tr '\n' ' ')
    case $kind in
      '0x10de 0x0300'* | '0x10de 0x0302'*) ;;
      *) problem "$1 ($address) is not an NVIDIA GPU on this host: ${kind:-it is not there}" ;;
    esac
  done
}

check_gpus() {
  seen=''
  for pair in $cliques; do check_gpu "${pair%=*}"; done
}
