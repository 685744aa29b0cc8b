"""Tables as their readers see them, without any code of ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog


def parquet_rows(folder: Path) -> pa.Table:
    schema = pq.read_schema(folder / "_common_metadata")
    return ds.dataset(folder, schema=schema, partitioning="hive").to_table()


def delta_rows(folder: Path) -> pa.Table:
    return pa.table(DeltaTable(str(folder)).to_pyarrow_table())


def iceberg_rows(warehouse: Path, name: str = "lake.readings") -> pa.Table:
    with iceberg_catalog(warehouse) as catalog:
        return catalog.load_table(name).scan().to_arrow()


def iceberg_files(warehouse: Path, name: str = "lake.readings") -> set[Path]:
    with iceberg_catalog(warehouse) as catalog:
        tasks = catalog.load_table(name).scan().plan_files()
        return {Path(task.file.file_path.removeprefix("file://")) for task in tasks}


def iceberg_catalog(warehouse: Path) -> SqlCatalog:
    return SqlCatalog("brookmq", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
