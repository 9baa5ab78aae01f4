-- SPDX-License-Identifier: MIT
-- A row for each trace, and one for each call site of a trace. Unknown texts are empty.
CREATE TABLE traces
(
    trace_id String,
    parent_trace_id String,
    `group` String,
    start_time DateTime('UTC'),
    process_id Nullable(UInt64),
    architecture String,
    host String,
    system String,
    writer String,
    command String,
    program String,
    build_id String,
    file_bytes UInt64,
    events UInt64,
    lost_events UInt64,
    threads UInt64,
    last_wall_time_ns Nullable(UInt64),
    end_reason String,
    end_code Nullable(UInt64),
    certain UInt8,
    reasons Array(String),
    allocations UInt64,
    allocated_bytes UInt64,
    temporary UInt64,
    temporary_bytes UInt64,
    live_blocks UInt64,
    live_bytes UInt64,
    lost_blocks Nullable(UInt64),
    lost_bytes Nullable(UInt64),
    possibly_lost_blocks Nullable(UInt64),
    possibly_lost_bytes Nullable(UInt64),
    peak_blocks UInt64,
    peak_bytes UInt64,
    reallocs UInt64,
    moved UInt64,
    copied_bytes UInt64,
    errors UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(start_time) ORDER BY (program, start_time, trace_id);

CREATE TABLE sites
(
    trace_id String,
    fingerprint String,
    function String,
    module String,
    allocations UInt64,
    allocated_bytes UInt64,
    temporary UInt64,
    temporary_bytes UInt64,
    live_blocks UInt64,
    live_bytes UInt64,
    lost_blocks Nullable(UInt64),
    lost_bytes Nullable(UInt64),
    possibly_lost_blocks Nullable(UInt64),
    possibly_lost_bytes Nullable(UInt64)
)
ENGINE = MergeTree ORDER BY (fingerprint, trace_id);
