-- SPDX-License-Identifier: MIT
-- Ten questions about a fleet. The newest build of a program is the build of its newest trace.

-- Which call sites lose memory in the newest build of a program, and lost hardly any before?
WITH newest AS (SELECT program, arg_max(build_id, start_time::VARCHAR || trace_id) AS newest_id
                FROM traces GROUP BY program)
SELECT program, fingerprint, min(function) AS name,
       coalesce(sum(sites.lost_bytes) FILTER (build_id = newest_id), 0) AS lost_now,
       coalesce(sum(sites.lost_bytes) FILTER (build_id != newest_id), 0) AS lost_before
FROM sites JOIN traces USING (trace_id) JOIN newest USING (program)
WHERE fingerprint != ''
GROUP BY program, fingerprint
HAVING lost_now > 10 * lost_before
ORDER BY lost_now DESC, fingerprint
LIMIT 20;

-- Which functions lose most, and in how many traces?
SELECT function, count(DISTINCT trace_id) AS in_traces, sum(lost_blocks) AS blocks,
       sum(lost_bytes) AS bytes
FROM sites
WHERE lost_bytes > 0 AND function != ''
GROUP BY function
ORDER BY bytes DESC, function
LIMIT 20;

-- Why are answers uncertain?
SELECT reason, count(*) AS in_traces, count(DISTINCT host) AS hosts
FROM (SELECT unnest(reasons) AS reason, host FROM traces)
GROUP BY reason
ORDER BY in_traces DESC, reason;

-- How do processes end that do not end well?
SELECT program, end_reason, coalesce(end_code, 0) AS code, count(*) AS processes
FROM traces
WHERE end_reason != 'exited' OR end_code != 0
GROUP BY ALL
ORDER BY processes DESC, program, end_reason, code
LIMIT 20;

-- How large is the peak of each build?
SELECT program, build_id, count(*) AS in_traces, sum(peak_bytes) // count(*) AS average,
       max(peak_bytes) AS largest
FROM traces
GROUP BY program, build_id
ORDER BY program, min(start_time), build_id;

-- Which hosts lose most?
SELECT host, count(*) AS in_traces, sum(coalesce(lost_bytes, 0)) AS lost
FROM traces
GROUP BY host
ORDER BY lost DESC, host
LIMIT 20;

-- Which functions allocate most for a moment only?
SELECT function, sum(temporary) AS blocks, 100 * sum(temporary) // sum(allocations) AS percent
FROM sites
WHERE function != ''
GROUP BY function
HAVING percent >= 20
ORDER BY blocks DESC, function
LIMIT 20;

-- Which call sites lose memory on most hosts?
SELECT program, fingerprint, min(function) AS name, count(DISTINCT host) AS hosts,
       sum(sites.lost_bytes) AS bytes
FROM sites JOIN traces USING (trace_id)
WHERE sites.lost_bytes > 0 AND fingerprint != ''
GROUP BY program, fingerprint
ORDER BY hosts DESC, bytes DESC, fingerprint
LIMIT 20;

-- How much is still live at the end, day by day?
SELECT start_time::DATE AS day, program, count(*) AS in_traces,
       sum(live_bytes) // count(*) AS average
FROM traces
GROUP BY ALL
ORDER BY day, program;

-- Which builds call the allocator wrongly?
SELECT program, build_id, count(*) FILTER (errors > 0) AS in_traces, sum(errors) AS calls
FROM traces
GROUP BY program, build_id
HAVING calls > 0
ORDER BY calls DESC, program, build_id;
