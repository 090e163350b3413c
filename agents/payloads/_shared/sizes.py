"""Sizes as a person writes them."""

from lines import Refusal

KIB = 1024
UNITS = {"K": KIB, "M": KIB**2, "G": KIB**3}


def sizes_of(named, ladder, hidden=0, batch="1", width=2):
    """Sizes in bytes, each once and in order: the named ones ("12K,4M"), else the ladder's. With hidden also the
    message sizes of steps of so many tokens (width: bytes of an activation)."""
    try:
        words = [word.strip().upper() for word in named.split(",") if word.strip()]
        sizes = [int(w[:-1]) * UNITS[w[-1]] if w[-1] in UNITS else int(w) for w in words] or ladder
        batches = [int(tokens) for tokens in batch.split(",")] if hidden else []
    except ValueError:
        fix = "give --sizes 12K,4M and --batch 1,64"
        raise Refusal("a size or batch is no number", fix) from None
    all_sizes = sorted({*sizes, *(hidden * tokens * width for tokens in batches)})
    if all_sizes[0] < 1:
        raise Refusal(f"a size of {all_sizes[0]} bytes", "give sizes above 0")
    return all_sizes
