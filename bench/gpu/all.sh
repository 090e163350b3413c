#!/bin/sh
# Everything that is measured on a GPU machine, one step after the other, in one call of under nine minutes.
#
#   sh bench/gpu/all.sh NCCL_TESTS_SOURCE FOLDER [STEP...]
#
# PYTHON: the interpreter with torch, by default python3. NVBANDWIDTH: a build of it, if any. LIMIT: seconds, by
# default 530. On two GPUs the steps are what two can show; on more, what two cannot: sums over 2, 4 and all of
# them, and every pair. A step that would not fit in the time left is not begun, and the last lines say how to
# go on. Raw outputs and the log of each step are in FOLDER. NVLink multicast is off in every step. Exit code 1:
# a step failed or was not run.
set -u
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 TORCH_SYMM_MEM_DISABLE_MULTICAST=1

[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
source=$1 folder=$2
shift 2
python=${PYTHON:-python3} limit=${LIMIT:-530}
here=$(cd "$(dirname "$0")" && pwd) began=$(date +%s)
mkdir -p "$folder" || exit 2
build=${BUILD:-$folder/build}
gpus=$(nvidia-smi -L | grep -c '^GPU')
left="" bad=0

# step NAME SECONDS PROGRAM ARGUMENTS...: runs it when that many seconds are left.
step() {
    name=$1 needs=$2 program=$3
    shift 3
    now=$(($(date +%s) - began))
    if [ $((now + needs)) -gt "$limit" ]; then
        echo "== $name: not run, it needs $needs s and $((limit - now)) are left"
        left="$left $name" bad=1
        return
    fi
    echo "== $name at $now s"
    timeout -k 5 $((needs + 20)) "$python" "$here/$program" "$@" >"$folder/$name.log" 2>&1
    code=$?
    cat "$folder/$name.log"
    echo "== $name ended with $code after $(($(date +%s) - began - now)) s"
    [ $code -eq 0 ] || bad=1
}

sums() { # RANKS REPEATS SECONDS MORE...
    ranks=$1 repeats=$2 seconds=$3
    shift 3
    step "sums$ranks" "$seconds" allreduce_vs_nccl_tests.py "$source" --build "$build" --gpus "$ranks" \
        --keep "$folder/sums$ranks" --repeats "$repeats" --seconds "$seconds" "$@"
}

whole() { # NAME SECONDS
    step "$1" "$2" whole_runs.py "bench.$1" --folder "$folder" --longest "$(on_two 60 "$2")"
}

on_two() { # SECONDS OTHERWISE
    if [ "$gpus" -gt 2 ]; then echo "$2"; else echo "$1"; fi
}

one() {
    case $1 in
    build) step build 150 allreduce_vs_nccl_tests.py "$source" --build "$build" --only-build ;;
    sums2) if [ "$gpus" -gt 2 ]; then sums 2 5 95 --wide; else sums 2 5 95; fi ;;
    sums4) sums 4 5 110 --wide ;;
    sums8) sums 8 5 150 --wide ;;
    copies) step copies 70 copy_vs_memcpy_peer.py "$folder/copies" --seconds 65 \
        ${NVBANDWIDTH:+--nvbandwidth "$NVBANDWIDTH"} ;;
    copy) whole copy "$(on_two 55 130)" ;;
    contention) whole contention "$(on_two 35 90)" ;;
    delivery) whole delivery "$(on_two 20 150)" ;;
    memory | launch) step "$1" "$(on_two 25 50)" kernels.py "$1" --keep "$folder/$1.jsonl" ;;
    failures) step failures 170 failures.py --seconds 168 ;;
    *) echo "no such step: $1" && bad=1 ;;
    esac
}

ranks="2"
[ "$gpus" -ge 4 ] && ranks="$ranks 4"
[ "$gpus" -ge 8 ] && ranks="$ranks 8"
if [ $# -eq 0 ] && [ "$gpus" -gt 2 ]; then
    set -- build
    for count in $ranks; do set -- "$@" "sums$count"; done
    set -- "$@" copy contention delivery
elif [ $# -eq 0 ]; then
    set -- build sums2 copies copy contention memory launch delivery failures
fi

echo "$gpus GPUs, steps: $*"
nvidia-smi --query-gpu=index,name,driver_version,memory.used --format=csv,noheader
for name in "$@"; do one "$name"; done
[ -z "$left" ] || echo "to go on: BUILD=$build sh $0 $source $folder$left"
exit $bad
