"""What the facts say of the machine, derived once for all rules."""
