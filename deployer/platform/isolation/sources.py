"""Imports a project's modules only from their sources: bytecode beside them may differ."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from typing import Any


class _SourceOnly(SourceFileLoader):
    """A loader without bytecode: Python uses bytecode only where it can compare a source with it."""

    def path_stats(self, path: str) -> Any:
        raise OSError


def import_from_sources(project: Path) -> None:
    """Makes later imports of modules in the project's folder use their sources, except those of an environment in
    it."""
    environments = [Path(entry).resolve() for entry in sys.path if entry]
    folder = project.resolve()

    def finder(entry: str) -> FileFinder:
        place = Path(entry).resolve()
        inside = place.is_relative_to(folder)
        if not inside or any(each != folder and place.is_relative_to(each) for each in environments):
            raise ImportError
        return FileFinder(entry, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceOnly, SOURCE_SUFFIXES))

    sys.dont_write_bytecode = True
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()
