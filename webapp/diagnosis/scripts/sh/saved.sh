# What P0 keeps: the VM's configuration, what decides how it starts, and how the host boots.
newest_save() {
  saved=''
  for folder in "$store"/P0.*; do
    [ -f "$folder/sums" ] && saved=$folder
  done
}
