#!/bin/sh
# Peerpath collector. It reads this machine and changes nothing on it.
#   sh FILE > answers.txt     runs it; hand answers.txt back
#   sh FILE --list            prints every command it would run and runs none
#   sh FILE --only ID,ID      asks only these probes
#   sh FILE --redact          replaces names, addresses, serials and UUIDs before it prints
# Each command gets no standard input, a time limit, an output limit and its own process group;
# its output goes through a private folder that is removed at the end.
# The commands stand in single quotes because an inner sh expands them (SC2016, SC2089, SC2090);
# every sh on Linux has ulimit -S, though POSIX does not (SC3045).
# shellcheck disable=SC2016,SC2089,SC2090,SC3045

# SHA-256 of this file with the value of the next line left empty.
script_sha256=@sha256@
nonce=@nonce@
role=@role@
asks_root=@asks_root@

# Everything it asks; the rest of this file runs these commands and prints what they said.
# probe ID slow|quick SECONDS KIB TITLE, then for each way to ask: NEEDED-TOOLS root|user COMMAND
probes() {
@probes@
}

mark() { printf '=%s= %s\n' "$nonce" "$*"; }

# Hundredths of a second since boot, in $clock. Starts no process, as date would.
read_clock() {
  clock=0.00
  read -r clock _ 2>/dev/null </proc/uptime
  clock=${clock%.*}${clock#*.}
}

describe() { # id pace seconds kib title (needs who command)...
  printf '%s  %s (at most %s s)\n' "$1" "$5" "$3"
  shift 5
  while [ $# -ge 3 ]; do
    printf '%s\n' "$3" | sed 's/^/    /'
    [ "$2" = user ] || printf '      as root, where sudo -n allows it\n'
    [ -z "$1" ] || printf '      needs: %s\n' "$1"
    shift 3
  done
}

all_there() {
  for tool in $1; do command -v "$tool" >/dev/null 2>&1 || return 1; done
}

# Turns this process into the command, so that $! is also the command's process group. The limit on
# file size is the output limit: output goes straight to a file, and no pipe can be held open.
become() { # seconds kib who command
  ulimit -S -f $(($2 * 2)) 2>/dev/null
  if [ "$limit" = timeout ]; then
    inner="timeout -k 2 $1" outer="timeout -k 2 $(($1 + 3))"
  else
    inner='' outer=$own_session
  fi
  # Root's processes can only be stopped by root's own timeout, so that one stands inside.
  if [ "$3$by_sudo" = rootyes ]; then
    # shellcheck disable=SC2086
    exec $outer sudo -n env LC_ALL=C@shared@ $inner sh -c "$4"
  fi
  # shellcheck disable=SC2086
  exec ${inner:-$outer} sh -c "$4"
}

# Without setsid there is no group, only the command's own process.
# shellcheck disable=SC2317
end_group() { # signal group
  kill "-$1" "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null
}

watchdog() { # seconds group
  # shellcheck disable=SC2086
  exec $own_session sh -c '
    sleep "$1"
    kill -TERM "-$2" || kill -TERM "$2"
    sleep 2
    kill -KILL "-$2" || kill -KILL "$2"' sh "$@"
}

run_alternative() { # id seconds kib who command
  become "$2" "$3" "$4" "$5" </dev/null >"$folder/$1.out" 2>"$folder/$1.err" &
  group=$!
  echo "$group" >"$folder/$1.group"
  guard=''
  if [ "$limit" = watchdog ]; then
    watchdog "$2" "$group" </dev/null >/dev/null 2>&1 &
    guard=$!
  fi
  wait "$group" 2>/dev/null
  code=$?
  # What the command left running goes with it.
  kill -KILL "-$group" 2>/dev/null
  : >"$folder/$1.group"
  [ -z "$guard" ] || end_group KILL "$guard"
}

# Tries the alternatives in order; the first whose tools are there answers.
answer() { # id pace seconds kib title (needs who command)...
  id=$1 seconds=$3 kib=$4 code=127 alternative=-1 number=-1 timed_out=no
  : >"$folder/$id.out" 2>"$folder/$id.err"
  read_clock
  began=$clock
  shift 5
  while [ $# -ge 3 ] && [ "$code" = 127 ]; do
    number=$((number + 1))
    if all_there "$1"; then
      run_alternative "$id" "$seconds" "$kib" "$2" "$3"
      [ "$code" = 127 ] || alternative=$number
    fi
    shift 3
  done
  read_clock
  took=$((clock - began))
  [ "$code" -ge 124 ] && [ "$took" -ge $((seconds * 100 - 5)) ] && timed_out=yes
  echo "exit=$code ms=$((took * 10)) alternative=$alternative timed_out=$timed_out" >"$folder/$id.end"
}

# Replaces, in a file, what names people and machines; the same name by the same word in every file.
# UUIDs get numbers of this run alone: a guest cannot be matched to its VM by them any more.
hide_names() { # file
  awk -v map="$folder/hidden" -v own="$(uname -n)" -v run="$nonce" '
    function word_for(kind, secret) {
      if (!((kind, secret) in words)) {
        words[kind, secret] = "<" kind "-" ++count[kind] ">"
        if (kind == "uuid")
          words[kind, secret] = sprintf("%s-0000-4000-8000-%012d", run, count[kind])
        printf "%s\t%s\t%s\n", kind, secret, words[kind, secret] >>map
      }
      return words[kind, secret]
    }
    # before: what must stand before the secret, and stays. A word that goes on is another word.
    function hide(kind, before, pattern, done, lead, secret, rest) {
      done = ""
      while (match($0, before pattern)) {
        done = done substr($0, 1, RSTART - 1)
        secret = substr($0, RSTART, RLENGTH)
        rest = substr($0, RSTART + RLENGTH)
        match(secret, "^" before)
        lead = substr(secret, 1, RLENGTH)
        secret = substr(secret, RLENGTH + 1)
        if (rest !~ /^[0-9A-Za-z]/ && secret !~ nobodys) secret = word_for(kind, secret)
        done = done lead secret
        $0 = rest
      }
      $0 = done $0
    }
    BEGIN {
      while ((getline line <map) > 0) {
        split(line, part, "\t")
        words[part[1], part[2]] = part[3]
        count[part[1]]++
      }
      gsub(/[^0-9a-f]/, "", run)
      run = substr(run "00000000", 1, 8)
      # A host that is called like a tool or a folder has no name to hide.
      if (length(own) < 4 || index(" debian host linux localhost node proxmox qemu ", " " own " ")) own = "\001"
      gsub(/[.]/, "[.]", own)
      nobodys = "^<|^(127|0|255)[.]|^0*-0000-|^03000200-0400-|^(None|none|Not|N/A|0+)$"
      edge = "(^|[^0-9A-Za-z_.-])"
      x = "[0-9A-Fa-f]"; x2 = x x; x4 = x2 x2; byte = "[0-9][0-9]?[0-9]?"
      name = "[^][ \t,;:\"<>/=]+"
    }
    {
      hide("uuid", "(^|[^0-9A-Za-z])", x4 x4 "-" x4 "-" x4 "-" x4 "-" x4 x4 x4)
      hide("serial", "Device Serial Number ", "[0-9a-f-]+")
      hide("mac", "(^|[^0-9A-Za-z:])", x2 "[:-]" x2 "[:-]" x2 "[:-]" x2 "[:-]" x2 "[:-]" x2)
      hide("ip", "(^|[^0-9A-Za-z_.+~-])", byte "[.]" byte "[.]" byte "[.]" byte)
      hide("ip", "(^|[^0-9A-Za-z:.])", "[23f]" x x x ":(:|[0-9A-Fa-f]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]*")
      hide("serial", "([Ss]erial|[Ss]erial[ _][Nn]umber|[Aa]sset [Tt]ag)[ \t]*[:=] *", "[0-9A-Z][0-9A-Za-z._/-]+")
      hide("serial", "/by-id/", "[^ ,]+")
      hide("email", edge, "[0-9A-Za-z._%+-]+@[0-9A-Za-z-]+[.][0-9A-Za-z.-]*[0-9A-Za-z]")
      hide("user", "(/home/|ciuser: )", "[^ /,:]+")
      hide("credential", "(api-key|api_key|[Pp]assword|[Ss]ecret|_token|-token)[ =:]+", "[^ ,;<]+")
      hide("storage", "^(scsi|virtio|sata|ide|efidisk|tpmstate|unused|mp|rootfs)[0-9]*: ", name)
      hide("storage", "(file|filename)=", "[/][^ ,]+")
      hide("host", "^(name|hostname|tags|searchdomain): ", "[^ ]+")
      hide("host", "(node=|/libvirt/qemu/|<name>|guest=)", name)
      if ($0 ~ /^ *([0-9]+|-) +[^ ]+ +(running|stopped|shut off|paused)/)
        hide("host", "^ *([0-9]+|-) +", "[^ ]+")
      if (named) hide("host", "^", name)
      named = $0 == "-name"
      hide("host", edge, own)
      print
    }' "$1" >"$1.hidden" && mv "$1.hidden" "$1"
}

# Prints a file with every line prefixed. One newline is added first: the last line then always ends,
# and a missing final newline can still be told. Under the limit, the same write shows a full file.
show_stream() { # prefix file kib
  [ -s "$2" ] || return 0
  trap '' XFSZ
  ulimit -S -f $(($3 * 2)) 2>/dev/null
  { printf '\n' >>"$2"; } 2>/dev/null || full=yes
  ulimit -S -f "$file_limit" 2>/dev/null
  trap - XFSZ
  if [ "$full" = yes ]; then
    truncated=yes full=no
    printf '\n' >>"$2"
  fi
  [ "$redact" = no ] || hide_names "$2"
  sed "s/^/$1 /" "$2"
}

show() { # id kib
  truncated=no
  mark probe "$1"
  show_stream '|' "$folder/$1.out" "$2"
  show_stream '!' "$folder/$1.err" "$2"
  read -r result <"$folder/$1.end"
  mark 'done' "$1" "$result truncated=$truncated"
  shown=$((shown + 1))
}

# Slow probes all start first and are shown last; the others run and show one after the other.
probe() { # id pace seconds kib title (needs who command)...
  case ",$only," in ,, | *",$1,"*) asked=$((asked + 1)) ;; *) return 0 ;; esac
  case $pass-$2 in
    list-*) describe "$@" ;;
    start-slow)
      answer "$@" &
      echo "$!" >"$folder/$1.answer"
      ;;
    quick-quick)
      answer "$@"
      show "$1" "$4"
      ;;
    slow-slow)
      read -r answering <"$folder/$1.answer"
      wait "$answering"
      : >"$folder/$1.answer"
      show "$1" "$4"
      ;;
  esac
}

# Ends what still runs and removes the folder; also on a signal and when the connection is gone.
# shellcheck disable=SC2317
stop() { # exit code
  trap '' INT TERM HUP PIPE
  trap - EXIT
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
  # First those that would write into the folder while it is being removed.
  for file in "$folder"/*.answer; do
    read -r answering 2>/dev/null <"$file" && kill -KILL "$answering" && wait "$answering"
  done 2>/dev/null
  for file in "$folder"/*.group; do
    read -r group 2>/dev/null <"$file" && end_group KILL "$group"
  done
  rm -rf "$folder"
  exit "$1"
}

make_folder() {
  umask 077
  for base in "${TMPDIR:-/tmp}" /tmp /dev/shm /run; do
    folder=$(mktemp -d "$base/peerpath.${PEERPATH_RUN-}XXXXXXXX" 2>/dev/null) && return 0
  done
  echo 'peerpath: no folder for temporary files' >&2
  exit 1
}

# When standard input closes, the connection that carries this script is gone.
watch_stdin() {
  { while read -r _; do :; done; kill -TERM $$; } <&3 >/dev/null 2>&1 &
  watcher=$!
}

look_around() {
  read -r stat 2>/dev/null <"/proc/$$/stat"
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  group=${3-} session=${4-} uid=$(id -u)
  by_sudo=no own_session='' limit=watchdog
  if [ "$asks_root" = yes ] && [ "$uid" != 0 ]; then
    sudo -n env true 2>/dev/null && by_sudo=yes
  fi
  command -v setsid >/dev/null && own_session=setsid
  # Only a timeout that makes its own process group will do; some do not.
  timeout -k 2 9 sh -c 'kill -0 "-$PPID"' 2>/dev/null && limit=timeout
  file_limit=$(ulimit -S -f)
}

# The hash of the file that runs, taken as the first lines say; none when it came over a wire.
own_sha256() {
  grep -qx "nonce=$nonce" "$0" 2>/dev/null || return 0
  sum=$(sed 's/^script_sha256=.*/script_sha256=/' "$0" | sha256sum 2>/dev/null)
  printf '%s' "${sum%% *}"
}

header() {
  printf '\n'
  mark begin peerpath.collector/1 "role=$role"
  mark about "script=$script_sha256 ran=$(own_sha256) redacted=$redact"
  mark about "time=$(date -u +%Y-%m-%dT%H:%M:%SZ) uid=$uid sudo=$by_sudo limit=$limit"
  mark about "pid=$$ group=$group session=$session folder=$folder"
}

footer() {
  sum=$(cat "$folder"/*.out "$folder"/*.err 2>/dev/null | sha256sum 2>/dev/null)
  mark end "probes=$shown sha256=${sum%% *}"
}

main() {
  only='' pass='' watching=no watcher='' shown=0 full=no redact=no asked=0
  while [ $# -gt 0 ]; do
    case $1 in
      --list) pass=list ;;
      --only) only=${2-} && shift ;;
      --redact) redact=yes ;;
      --watch-stdin) watching=yes ;;
      *) echo "peerpath: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
  done
  # bash counts file sizes in other units unless it keeps to POSIX.
  POSIXLY_CORRECT=1
  PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C TERM=dumb
@arguments@
  probes
  [ "$asked" -gt 0 ] || { echo "peerpath: no probe is called $only" >&2 && exit 2; }
  [ "$pass" != list ] || exit 0
  if [ "$redact" = yes ]; then
    command -v awk >/dev/null || { echo 'peerpath: --redact needs awk' >&2 && exit 2; }
    echo 'peerpath: replaced by words like <host-1>; UUIDs no longer tell which VM a guest is' >&2
  fi
  exec 3<&0 </dev/null
  make_folder
  trap 'stop $?' EXIT
  trap 'stop 130' INT
  trap 'stop 143' TERM
  trap 'stop 129' HUP
  trap 'stop 141' PIPE
  [ "$watching" = no ] || watch_stdin
  exec 3<&-
  look_around
  header
  for pass in start quick slow; do probes; done
  footer
}

{ main "$@"; exit; }
