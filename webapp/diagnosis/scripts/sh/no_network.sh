warn_first() { :; }
