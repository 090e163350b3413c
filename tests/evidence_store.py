"""A folder for evidence that can be taken away and given back, as a file server's on a bad day."""

from __future__ import annotations

from pathlib import Path


class EvidenceStore:
    """url: for PEERPATH_EVIDENCE_URL. What it holds outlives a stop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._away = folder.with_name(f"{folder.name}-away")
        self.url = f"file://{folder}"
        folder.mkdir()

    def stop(self) -> None:
        self.folder.rename(self._away)
        self.folder.write_text("no folder")

    def start(self) -> None:
        self.folder.unlink()
        self._away.rename(self.folder)

    @property
    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
