"""Facts in, verdicts out. Pure: no Django, no I/O, no clock."""
