"""A folder of our own for a private database: made for a run, removed with all it holds."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from loadstone.private_server.builds import cache_root, make_folders
from loadstone.private_server.data_folder import make_folder
from loadstone.private_server.os_user import OsUser
from loadstone.private_server.registry import Registry
from loadstone.signals import completed

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from loadstone.private_server.adoption import Adoption
    from loadstone.private_server.registry import Record


class PrivateFolder:
    """One folder, as a context manager; with `keep` it stays at the end, with `adopt` it is a killed run's.

    What a killed Loadstone left is removed by the next one, as with private servers. Raises LoadstoneError
    for a storage that cannot serve.
    """

    def __init__(
        self,
        storage: Path | None = None,
        *,
        keep: bool = False,
        adopt: Adoption | None = None,
        user: OsUser | None = None,
    ) -> None:
        """Make nothing yet; the folder will be the `user`'s, or ours for an engine in our process."""
        self._account = user or OsUser(str(os.geteuid()), os.geteuid(), os.getegid(), switched=False)
        self._storage = storage
        self._keep = keep
        self._adopt = adopt
        self._registry = Registry(cache_root(self._account) / "servers")
        self._record: Record | None = None
        self.reaped: list[str] = []
        """What earlier runs had left and this start removed, in words."""
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """Where it is."""
        if self._path is None:
            raise RuntimeError("the folder is made when the context is entered")
        return self._path

    def __enter__(self) -> Self:
        """Make it."""
        self.reaped = self._registry.reap()
        if self._adopt is not None:
            self._path, self._record = self._adopt.data_directory, self._adopt.record
            return self
        path = self._path = make_folder(self._account, self._storage)
        try:
            make_folders(self._registry.folder)
            self._record = self._registry.new(path.name, [path], path)
            if self._keep:
                self._registry.write(replace(self._record, keep=True))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it, or with `keep` leave it."""
        if not self._keep:
            self.close()

    def close(self) -> None:
        """Remove it with all that it holds; may be called again."""
        completed(self._remove)

    def _remove(self) -> None:
        if self._record is not None:
            self._registry.remove(self._record)
        elif self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.rmdir()
