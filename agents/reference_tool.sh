# Runs a reference tool that is on this machine, on all GPUs, unless they are in use: PATH [ARGUMENT…].
# @gpus among the arguments is how many there are. NCCL's runs twice: without P2P, then as NCCL chooses.

if ! holders=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader); then
  echo 'nvidia-smi does not say who uses the GPUs; nothing was run' >&2
  exit 2
fi
if [ -n "$holders" ]; then
  echo "the GPUs are busy, with process $(echo "$holders" | head -n 1) for one; nothing was run" >&2
  exit 2
fi
gpus=$(nvidia-smi -L | grep -c '^GPU ')
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  [ "$word" != @gpus ] || word=$gpus
  set -- "$@" "$word"
  left=$((left - 1))
done
case $1 in
  */all_reduce_perf)
    echo "\$ NCCL_P2P_DISABLE=1 $*"
    NCCL_P2P_DISABLE=1 "$@"
    echo "\$ $*"
    ;;
esac
"$@"
exit
