prepare_host() { :; }
undo_host() { :; }
