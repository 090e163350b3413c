"""News that goes out: mail to people, signed webhooks to programs. Follows the log of sessions."""
