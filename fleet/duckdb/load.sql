-- SPDX-License-Identifier: MIT
-- Reads the rows of load.py from the current directory, by the types of schema.sql.
INSERT INTO traces BY NAME SELECT * FROM read_json('traces.json', format = 'newline_delimited',
    columns = {
        trace_id: 'VARCHAR', parent_trace_id: 'VARCHAR', "group": 'VARCHAR',
        start_time: 'TIMESTAMP', process_id: 'UBIGINT', architecture: 'VARCHAR', host: 'VARCHAR',
        system: 'VARCHAR', writer: 'VARCHAR', command: 'VARCHAR', program: 'VARCHAR',
        build_id: 'VARCHAR', file_bytes: 'UBIGINT', events: 'UBIGINT', lost_events: 'UBIGINT',
        threads: 'UBIGINT', last_wall_time_ns: 'UBIGINT', end_reason: 'VARCHAR',
        end_code: 'UBIGINT', certain: 'UTINYINT', reasons: 'VARCHAR[]', allocations: 'UBIGINT',
        allocated_bytes: 'UBIGINT', temporary: 'UBIGINT', temporary_bytes: 'UBIGINT',
        live_blocks: 'UBIGINT', live_bytes: 'UBIGINT', lost_blocks: 'UBIGINT',
        lost_bytes: 'UBIGINT', possibly_lost_blocks: 'UBIGINT', possibly_lost_bytes: 'UBIGINT',
        peak_blocks: 'UBIGINT', peak_bytes: 'UBIGINT', reallocs: 'UBIGINT', moved: 'UBIGINT',
        copied_bytes: 'UBIGINT', errors: 'UBIGINT'});

INSERT INTO sites BY NAME SELECT * FROM read_json('sites.json', format = 'newline_delimited',
    columns = {
        trace_id: 'VARCHAR', fingerprint: 'VARCHAR', function: 'VARCHAR', module: 'VARCHAR',
        allocations: 'UBIGINT', allocated_bytes: 'UBIGINT', temporary: 'UBIGINT',
        temporary_bytes: 'UBIGINT', live_blocks: 'UBIGINT', live_bytes: 'UBIGINT',
        lost_blocks: 'UBIGINT', lost_bytes: 'UBIGINT', possibly_lost_blocks: 'UBIGINT',
        possibly_lost_bytes: 'UBIGINT'});
