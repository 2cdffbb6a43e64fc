-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
-- The tables of loops as version 1 of the format had them, in place of those in schema.sql. Nothing
-- was ever written to them.

DROP TABLE loop_site;
DROP TABLE loop_metric;
DROP TABLE loop_count;

-- Loops, functions and regions that count themselves (programs built with the mperf pass).
CREATE TABLE loop_site (
	id INTEGER PRIMARY KEY,
	kind INTEGER NOT NULL,              -- 1 loop nest, 2 function, 3 region
	build_id BLOB,                      -- of the file it was compiled into
	subprogram TEXT NOT NULL,           -- function that holds it; name of a region
	source TEXT,                        -- path
	line INTEGER,                       -- where it starts
	nest TEXT NOT NULL,                 -- path of ordinals from the outermost loop, '1.2'; '' for functions and regions
	inlined_at TEXT                     -- 'path:line' chain, innermost first, where it was inlined
);

-- Names of what they count: 'calls', 'iterations', 'time_ns', 'bytes_loaded', 'bytes_stored',
-- 'bytes_loaded_scalable', 'bytes_stored_scalable', 'loads', 'stores', 'int_ops', 'fp16_ops',
-- 'fp32_ops', 'fp64_ops', 'branches', 'external_calls', 'lanes_active', 'lanes_issued', and a
-- modelled variant of each, ended by '_modelled'. Scalable ones are in units of vscale.
CREATE TABLE loop_metric (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	unit TEXT NOT NULL                  -- 'count', 'bytes', 'ns'
);

-- What they counted in a window.
CREATE TABLE loop_count (
	window INTEGER NOT NULL,
	task INTEGER NOT NULL,
	loop INTEGER NOT NULL,              -- loop_site
	metric INTEGER NOT NULL,            -- loop_metric
	value INTEGER NOT NULL,
	PRIMARY KEY (window, task, loop, metric)
) WITHOUT ROWID;
