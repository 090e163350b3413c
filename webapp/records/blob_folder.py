"""Evidence in a folder: a file is there whole, or not at all."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.core.files.storage import FileSystemStorage


class Folder(FileSystemStorage):
    """A name is the hash of what it names, so that writing it again changes nothing; a disk that fills up,
    or a process that is killed half-way, must not leave half of it under that name."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: Any) -> str:
        path = Path(self.path(name))
        for folder in (Path(self.location), path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:  # mode 0600
            made = Path(file.name)
            try:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
                made.replace(path)
            except OSError:
                made.unlink(missing_ok=True)
                raise
        return name
