"""`rotate-keys [--new]`: changes the key that seals stored SSH keys and other secrets."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp import sealing
from webapp.records import stored_keys


class Command(BaseCommand):
    help = (
        "Seals all stored secrets (SSH keys, second factors, webhooks) with a new key. With"
        " PEERPATH_SECRET_KEYS: put the new key first (--new prints one), restart, run this, then take the"
        " old ones out. Without it the key file is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--new", action="store_true", help="print a fresh key and do nothing")

    def handle(self, *, new: bool, **_: Any) -> None:
        if new:
            self.stdout.write(sealing.new_key())
            return
        try:
            self._rotate()
        except sealing.SealError as error:
            raise CommandError(str(error)) from error

    def _rotate(self) -> None:
        if settings.SECRET_KEYS:
            ring = sealing.keyring()
            count = stored_keys.keys_reseal(ring)
            others = ", ".join(key_id for key_id, _ in ring.keys[1:])
            advice = f" Not used any more: {others}. Take them out." if others else ""
        else:
            sealing.keyring()  # so that there is a file
            lines = [sealing.new_key(), *sealing.key_file().read_text().split()]
            sealing.replace_keys(lines)
            count = stored_keys.keys_reseal(sealing.keyring())
            sealing.replace_keys(lines[:1])
            advice = " Backups made before this need the key file of their time."
        self.stdout.write(f"{count} secrets are sealed anew.{advice}")
