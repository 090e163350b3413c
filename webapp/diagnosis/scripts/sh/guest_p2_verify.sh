verify() {
  need nvidia-smi
  stop_if_problems
  check_grant r 'read from the other'
  check_grant w 'write to the other'
  [ -z "$(caches '')" ] ||
    say '  vLLM still keeps answers from before: run the apply script, unless vLLM was started since'
  [ "$todo" = 0 ] || { say "$title: $todo points do not hold."; exit 1; }
  say "$title: the driver grants it. Whether bytes arrive and collectives are right must be measured now: \
./run bench TARGET delivery allreduce"
}
