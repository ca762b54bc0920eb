"""Small columnar files of one schema, which are read in parallel and checked together.

A check of each file would take longer than reading it. If one of the files has a problem, the caller checks each file
by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError
from deployer.platform.storage.objects import Missing
from deployer.services.kinds.ingest.landing import LandedFile, content_hash
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.files.find import known_format
from deployer.tables.ingest.files.folder_names import folder_values
from deployer.tables.ingest.files.model import Format, Source
from deployer.tables.ingest.files.source_files import SCHEME, is_on_s3
from deployer.tables.ingest.rows.check import SourceRows, check, match_columns
from deployer.tables.ingest.rows.field_map import FieldMap, check_one_field_each, field_map
from deployer.tables.ingest.rows.mapped_rows import fields_to_read, in_columns
from deployer.tables.ingest.rows.missing_columns import unnamed_columns
from deployer.tables.open_table import OpenTable

SMALL_BYTES = 1 << 20  #: the largest size of a file that is read together with others
GROUP_FILES, GROUP_BYTES = 256, 32 << 20  #: limits of a group of files that are checked together
READ_BYTES = 4 << 20  #: the largest size of such a file in memory, so that a group has at most 1 GiB
READ_PART = 16  #: the number of small files that one thread reads one after another


@dataclass
class SmallFiles:
    """A reader of small files for one table. It adds to `contents` the hashes of files on the disk, by path."""

    table: OpenTable
    options: IngestOptions
    contents: dict[str, str] = field(default_factory=dict)
    _fitting: dict[bytes, bool] = field(default_factory=dict)
    _fitting_last: pa.Schema | None = None
    _has_folders: dict[tuple[str, str], bool] = field(default_factory=dict)

    @cached_property
    def _fields(self) -> FieldMap:
        return field_map(self.table.schema, (), ())

    def groups(self, files: Sequence[LandedFile]) -> Iterator[list[LandedFile]]:
        """Yields small columnar files in groups, and each other file as a separate group."""
        for small, run in groupby(files, self._is_small):
            group: list[LandedFile] = []
            size = 0
            for each in run:
                if group and (not small or len(group) >= GROUP_FILES or size >= GROUP_BYTES):
                    yield group
                    group, size = [], 0
                group.append(each)
                size += each.bytes
            yield group

    def _is_small(self, file: LandedFile) -> bool:
        if file.is_lance or file.bytes > SMALL_BYTES or self._format(file) is None:
            return False
        folder = file.place, file.path.rpartition("/")[0]
        if (has_folders := self._has_folders.get(folder)) is None:
            try:
                has_folders = bool(folder_values(file.path, file.place))
            except DeployerError:
                has_folders = True
            self._has_folders[folder] = has_folders
        return not has_folders

    def _format(self, file: LandedFile) -> Format | None:
        """Returns the format of a columnar file; None for any other."""
        found = self.options.format or known_format(file.path.rpartition("/")[2])
        return found if found in (Format.PARQUET, Format.ARROW) else None

    def together(self, group: Sequence[LandedFile], pool: ThreadPoolExecutor) -> list[pa.RecordBatch] | None:
        """Returns the rows of all files of the group; None where one of the files has a problem."""
        try:
            parts = [group[first : first + READ_PART] for first in range(0, len(group), READ_PART)]
            tables = [each for part in pool.map(self._read_all, parts) for each in part]
        except (DeployerError, Missing, OSError, pa.ArrowException):
            return None
        schema = tables[0].schema
        if any(each.schema is not schema and not each.schema.equals(schema) for each in tables):
            return None
        found = list[pa.RecordBatch]()
        for batch in pa.concat_tables(tables).combine_chunks().to_batches():
            rows = SourceRows(batch, np.arange(1, batch.num_rows + 1, dtype=np.int64))
            rows = in_columns(rows, self.table.schema, self._fields)
            checked = check(rows, self.table.schema, self.table.row_keys, text=False, listed=0)
            if checked.bad.rows:
                return None
            found.append(checked.rows)
        return found

    def _read_all(self, files: Sequence[LandedFile]) -> list[pa.Table]:
        return [self._read_small(each) for each in files]

    def _read_small(self, file: LandedFile) -> pa.Table:
        """Returns all rows of a file with the fields that the table needs. Reads the file once."""
        if is_on_s3(file.path):
            data = _object(file.path)
        else:
            data = Path(file.path).read_bytes()
            self.contents[file.path] = content_hash(data)
        source = pa.BufferReader(data)
        if self._format(file) is Format.PARQUET:
            opened = pq.ParquetFile(source)
            schema = opened.schema_arrow
            names = self._needed(file, schema)
            groups = (opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups))
            if sum(each.total_byte_size for each in groups) > READ_BYTES:
                raise DeployerError("it is large when read", where=file.path, remedy="it is looked at by itself")
            is_whole = len(names) == len(schema.names)  # looking columns up by name takes as long as reading them
            table = opened.read(use_threads=False) if is_whole else opened.read(names, use_threads=False)
        else:
            is_file = data.startswith(b"ARROW1")
            reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=ALIGNED)
            names = self._needed(file, reader.schema)
            table = reader.read_all()
        if table.schema.names != names:
            table = table.select(names)
        return table.replace_schema_metadata(None) if table.schema.metadata else table

    def _needed(self, file: LandedFile, schema: pa.Schema) -> list[str]:
        if not self._fits(file, schema):
            raise DeployerError("its fields do not fit", where=file.path, remedy="it is looked at by itself")
        return fields_to_read(schema.names, self.table.schema, self._fields)

    def _fits(self, file: LandedFile, schema: pa.Schema) -> bool:
        """Returns whether a file with these fields can be loaded. The answer is found once for each schema."""
        last = self._fitting_last
        if last is not None and schema.equals(last):
            return True
        key = schema.serialize().to_pybytes()
        if key not in self._fitting:
            self._fitting[key] = self._fields_fit(file, schema)
        if self._fitting[key]:
            self._fitting_last = schema
        return self._fitting[key]

    def _fields_fit(self, file: LandedFile, schema: pa.Schema) -> bool:
        table, fields = self.table.schema, self._fields
        source = Source(file.path, Format.ARROW, file.path)
        try:
            check_one_field_each(schema.names, fields, file.path)
            match_columns(
                schema, table, where=file.path, text=False, ignore_extra=self.options.ignore_extra, fields=fields
            )
        except DeployerError:
            return False
        return self.options.missing_as_null or not unnamed_columns(table, [source], {file.path: schema.names}, fields)


def _object(path: str) -> bytes:
    """Returns the content of an object, with one request."""
    bucket, _, key = path.removeprefix(SCHEME).partition("/")
    return objects_at(f"{SCHEME}{bucket}").get(key)
