"""A report's files are all of one machine, whichever of them say so."""

from __future__ import annotations

from agents.facts import View
from agents.sosreport import hint_with_owner, owners

HOST = b"[    0.000000] Linux version 6.8.12-4-pve (build@proxmox)\n"
GUEST = b"[    0.000000] Hypervisor detected: KVM\n"
GRUB = b'GRUB_CMDLINE_LINUX="quiet"\n'


def test_a_file_that_says_nothing_is_its_reports() -> None:
    files = [
        ("sosreport-a/sos_commands/kernel/dmesg", GUEST),
        ("sosreport-a/etc/default/grub", GRUB),
        ("b/sos_commands/kernel/dmesg", HOST),
        ("b/etc/default/grub", GRUB),
        ("notes/grub", GRUB),
    ]
    found = owners(files)
    assert dict(found) == {"sosreport-a/": View.GUEST, "b/": View.HOST}
    hints = [hint_with_owner(path, "grub", found) for path, _ in files[1::2]]
    assert hints == ["guest grub", "host grub"]
    assert hint_with_owner("notes/grub", "grub", found) == "grub"


def test_words_of_both_machines_tell_nothing() -> None:
    files = [("a/sos_commands/x", HOST + GUEST), ("a/etc/default/grub", GRUB)]
    assert not owners(files)
