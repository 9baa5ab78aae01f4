-- SPDX-License-Identifier: MIT
-- Ten questions about a fleet. The newest build of a program is the build of its newest trace.

-- Which call sites lose memory in the newest build of a program, and lost hardly any before?
SELECT program, fingerprint, min(function) AS name,
       sum(if(is_newest, lost, 0)) AS lost_now, sum(if(is_newest, 0, lost)) AS lost_before
FROM (SELECT trace_id, fingerprint, function, coalesce(lost_bytes, 0) AS lost
      FROM sites WHERE fingerprint != '')
ANY INNER JOIN
     (SELECT trace_id, program, build_id = newest AS is_newest
      FROM traces
      ANY INNER JOIN (SELECT program,
                             argMax(build_id, concat(toString(start_time), trace_id)) AS newest
                      FROM traces GROUP BY program)
      USING program)
USING trace_id
GROUP BY program, fingerprint
HAVING lost_now > 10 * lost_before
ORDER BY lost_now DESC, fingerprint
LIMIT 20;

-- Which functions lose most, and in how many traces?
SELECT function, uniqExact(trace_id) AS in_traces, sum(lost_blocks) AS blocks,
       sum(lost_bytes) AS bytes
FROM sites
WHERE lost_bytes > 0 AND function != ''
GROUP BY function
ORDER BY bytes DESC, function
LIMIT 20;

-- Why are answers uncertain?
SELECT reason, count() AS in_traces, uniqExact(host) AS hosts
FROM traces
ARRAY JOIN reasons AS reason
GROUP BY reason
ORDER BY in_traces DESC, reason;

-- How do processes end that do not end well?
SELECT program, end_reason, coalesce(end_code, 0) AS code, count() AS processes
FROM traces
WHERE end_reason != 'exited' OR end_code != 0
GROUP BY program, end_reason, code
ORDER BY processes DESC, program, end_reason, code
LIMIT 20;

-- How large is the peak of each build?
SELECT program, build_id, count() AS in_traces, intDiv(sum(peak_bytes), count()) AS average,
       max(peak_bytes) AS largest
FROM traces
GROUP BY program, build_id
ORDER BY program, min(start_time), build_id;

-- Which hosts lose most?
SELECT host, count() AS in_traces, sum(coalesce(lost_bytes, 0)) AS lost
FROM traces
GROUP BY host
ORDER BY lost DESC, host
LIMIT 20;

-- Which functions allocate most for a moment only?
SELECT function, sum(temporary) AS blocks, intDiv(100 * sum(temporary), sum(allocations)) AS percent
FROM sites
WHERE function != ''
GROUP BY function
HAVING percent >= 20
ORDER BY blocks DESC, function
LIMIT 20;

-- Which call sites lose memory on most hosts?
SELECT program, fingerprint, min(function) AS name, uniqExact(host) AS hosts, sum(lost) AS bytes
FROM (SELECT trace_id, fingerprint, function, lost_bytes AS lost
      FROM sites WHERE lost_bytes > 0 AND fingerprint != '')
ANY INNER JOIN (SELECT trace_id, program, host FROM traces) USING trace_id
GROUP BY program, fingerprint
ORDER BY hosts DESC, bytes DESC, fingerprint
LIMIT 20;

-- How much is still live at the end, day by day?
SELECT toDate(start_time) AS day, program, count() AS in_traces,
       intDiv(sum(live_bytes), count()) AS average
FROM traces
GROUP BY day, program
ORDER BY day, program;

-- Which builds call the allocator wrongly?
SELECT program, build_id, countIf(errors > 0) AS in_traces, sum(errors) AS calls
FROM traces
GROUP BY program, build_id
HAVING calls > 0
ORDER BY calls DESC, program, build_id;
