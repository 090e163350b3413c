"""Sessions, targets, runs and evidence: the records of a diagnosis and how they come in."""
