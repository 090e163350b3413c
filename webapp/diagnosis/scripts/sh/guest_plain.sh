options='[--yes]'

settings_before() { :; }

option() { :; }
