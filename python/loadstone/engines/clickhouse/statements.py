"""What ClickHouse is asked, each statement whole."""

from __future__ import annotations

VERSION = "select version() as version"
SETTINGS = """
select name, value, changed from system.settings
where changed and name not in ('database', 'log_comment')
    or name in ('max_threads', 'max_memory_usage', 'max_insert_block_size', 'async_insert',
    'max_bytes_before_external_group_by', 'use_uncompressed_cache', 'load_balancing')
order by name
"""
TABLES = "select name, engine_full from system.tables where database = {schema} order by name"
PARTS = """
select table as name, sum(bytes_on_disk) as bytes, sum(rows) as rows from system.parts
where active and database = {schema} group by table order by bytes desc, name
"""
ALL_PARTS = "select sum(bytes_on_disk) as bytes from system.parts where active"
STORAGE = """
select sum(bytes_on_disk) as bytes, sum(data_compressed_bytes) as packed,
    sum(data_uncompressed_bytes) as plain, sum(marks_bytes) as marks, count() as parts,
    sum(secondary_indices_compressed_bytes + secondary_indices_marks_bytes) as indexes
from system.parts where active and database = {schema} and table = {table}
"""
EVENTS = """
select event as name, value from system.events where event in (
    'Query', 'FailedQuery', 'InsertedRows', 'InsertedBytes', 'SelectedRows', 'SelectedBytes',
    'Merge', 'MergedRows', 'MergedUncompressedBytes', 'FileSync', 'FileSyncElapsedMicroseconds',
    'ReadBufferFromFileDescriptorReadBytes', 'WriteBufferFromFileDescriptorWriteBytes',
    'MarkCacheHits', 'MarkCacheMisses', 'OSReadBytes', 'OSWriteBytes')
"""
METRICS = """
select metric as name, value from system.metrics where metric in (
    'MemoryTracking', 'PartsActive', 'Merge', 'Query', 'GlobalThreadActive', 'HTTPConnection')
"""
LIMITS = "select name, value from system.server_settings where name in ({names})"
CACHES = ("mark", "primary index", "uncompressed", "index mark", "index uncompressed", "mmap", "query",
          "query condition", "page")  # fmt: skip
"""What `system drop … cache` can name."""
