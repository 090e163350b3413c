"""The host admin's half: scripts out, printed output back."""
