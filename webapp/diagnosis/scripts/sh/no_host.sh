prepare_host() { :; }
look_at_host() { :; }
undo_host() { :; }
