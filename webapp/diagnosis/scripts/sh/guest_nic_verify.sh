check_card() {
  if link_text "$1" "$2" | cmp -s - "$(link_file "$1")"; then
    say "  ok: $1 ($2) keeps its name"
  else
    todo=$((todo + 1))
    say "  NOT so: $1 ($2) has no file that keeps its name"
  fi
}

verify() {
  stop_if_problems
  cards check_card
  [ "$todo" = 0 ] || { say "$title: $todo points do not hold."; exit 1; }
  say "$title: holds."
}
