"""What the owner of an installation looks after: health, metrics, copies, retention."""
