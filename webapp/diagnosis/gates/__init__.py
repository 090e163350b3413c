"""The gates of P2P, one file each: `judge(facts, path)` for a path on which they apply."""
