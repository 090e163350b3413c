"""What people type, validated with an error that says what to do."""
