"""Rules by what they look at: `rule(case)` gives a finding or None, and each module lists its RULES."""
