options='[--yes] --unit NAME.service | --compose FILE --service NAME | --file START-SCRIPT'

settings_before() {
  unit='' compose='' service='' file=''
}

option() { # a word, and what follows it
  case $1 in
    --unit) unit=${2-} took=2 ;;
    --compose) compose=${2-} took=2 ;;
    --service) service=${2-} took=2 ;;
    --file) file=${2-} took=2 ;;
  esac
}

only_of() { # what characters value
  case $3 in
    '' | -* | *[!$2]*) problem "'$3' is not $1" ;;
  esac
}

# Where the engine is started, as the person says: a systemd unit, a compose service, or a start script.
pick_target() {
  case ${unit:+u}${compose:+c}${file:+f} in
    u)
      only_of 'a unit' 'A-Za-z0-9@._:-' "$unit"
      case $unit in *.service) ;; *) problem "'$unit' does not end in .service" ;; esac
      need systemctl
      target=$root/etc/systemd/system/$unit.d/50-peerpath-$phase.conf
      ;;
    c)
      only_of 'a path' 'A-Za-z0-9@._:/+-' "$compose"
      only_of 'a service' 'A-Za-z0-9._-' "$service"
      [ -f "$compose" ] || problem "$compose is not there"
      need docker
      target=$(dirname "$compose")/compose.override.yaml
      for other in docker-compose.override.yml docker-compose.override.yaml compose.override.yml; do
        [ ! -f "$(dirname "$compose")/$other" ] ||
          problem "$other is there already: add the variables to it by hand"
      done
      ;;
    f)
      [ -f "$file" ] || problem "$file is not there"
      target=$file
      ;;
    *)
      echo 'Say where the engine is started, one of --unit, --compose with --service, or --file:' >&2
      echo '  systemctl list-units --type=service | grep -i -e vllm -e sglang ; docker compose ls' >&2
      usage
      ;;
  esac
  store=$root/root/peerpath/guest
  kept=$store/$phase.$(printf '%s' "$target" | tr '/' '_')
  # A container gets its own environment, not that of the unit that starts it.
  if [ -n "$unit" ] && [ "$problems" = 0 ]; then
    shown=$(systemctl cat "$unit" 2>&1 </dev/null) || problem "there is no unit $unit: $shown"
    # Without what this script wrote before.
    shown=$(printf '%s\n' "$shown" | awk -v own="# $target" '/^# \// { skip = ($0 == own) } !skip')
    printf '%s\n' "$shown" | grep -Eq '^ExecStart=.*(docker|podman|nerdctl)' &&
      problem "$unit starts a container: add the variables there, -e NAME=VALUE, by hand"
  fi
}

in_unit() { # one Environment= line; % begins a specifier there
  printf 'Environment="%s=%s"\n' "$1" "$(printf '%s' "$2" | sed 's/%/%%/g')"
}

in_compose() {
  printf '      %s: "%s"\n' "$1" "$2"
}

in_file() {
  printf "export %s='%s'\n" "$1" "$2"
}

# The ExecStart of the unit without the flags; empty when it has none of them.
start_without_flags() {
  line=$(printf '%s\n' "$shown" | grep '^ExecStart=' | tail -n 1)
  new=$line
  for flag in $drop_flags; do
    new=$(printf '%s\n' "$new" | sed -e "s/ $flag\$//" -e "s/ $flag / /g")
  done
  case $line in *\\) return 0 ;; esac
  [ "$new" = "$line" ] || printf 'ExecStart=\n%s\n' "$new"
}

unit_text() {
  echo "# Peerpath $phase; the rollback script removes this file."
  echo '[Service]'
  settings in_unit
  [ -z "$drop_flags" ] || start_without_flags
}

compose_text() {
  echo "# Peerpath $phase; the rollback script removes this file."
  echo 'services:'
  echo "  $service:"
  echo '    environment:'
  settings in_compose
}

# After the first line, which says what runs the script.
file_text() { # the script to start from
  sed 1q "$1"
  echo "# Peerpath $phase begins"
  settings in_file
  echo "# Peerpath $phase ends"
  sed 1d "$1" | without_block | without_flags
}

without_block() {
  sed "/^# Peerpath $phase begins\$/,/^# Peerpath $phase ends\$/d"
}

without_flags() {
  if [ -z "$drop_flags" ]; then cat; else
    set --
    for flag in $drop_flags; do set -- "$@" -e "s/ $flag\$//" -e "s/ $flag / /g"; done
    sed "$@"
  fi
}

new_text() {
  if [ -n "$unit" ]; then unit_text; elif [ -n "$compose" ]; then compose_text; else file_text "$file"; fi
}

show_diff() { # new text
  if [ -f "$target" ]; then
    printf '%s\n' "$1" | diff "$target" - | grep '^[<>]' | sed -e 's/^</-/' -e 's/^>/+/'
  else
    printf '%s\n' "$1" | sed 's/^/+ /'
  fi
}

# Makes what was written count; says nothing of whether the engine answers.
reload() {
  if [ -n "$unit" ]; then
    systemctl daemon-reload </dev/null && systemctl restart "$unit" </dev/null && stays_active
  elif [ -n "$compose" ]; then
    docker compose --project-directory "$(dirname "$compose")" -f "$compose" ${over:+-f "$over"} \
      up -d "$service" </dev/null
  fi
}

stays_active() {
  for _ in 1 2 3 4 5; do
    sleep 2
    systemctl is-active "$unit" >/dev/null </dev/null || return 1
  done
}

put_back() {
  if [ -f "$kept" ]; then cp "$kept" "$target"; else rm -f "$target"; fi
}

by_hand() {
  say 'To go back, type:'
  if [ -f "$kept" ]; then type_this "cp $kept $target"; else type_this "rm -f $target"; fi
  [ -z "$unit" ] || type_this "systemctl daemon-reload && systemctl restart $unit"
  [ -z "$compose" ] || type_this "docker compose -f $compose up -d $service"
}

hold_on() {
  trap '' HUP PIPE
  trap 'say "stopped by a signal"; by_hand; exit 1' INT TERM
}
