"""Scripts for the host admin: apply, verify, roll back."""
