# What P0 keeps: the VM's configuration, what decides how it starts, and how the host boots.
newest_save() {
  saved=''
  for folder in "$store"/P0.*; do
    [ -f "$folder/sums" ] && saved=$folder
  done
}

# Proxmox sorts the lines when it writes, so their order before the first snapshot means nothing.
same_config() { # two files
  [ "$(sed '/^\[/,$d' "$1" | sort)" = "$(sed '/^\[/,$d' "$2" | sort)" ] &&
    [ "$(sed -n '/^\[/,$p' "$1")" = "$(sed -n '/^\[/,$p' "$2")" ]
}
