#!/bin/sh
# Peerpath collector. It reads this machine and changes nothing on it.
#   sh FILE > answers.txt     runs it; hand answers.txt back
#   sh FILE --list            prints every command it would run and runs none
#   sh FILE --only ID,ID      asks only these probes
#   sh FILE --redact          replaces names, addresses, serials and UUIDs before it prints
# Each command gets no standard input, a time limit, an output limit and its own process group; where it says root,
# it has root's rights if sudo -n gives them. Output goes through a private folder that is removed at the end.
# The commands are for an inner sh, some words are meant to split, traps call functions, ulimit -S is everywhere:
# shellcheck disable=SC2016,SC2046,SC2086,SC2089,SC2090,SC2317,SC3045

# SHA-256 of this file with the value of the next line left empty.
script_sha256=@sha256@
nonce=@nonce@ role=@role@ asks_root=@asks_root@

# Everything it asks; the rest of this file runs these commands and prints what they said.@functions@
# probe ID slow|quick SECONDS KIB TITLE, then for each way to ask: NEEDED-TOOLS root|user COMMAND
probes() {
@probes@
}

mark() { printf '=%s= %s\n' "$nonce" "$*"; }
refuse() { echo "peerpath: $1" >&2 && exit 2; }
all_there() { for tool in $1; do command -v "$tool" >/dev/null 2>&1 || return 1; done; }
end_left() { kill -9 $(grep -lsF "RUN=$PEERPATH_RUN" /proc/[0-9]*/environ | tr -dc '0-9\n' | grep -vx $$); } 2>/dev/null
end_groups() { for one in "$@"; do kill -KILL "-$one" || kill -KILL "$one"; done 2>/dev/null; }

describe() { # id pace seconds kib title (needs who command)...
  printf '%s  %s (at most %s s)\n' "$1" "$5" "$3"
  shift 5
  while [ $# -ge 3 ]; do
    printf '%s\n' "$3" | sed 's/^/    /'
    [ "$1$2" = user ] || echo "      as $2${1:+, needs $1}"
    shift 3
  done
}

# Hundredths of a second since boot, in $clock. Starts no process, as date would.
read_clock() { read -r clock _ 2>/dev/null </proc/uptime || clock=0.00; clock=${clock%.*}${clock#*.}; }

# Notes this process before it becomes another. "stop" moves the folder away, then ends what is noted: what comes too
# late to be read there finds no folder and ends itself.
enlist() { read -r self _ </proc/self/stat && echo "$self" >>"$folder/$1.groups" && [ -d "$folder" ] || exit 127; }

# Turns this process into the command, so that $! is also its process group. Root's processes can only be stopped by
# root's own timeout. Output goes straight to a file, whose size is limited: no pipe can be held open.
become() { # id seconds kib who command
  enlist "$1"; shift
  ulimit -S -f $(($2 * 2)) 2>/dev/null
  [ "$3$by_sudo" != rootyes ] || exec $own_group sudo -n env LC_ALL=C@shared@ ${by_timeout:+timeout -k 2 $1} sh -c "$4"
  exec $own_group sh -c "$4"
}

# Ends the group after its time; where there is no setsid, its first process.
guard() { # id seconds group
  enlist "$1"; shift
  exec $own_group sh -c 'sleep $1; for how in TERM KILL; do kill -$how -$2 || kill -$how $2; sleep 2; done' sh "$@"
}

run_alternative() { # id seconds kib who command
  read_clock; began=$clock
  { become "$@" </dev/null >"$folder/$1.out" 2>"$folder/$1.err"; } 2>/dev/null & running=$!
  guard "$1" "$2" "$running" </dev/null >/dev/null 2>&1 & guarding=$!
  code=0; wait "$running" 2>/dev/null || code=$?
  end_groups "$guarding" "$running" # and what the command left running
  : >"$folder/$1.groups"
  read_clock; took=$((clock - began))
  [ "$took" -lt $(($2 * 100 - 5)) ] || timed_out=yes code=124
}

# Tries the alternatives in order; the first whose tools are there answers.
answer() { # id pace seconds kib title (needs who command)...
  id=$1 seconds=$3 kib=$4 code=127 alternative=-1 number=-1 timed_out=no took=0; shift 5
  : >"$folder/$id.out" 2>"$folder/$id.err"
  while [ $# -ge 3 ] && [ "$code" = 127 ]; do
    number=$((number + 1))
    all_there "$1" && run_alternative "$id" "$seconds" "$kib" "$2" "$3"
    [ "$code" = 127 ] || alternative=$number
    shift 3
  done
  echo "exit=$code ms=$((took * 10)) alternative=$alternative timed_out=$timed_out" >"$folder/$id.end"
}

# Replaces, in a file, what names people and machines; the same name by the same word in every file.
# UUIDs get numbers of this run alone: a guest cannot be matched to its VM by them any more.
hide_names() { # file
  awk -v map="$folder/hidden" -v own="$(uname -n)" -v run="$nonce" '
    function word_for(kind, secret) {
      if ((kind, secret) in words) return words[kind, secret]
      words[kind, secret] = sprintf(kind == "uuid" ? run "-0000-4000-8000-%012d" : "<" kind "-%d>", ++count[kind])
      printf "%s\t%s\t%s\n", kind, secret, words[kind, secret] >>map
      return words[kind, secret]
    }
    # before: what must stand before the secret, and stays. A word that goes on is another word.
    function hide(kind, before, pattern, done, secret) {
      done = ""
      while (match($0, before pattern)) {
        done = done substr($0, 1, RSTART - 1); secret = substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH)
        match(secret, "^" before)
        done = done substr(secret, 1, RLENGTH); secret = substr(secret, RLENGTH + 1)
        done = done ($0 !~ /^[0-9A-Za-z]/ && secret !~ nobodys ? word_for(kind, secret) : secret)
      }
      $0 = done $0
    }
    BEGIN {
      while ((getline line <map) > 0) { split(line, part, "\t"); words[part[1], part[2]] = part[3]; count[part[1]]++ }
      gsub(/[^0-9a-f]/, "", run); run = substr(run "00000000", 1, 8)
      # A host that is called like a tool or a folder has no name to hide.
      if (length(own) < 4 || index(" debian host linux localhost node proxmox qemu ", " " own " ")) own = "\001"
      gsub(/[.]/, "[.]", own)
      nobodys = "^<|^(127|0|255)[.]|^0*-0000-|^03000200-0400-|^(None|none|Not|N/A|0+)$"
      edge = "(^|[^0-9A-Za-z_.-])"; name = "[^][ \t,;:\"<>/=]+"
      x = "[0-9A-Fa-f]"; x2 = x x; x4 = x2 x2; byte = "[0-9][0-9]?[0-9]?"
    }
    {
      hide("uuid", "(^|[^0-9A-Za-z])", x4 x4 "-" x4 "-" x4 "-" x4 "-" x4 x4 x4)
      hide("serial", "(Device Serial Number |/by-id/)", "[^ ,]+")
      hide("mac", "(^|[^0-9A-Za-z:])", x2 "[:-]" x2 "[:-]" x2 "[:-]" x2 "[:-]" x2 "[:-]" x2)
      hide("ip", "(^|[^0-9A-Za-z_.+~-])", byte "[.]" byte "[.]" byte "[.]" byte)
      hide("ip", "(^|[^0-9A-Za-z:.])", "[23f]" x x x ":(:|[0-9A-Fa-f]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]*")
      hide("serial", "([Ss]erial|[Ss]erial[ _][Nn]umber|[Aa]sset [Tt]ag)[ \t]*[:=] *", "[0-9A-Z][0-9A-Za-z._/-]+")
      hide("email", edge, "[0-9A-Za-z._%+-]+@[0-9A-Za-z-]+[.][0-9A-Za-z.-]*[0-9A-Za-z]")
      hide("user", "(/home/|ciuser: )", "[^ /,:]+")
      hide("credential", "(api-key|api_key|[Pp]assword|[Ss]ecret|_token|-token)[ =:]+", "[^ ,;<]+")
      hide("storage", "^(scsi|virtio|sata|ide|efidisk|tpmstate|unused|mp|rootfs)[0-9]*: ", name)
      hide("storage", "(file|filename)=", "[/][^ ,]+")
      hide("host", "^(name|hostname|tags|searchdomain): ", "[^ ]+")
      hide("host", "(node=|/libvirt/qemu/|<name>|guest=)", name)
      if ($0 ~ /^ *([0-9]+|-) +[^ ]+ +(running|stopped|shut off|paused)/) hide("host", "^ *([0-9]+|-) +", "[^ ]+")
      if (named) hide("host", "^", name); named = $0 == "-name"
      hide("host", edge, own)
      print
    }' "$1" >"$1.hidden" && mv "$1.hidden" "$1"
}

# One newline is added to the file: the last line then always ends, and a missing final newline can still be told.
show_stream() { # prefix file kib
  [ -s "$2" ] || return 0
  [ "$(wc -c <"$2")" -lt $(($3 * 1024)) ] || truncated=yes
  printf '\n' >>"$2" || truncated=yes
  [ "$redact" = no ] || hide_names "$2"
  sed "s/^/$1 /" "$2"
}

show() { # id kib
  truncated=no; mark probe "$1"
  show_stream '|' "$folder/$1.out" "$2"
  show_stream '!' "$folder/$1.err" "$2"
  read -r result <"$folder/$1.end"; shown=$((shown + 1)); mark 'done' "$1" "$result truncated=$truncated"
}

# Slow probes all start first and are shown last; the others run and show one after the other.
probe() { # id pace seconds kib title (needs who command)...
  case ",$only," in ,, | *",$1,"*) asked=$((asked + 1)) ;; *) return 0 ;; esac
  case $pass-$2 in
    list-*) describe "$@" ;;
    start-slow) answer "$@" 2>/dev/null & echo "$!" >"$folder/$1.answer" ;;
    quick-quick) answer "$@" && show "$1" "$4" ;;
    slow-slow) read -r answering <"$folder/$1.answer" && wait "$answering"; : >"$folder/$1.answer"; show "$1" "$4" ;;
  esac
}

# Ends what still runs and removes the folder. On a signal, or without a connection: what left its groups, by the mark.
stop() { # exit code
  trap '' INT TERM HUP PIPE; trap - EXIT
  [ "$1" != 130 ] || echo 'peerpath: stopped before its end; what it printed is a part, of use all the same' >&2
  exec 2>/dev/null; [ -z "$watcher" ] || kill "$watcher"
  mv "$folder" "$folder.end" && folder=$folder.end
  # First those that would start the next.
  for file in "$folder"/*.answer; do read -r one <"$file" && kill -KILL "$one" && wait "$one"; done
  end_groups $(cat "$folder"/*.groups)
  [ "$1" -lt 129 ] || [ -z "${PEERPATH_RUN-}" ] || end_left; rm -rf "$folder"
  exit "$1"
}

# A signal while it is made waits until "stop" knows the folder.
make_folder() {
  ended=; trap 'ended=129' HUP; trap 'ended=130' INT; trap 'ended=141' PIPE; trap 'ended=143' TERM
  for base in "${TMPDIR:-/tmp}" /tmp /dev/shm /run; do
    umask 077; folder=$(mktemp -d "$base/peerpath.${PEERPATH_RUN-}XXXXXXXX" 2>/dev/null) && return 0; done
  refuse 'no folder for temporary files'
}

# When standard input closes, the connection that carries this script is gone.
watch_stdin() { { while read -r _; do :; done; kill -TERM $$; } <&3 >/dev/null 2>&1 & watcher=$!; }

# A command holds one $(...): bash 5.2 forgets a signal that comes during the first of two.
look_around() {
  ran=$(own_sha256); now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  read -r stat 2>/dev/null <"/proc/$$/stat"; set -- ${stat##*) }
  group=${3-} session=${4-} uid=$(id -u) by_sudo=no own_group='' by_timeout=''
  if [ "$asks_root" = yes ] && [ "$uid" != 0 ] && sudo -n env true 2>/dev/null; then by_sudo=yes; fi
  command -v setsid >/dev/null && own_group=setsid; timeout -k 2 9 true 2>/dev/null && by_timeout=yes
}

own_sha256() { # of the file that runs, taken as the first lines say; none when it came over a wire
  grep -q "^nonce=$nonce " "$0" 2>/dev/null || return 0
  sum=$(sed 's/^script_sha256=.*/script_sha256=/' "$0" | sha256sum 2>/dev/null)
  printf '%s' "${sum%% *}"
}

main() {
  only='' pass='' watching=no watcher='' shown=0 redact=no asked=0
  while [ $# -gt 0 ]; do
    case $1 in
      --list) pass=list ;;
      --only) only=${2-} && shift ;;
      --redact) redact=yes ;;
      --watch-stdin) watching=yes ;;
      *) refuse "unknown option $1" ;;
    esac; shift
  done
  # bash counts file sizes in other units unless it keeps to POSIX.
  POSIXLY_CORRECT=1 PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C TERM=dumb
@arguments@
  probes
  [ "$asked" -gt 0 ] || refuse "no probe is called $only"
  [ "$pass" != list ] || exit 0
  [ "$redact" = no ] || all_there awk || refuse '--redact needs awk'
  [ "$redact" = no ] || echo 'peerpath: names become <host-1>; UUIDs no longer tell which VM a guest is' >&2
  exec 3<&0 </dev/null; look_around; make_folder
  trap 'stop $?' EXIT; trap 'stop 129' HUP; trap 'stop 130' INT; trap 'stop 141' PIPE; trap 'stop 143' TERM
  [ -z "$ended" ] || stop "$ended"; [ "$watching" = no ] || watch_stdin; exec 3<&-
  printf '\n'; mark begin peerpath.collector/1 "role=$role"
  mark about "script=$script_sha256 ran=$ran redacted=$redact time=$now"
  mark about "uid=$uid sudo=$by_sudo pid=$$ group=$group session=$session folder=$folder"
  for pass in start quick slow; do probes; done
  sum=$(cat "$folder"/*.out "$folder"/*.err 2>/dev/null | sha256sum 2>/dev/null)
  mark end "probes=$shown sha256=${sum%% *}"
  what='the file that it went to'; [ ! -t 1 ] || what='all that stands above'
  [ "$watching" = yes ] || echo "peerpath: complete; questions: $shown. Give back $what where you got this" >&2 || :
}

{ main "$@"; exit; }
