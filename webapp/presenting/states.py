"""The word, icon and colour of every state that a page shows."""

# The icon and the colour of every state a pill can show.
STATES = {
    "known": ("✓", "ok"),
    "absent": ("∅", "open"),
    "unsupported": ("–", "unk"),
    "unreadable": ("!", "bad"),
    "not_run": ("◌", "unk"),
    "pass": ("✓", "ok"),
    "fail": ("✕", "bad"),
    "unknown": ("◌", "unk"),
    "not_applicable": ("–", "unk"),
    "supported": ("✓", "ok"),
    "refuted": ("✕", "bad"),
    "open": ("?", "open"),
    "recommended": ("★", "accent"),
    "possible": ("○", "open"),
    "no_effect": ("–", "unk"),
    "unsafe": ("⚠", "bad"),
    "blocked": ("✕", "bad"),
    "done": ("✓", "ok"),
    "queued": ("…", "unk"),
    "claimed": ("…", "accent"),
    "running": ("▸", "accent"),
    "succeeded": ("✓", "ok"),
    "partly": ("◐", "open"),
    "failed": ("✕", "bad"),
    "cancelled": ("■", "unk"),
    "lost": ("?", "bad"),
    "accepted": ("✓", "ok"),
    "draft": ("✎", "unk"),
    "proposed": ("…", "accent"),
    "approved": ("✓", "ok"),
    "rejected": ("✕", "bad"),
    "applied": ("▸", "accent"),
    "verified": ("✓", "ok"),
    "not_verified": ("◌", "unk"),
    "reverted": ("↺", "open"),
    "superseded": ("–", "unk"),
    "changes_wanted": ("✎", "open"),
    "withdrawn": ("↺", "unk"),
    "critical": ("✕", "bad"),
    "warning": ("⚠", "open"),
    "info": ("i", "accent"),
    "improved": ("✓", "ok"),
    "worse": ("✕", "bad"),
    "equivalent": ("=", "ok"),
    "cannot_tell": ("?", "open"),
    "comparable": ("=", "ok"),
    "with_caveats": ("?", "open"),
    "not_comparable": ("≠", "bad"),
    "held": ("✓", "ok"),
    "missed": ("✕", "bad"),
    "undecided": ("?", "open"),
}
# Kinds whose id says too much: an output was given, and does not tell; or it was refused.
_WORDS = {"not_run": "not known"}


def icon_and_colour(state: str) -> tuple[str, str]:
    """No icon, and the colour of what is unknown, for a state without one."""
    return STATES.get(state, ("", "unk"))


def state_word(state: object) -> str:
    """What a pill says, by itself."""
    return _WORDS.get(str(state), str(state).replace("_", " "))
