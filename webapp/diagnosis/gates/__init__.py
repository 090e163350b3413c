"""The gates of P2P, one file each: `judge(situation, path)` for a path on which they apply."""
