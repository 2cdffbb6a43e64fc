-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
--
-- The roll-up: statements that add a segment, `source`, to the target, `main` (merge.c attaches it).
--
-- A line `-- [name] side` begins a section; merge.c says when each runs. The side is the only file that a section
-- uses besides temporary tables, so that damage can be attributed to that file: main, source, or both. A section
-- for both runs on the target, then on the source; @table is the table of that side. A value in a temporary
-- table comes from the source.
--
-- Dictionaries are in memory (merge.h). For a dictionary d:
--   d_entry(id, …)   find or make the entry of a content, and make it the entry of the side's row id
--   d_key(…)         the same without a row
--   d_part(entry, n) part n of the content
--   d_is(id, entry)  make this the entry of the side's row id
--   d_of(id)         the entry of the side's row id; 0: none
--   d_row(entry)     its row in the target; NULL: none
--   d_give(entry, payer)   the same; without a row it gets a new one, noted in temp.new_d
-- text(x) is the number of a text, words(n) its text. line(argv) is arguments as one text. damage(what) refuses the file.
-- takes(task): an extract takes the samples of this task of the source, by id.
--
-- Parameters: :tier 0 window (an extract), 1 minute, 2 hour; :only the job of an extract, NULL: any; :narrow 1: it takes
-- only some tasks; :hide 1: code of the kernel becomes one function (extract.h); :seconds the most of a window.

-- [make] main
CREATE TEMP TABLE member (id INTEGER PRIMARY KEY, process INTEGER, taken INTEGER);
CREATE TEMP TABLE event (id INTEGER, pmu, type, config, config1, config2, modifiers, name, unit);
CREATE TEMP TABLE hart (id INTEGER PRIMARY KEY, rung, reason, leader, user_only, core);
CREATE TEMP TABLE said (key, value);
CREATE TEMP TABLE window (id INTEGER PRIMARY KEY, start_ns, end_ns, realtime_ns, run);
-- The sums of the window being made, and the counts of each. into_sum: the sum with less detail that it will be
-- added to; cut: without callers; place: rank of into_sum by weight.
CREATE TEMP TABLE tally (at INTEGER PRIMARY KEY, sum, task, stack, event, rung, hart, count, weight_ns,
	truncated, uncounted, into_sum, cut, kept, place);
CREATE TEMP TABLE counted (at_event INTEGER PRIMARY KEY, value, enabled_ns, running_ns, whole); -- at << 8 | event
CREATE TEMP TABLE made (at INTEGER PRIMARY KEY, sum INTEGER UNIQUE, task, stack, event, rung, hart, count, weight_ns,
	truncated, uncounted, into_sum, cut, kept, place);
CREATE TEMP TABLE made_counted AS SELECT * FROM temp.counted;
CREATE TEMP TABLE light (at INTEGER PRIMARY KEY, sum, tally, coarse);
CREATE TEMP TABLE moved (sum INTEGER PRIMARY KEY, into_sum, place);
CREATE TEMP TABLE lost (hart, cause, count);
CREATE TEMP TABLE loss (hart, cause, count);
CREATE TEMP TABLE second (hart, task, at);
CREATE TEMP TABLE frame (row INTEGER PRIMARY KEY, offset);
CREATE TEMP TABLE place (frame, depth, function, source, line, inlined, payer);
CREATE TEMP TABLE found (file INTEGER PRIMARY KEY, state, has_symbols, has_debug);
CREATE TEMP TABLE file AS SELECT *, 0 payer FROM main.file WHERE 0;
CREATE TEMP TABLE task AS SELECT *, 0 payer FROM main.task WHERE 0;
CREATE TEMP TABLE site (entry INTEGER PRIMARY KEY, kind, build_id, subprogram, source, line, nest, inlined_at,
	line_last, column, flags);
CREATE TEMP TABLE nest (id INTEGER PRIMARY KEY, parent INTEGER, kind, line, build, subprogram, source, nest, inlined_at);
CREATE INDEX temp.under ON nest (parent);
CREATE TEMP TABLE site_of (id INTEGER PRIMARY KEY, entry);
CREATE TEMP TABLE metric (id INTEGER PRIMARY KEY, entry, unit, seen);
-- high and low: halves of a sum that may exceed 64 bits
CREATE TEMP TABLE loop (at, metric, high, low, PRIMARY KEY (at, metric)) WITHOUT ROWID;
CREATE TEMP TABLE made_loop (at, metric, high, low);

-- [said] source
INSERT INTO temp.said SELECT key, CASE typeof(value) WHEN 'integer' THEN value ELSE words(text(value)) END FROM source.meta
	WHERE key IN ('boot_id', 'monotonic_ns', 'realtime_ns', 'host', 'release', 'arch', 'hz', 'all', 'switches');
SELECT damage('it names no boot') WHERE NOT EXISTS (SELECT 1 FROM temp.said WHERE key = 'boot_id');

-- [new] main
INSERT INTO main.meta SELECT key, value FROM temp.said;

-- [dictionaries] both
SELECT event_entry(id, text(type || '/' || config || '/' || config1 || '/' || config2 || '/' || modifiers || '/' || pmu))
	FROM @event ORDER BY id;
SELECT damage('an event has a number that is none') FROM @event WHERE typeof(type) <> 'integer' OR typeof(config) <> 'integer'
	OR typeof(config1) <> 'integer' OR typeof(config2) <> 'integer' OR typeof(modifiers) <> 'integer' LIMIT 1;
SELECT function_entry(id, text(name)) FROM @function ORDER BY id;
SELECT source_entry(id, text(path)) FROM @source ORDER BY id;
-- Control groups of the source are found by path if tasks refer to them: their ids come from the kernel.
SELECT cgroup_entry(id, text(path)) FROM @cgroup WHERE '@' = 'main.' ORDER BY id;
SELECT labels_entry(id, text(uid || ' ' || labels)) FROM @label_set ORDER BY id;
-- A hidden kernel is one file of the kind 2.
SELECT CASE WHEN :hide AND '@' = 'source.' AND kind & 255 IN (2, 3) THEN file_is(id, file_key(2, text('[kernel]')))
	ELSE file_entry(id, (kind & 255) | ((deleted <> 0) << 8) | (coalesce(length(build_id) > 0, 0) << 9) | ((inode NOTNULL) << 10),
		text(path),
		CASE WHEN length(build_id) > 0 THEN text(hex(substr(build_id, 1, 20)))
			WHEN inode NOTNULL THEN (major << 32) | (minor & 0xffffffff) END,
		CASE WHEN coalesce(length(build_id), 0) = 0 THEN inode END) END
	FROM @file ORDER BY id;
-- The names of a frame are a chain of entries: the previous entry, function, source and whether it is inlined, line.
SELECT names_entry(frame, names_of(frame), function_of(function),
		CASE WHEN :tier < 2 THEN source_of(source) << 1 | (inlined <> 0) END, CASE WHEN :tier < 2 THEN line END)
	FROM @place ORDER BY frame, depth;
SELECT damage('a name has no place in its frame') FROM @place
	WHERE typeof(frame) <> 'integer' OR typeof(depth) <> 'integer' LIMIT 1;
SELECT damage('a frame has too many names') FROM @place GROUP BY frame HAVING count(*) > 256;
-- In the hour tier frames are functions; code of a file that has no name is told apart by its 4 KiB. A hidden kernel is
-- one frame, also in a stack that has several.
SELECT CASE WHEN :hide AND '@' = 'source.' AND file_part(file_of(file), 0) & 255 = 2
	THEN frame_is(id, frame_key(file_of(file), 0, names_key(0, function_key(text('[kernel]')), 0, 0), 2))
	ELSE frame_entry(id, file_of(file), CASE :tier WHEN 2 THEN names_part(names_of(id), 1) ELSE offset END,
		CASE WHEN :tier < 2 THEN names_of(id)
			WHEN names_of(id) = 0 AND file_part(file_of(file), 0) & 255 = 1 THEN offset >> 12 END, state & 255) END
	FROM @frame ORDER BY id;
SELECT CASE WHEN parent < 0 OR parent >= id THEN damage('a stack comes before its caller')
			WHEN parent > 0 AND stack_of(parent) = 0 THEN damage('a stack is missing')
			WHEN :hide AND '@' = 'source.' AND file_part(frame_part(frame_of(frame), 0), 0) & 255 = 2
				AND stack_part(stack_of(parent), 1) = frame_of(frame) THEN stack_is(id, stack_of(parent))
			ELSE stack_entry(id, stack_of(parent), frame_of(frame)) END
	FROM @stack ORDER BY id;
-- A task becomes its process, except in an extract, which has its threads, too, and of a thread that it takes also the
-- process. The key is pid, start, name, control group, owner and labels, so a process that changed one of them has
-- several rows, and in an extract also one that executed another program of the same name. In the hour tier the key is
-- that of a program. The last row of a process is read first, since it has the end.
DELETE FROM temp.member;
INSERT INTO temp.member SELECT t.id, coalesce(p.id, t.id), '@' = 'main.' OR takes(t.id) FROM @task t
	LEFT JOIN @task p ON p.id = t.process AND p.id BETWEEN 1 AND 1 << 24 WHERE t.id BETWEEN 1 AND 1 << 24;
SELECT task_entry(t.id,
		CASE WHEN :tier = 2 THEN text(comm) ELSE text(coalesce(comm, '') || char(10) || coalesce(c.path, '')
				|| CASE :tier WHEN 0 THEN char(10) || line(argv) ELSE '' END)
			| (labels_of(l.label_set) << 32) END,
		CASE :tier WHEN 2 THEN text(exe) WHEN 1 THEN pid ELSE (pid << 32) | (tid & 0xffffffff) END,
		CASE :tier WHEN 2 THEN labels_of(l.label_set) << 32
			| CASE WHEN c.path NOTNULL THEN cgroup_key(text(c.path)) ELSE 0 END ELSE start_ns END,
		CASE WHEN t.uid & 0xffffffff <> 0 OR t.uid NOTNULL AND account & 0xffffffff = 0 THEN (t.uid & 0xffffffff) + 1
			ELSE 1 << (38 + (t.uid NOTNULL)) | coalesce((account & 0xffffffff) + 1, 0) END
			| CASE :tier WHEN 2 THEN (kernel_thread <> 0) << 40 ELSE 0 END)
	FROM temp.member m JOIN @task t ON t.id = m.id LEFT JOIN @task_label_set l ON l.task = m.process
	LEFT JOIN @label_set s ON s.id = l.label_set LEFT JOIN @cgroup c ON c.id = t.cgroup
	WHERE (:tier = 0 AND m.taken OR m.id IN (SELECT process FROM temp.member WHERE taken))
		AND (:only IS NULL OR s.uid || ' ' || s.labels = :only)
	ORDER BY m.id DESC;

-- [translate] source
SELECT task_is(id, task_of(process)) FROM temp.member WHERE :tier > 0 AND process <> id;
SELECT task_parent(task_of(id), task_of(process)) FROM temp.member WHERE :tier = 0 AND process <> id AND taken;
SELECT task_parent(task_of(id), task_of(parent)) FROM source.task WHERE :tier < 2 AND process = id ORDER BY id DESC;
INSERT INTO temp.event SELECT event_give(event_of(id), NULL), words(text(pmu)), type, config, config1, config2, modifiers,
	words(text(name)), words(text(unit)) FROM source.event WHERE event_row(event_of(id)) IS NULL ORDER BY id;
INSERT OR REPLACE INTO temp.found SELECT file_row(file_of(id)), state, has_symbols, has_debug FROM source.file
	WHERE state > 1 AND file_row(file_of(id)) NOTNULL AND NOT (:hide AND kind & 255 IN (2, 3)) ORDER BY id;
INSERT INTO temp.hart SELECT id, rung & 255, words(text(reason)), coalesce(event_row(event_of(leader)), 0), user_only <> 0,
	(SELECT value FROM (SELECT key, value FROM source.meta WHERE key BETWEEN 'core:' AND 'core;'
			ORDER BY key DESC LIMIT :harts) WHERE has_hart(substr(key, 6), h.id) LIMIT 1)
	FROM source.hart h WHERE id >= 0 AND id < :harts;
SELECT hart_is(h.id, (SELECT min(id) FROM temp.hart i WHERE i.rung = h.rung AND i.leader = h.leader
		AND i.user_only = h.user_only AND i.core IS h.core))
	FROM temp.hart h WHERE :tier = 2 AND rung <> 0;
INSERT INTO temp.said SELECT k, CASE WHEN k GLOB 'note:*' THEN 1
		WHEN k GLOB 'leader:*' THEN coalesce(event_row(event_of(value)), 0) ELSE value END
	FROM (SELECT our_key(key) k, value FROM source.meta WHERE key BETWEEN 'note:' AND 'note;'
		OR key BETWEEN 'leader:' AND 'leader;' OR key BETWEEN 'core:' AND 'core;' OR key BETWEEN 'turn:' AND 'turn;'
		OR key = 'hz_lowest' LIMIT 9000) WHERE k NOTNULL;
-- Number the runs of windows that start in the same minute or hour.
INSERT INTO temp.window SELECT id, start_ns, end_ns, start,
		sum(:step = 0 OR start IS NOT before) OVER (ORDER BY id)
	FROM (SELECT id, CASE WHEN start_ns < 0 OR end_ns < start_ns OR realtime_ns < 0
				THEN damage('a window ends before it starts') ELSE start_ns END start_ns, end_ns,
			realtime_ns - CASE :step WHEN 0 THEN 0 ELSE realtime_ns % :step END start,
			lag(realtime_ns - CASE :step WHEN 0 THEN 0 ELSE realtime_ns % :step END) OVER (ORDER BY id) before
		FROM source.window WHERE id > 0) ORDER BY id;

-- Loops get their entries from the outermost inwards. Loops in a circle are never reached, and get none.
INSERT INTO temp.nest SELECT id, max(coalesce(parent, 0), 0), kind, coalesce(line, 0) & 0xffffffff, text(hex(build_id)),
	text(subprogram), coalesce(text(source), 0), text(nest), coalesce(text(inlined_at), 0) FROM source.loop_site;
WITH RECURSIVE tree(id, entry) AS (
	SELECT id, site_key(kind << 32 | line, build << 32 | subprogram, source << 32 | nest, inlined_at << 32, 0)
		FROM temp.nest WHERE parent = 0
	UNION ALL SELECT n.id, site_key(kind << 32 | line, build << 32 | subprogram, source << 32 | nest,
			inlined_at << 32 | CASE WHEN kind = 3 OR kind >= 5 THEN site_under(entry) ELSE 0 END, site_under(entry))
		FROM tree CROSS JOIN temp.nest n ON n.parent = tree.id)
	INSERT INTO temp.site_of SELECT * FROM tree;
INSERT INTO temp.site SELECT entry, kind, CAST(substr(build_id, 1, 64) AS BLOB), words(text(subprogram)), words(text(source)),
		nullif(line, 0), words(text(nest)), words(text(inlined_at)), nullif(last, 0), nullif(column, 0), f
	FROM (SELECT entry, min(id) id, max(coalesce(line_last, 0)) last,
			max(flags & 1) | max(flags & 2) | max(flags & 4) | max(flags & 8) | max(flags & 16) f
		FROM temp.site_of JOIN source.loop_site USING (id) GROUP BY entry)
	JOIN source.loop_site USING (id);
INSERT INTO temp.metric SELECT id, metric_key(text(name)), words(text(unit)), 0 FROM source.loop_metric ORDER BY id;

-- [loops_loaded] main
SELECT metric_entry(id, text(name)) FROM main.loop_metric ORDER BY id;
SELECT damage('a loop comes before the one around it') FROM main.loop_site WHERE parent < 0 OR parent >= id;
SELECT site_is(id, site_key((kind << 32) | (coalesce(line, 0) & 0xffffffff), text(hex(build_id)) << 32 | text(subprogram),
		coalesce(text(source), 0) << 32 | text(nest), coalesce(text(inlined_at), 0) << 32
			| CASE WHEN kind = 3 OR kind >= 5 THEN site_under(site_of(parent)) ELSE 0 END, site_under(site_of(parent))))
	FROM main.loop_site ORDER BY id;

-- [begin] main
INSERT INTO main.event SELECT * FROM temp.event WHERE id NOTNULL;
-- Files take their last state; but a state found by the parser (2, 5) is not replaced by a failure to read it.
UPDATE main.file SET state = f.state, has_symbols = f.has_symbols, has_debug = f.has_debug FROM temp.found f
	WHERE f.file = id AND (f.state IN (2, 5) OR file.state NOT IN (2, 5))
	AND (f.state, f.has_symbols, f.has_debug) IS NOT (file.state, file.has_symbols, file.has_debug);
-- Keep the highest rate, and note if there were several; collect the ways to cut counts.
INSERT OR REPLACE INTO main.meta SELECT 'hz_mixed', 1 FROM temp.said s JOIN main.meta m USING (key)
	WHERE key = 'hz' AND m.value <> s.value;
INSERT INTO main.meta SELECT key, value FROM temp.said WHERE key IN ('hz', 'switches') OR key GLOB '[nlc]*:*'
		OR (key = 'hz_lowest' OR key GLOB 'turn:*') AND value > 0
	ON CONFLICT DO UPDATE SET value = CASE WHEN key = 'hz' OR key GLOB 'turn:*' THEN max(value, excluded.value)
		WHEN key = 'switches' THEN value | excluded.value WHEN key = 'hz_lowest' THEN min(value, excluded.value)
		ELSE excluded.value END;
-- If a hart's leader has changed, note which event led at which rung; 0: any.
INSERT OR REPLACE INTO main.meta SELECT 'leader:' || h.id || ':' || w.rung,
	CASE w.rung WHEN h.rung THEN 0 ELSE coalesce(w.leader, 0) END
	FROM temp.hart h JOIN main.hart w USING (id) WHERE hart_as(h.id) = h.id AND coalesce(w.leader, 0) <> h.leader;
INSERT OR REPLACE INTO main.meta SELECT 'leader:' || h.id || ':' || h.rung, h.leader
	FROM temp.hart h JOIN main.hart w USING (id)
	WHERE hart_as(h.id) = h.id AND coalesce(w.leader, 0) <> h.leader AND w.rung <> h.rung;
INSERT OR REPLACE INTO main.hart SELECT h.id, h.rung, h.reason, nullif(h.leader, 0), h.user_only
	FROM temp.hart h LEFT JOIN main.hart w USING (id) WHERE hart_as(h.id) = h.id
	AND (w.rung, coalesce(w.leader, 0), w.user_only <> 0) IS NOT (h.rung, h.leader, h.user_only);

-- Samples, with what they counted, are added up by merge_tally.c.
-- [samples] source
SELECT s.id, w.run IS :run, hart, task, stack, event, rung, count, weight_ns, truncated, uncounted,
	event IN (SELECT id FROM source.event WHERE pmu = 'waiting')
	FROM source.sample s LEFT JOIN temp.window w ON w.id = s.window WHERE s.id > :after AND s.id <= :upto ORDER BY s.id;

-- [readings] source
SELECT sample, event, value, enabled_ns, running_ns FROM source.reading WHERE sample > :after AND sample <= :upto
	ORDER BY sample, event;

-- [unstored] source
INSERT INTO temp.lost (hart, count, cause) VALUES (?1, ?2, :not_stored);

-- [tally] source
INSERT INTO temp.tally VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?1, 0, 0, ?1);

-- [counted] source
INSERT INTO temp.counted VALUES (?1, ?2, ?3, ?4, ?5);

-- [take] source
INSERT INTO temp.lost SELECT hart, words(text(cause)), CASE WHEN w.id IS NULL THEN damage('a row belongs to no window')
		WHEN coalesce(count, -1) < 0 OR typeof(hart) <> 'integer' THEN damage('its counts are out of bounds')
		ELSE CAST(count AS INTEGER) END
	FROM source.loss l LEFT JOIN temp.window w ON w.id = l.window WHERE l.window BETWEEN :first AND :last
		AND NOT (:narrow AND cause = :truncated);
-- Of chosen tasks, the stacks that end early are counted anew: the source has them of all.
INSERT INTO temp.lost SELECT hart, :truncated, sum(truncated) FROM temp.tally
	WHERE :narrow AND event NOT IN (SELECT id FROM main.event WHERE pmu = 'waiting') GROUP BY hart HAVING sum(truncated) > 0;
INSERT INTO temp.loop SELECT at, metric, sum(value >> 32), sum(value & 0xffffffff)
	FROM (SELECT CASE WHEN value < 0 OR loop <= 0 THEN damage('a count of loops is out of bounds')
				WHEN w.id IS NULL THEN damage('a row belongs to no window')
				WHEN o.entry IS NULL OR region > 0 AND r.entry IS NULL THEN damage('a loop is missing')
				WHEN m.entry IS NULL THEN damage('a count belongs to nothing')
				ELSE loop_key(task_of(task), o.entry, coalesce(r.entry, 0)) END at,
			m.entry metric, CAST(value AS INTEGER) value
		FROM source.loop_count c LEFT JOIN temp.window w ON w.id = c.window LEFT JOIN temp.site_of o ON o.id = c.loop
		LEFT JOIN temp.site_of r ON r.id = c.region AND c.region > 0 LEFT JOIN temp.metric m ON m.id = c.metric
		LEFT JOIN temp.site s ON s.entry = o.entry
		WHERE c.window BETWEEN :first AND :last AND takes(task) AND (:only IS NULL OR task_of(task) > 0)
			AND (:tier = 0 OR s.kind IS NULL OR s.kind NOT BETWEEN 6 AND 9) AND coalesce(m.entry, 0) <= :metrics)
	GROUP BY at, metric;
UPDATE temp.metric SET seen = 1 WHERE NOT seen AND entry IN (SELECT metric FROM temp.loop);

-- A pin has all processes of its job, also those without samples: its report needs them.
-- [job] source
SELECT task_give(task_of(id), NULL) FROM source.task WHERE process = id AND task_of(id) > 0 ORDER BY id;

-- [left] source
SELECT damage('a row belongs to no window') FROM source.sample WHERE id > :after LIMIT 1;
SELECT damage('a row belongs to no window') FROM source.loss WHERE window NOT IN (SELECT id FROM temp.window) LIMIT 1;
SELECT damage('a row belongs to no window') FROM source.loop_count WHERE window NOT IN (SELECT id FROM temp.window) LIMIT 1;
SELECT damage('a reading belongs to no sample') FROM source.reading WHERE sample > :after LIMIT 1;

-- Sort the sums by weight, the heaviest first, but threads that waited last; equal ones in their order of arrival.
-- [order] source
DELETE FROM temp.light;
DELETE FROM temp.moved;
INSERT INTO temp.light SELECT NULL, sum, at, CASE :fold WHEN 0 THEN fold_key(0, sum) END FROM temp.tally
	ORDER BY event IN (SELECT id FROM main.event WHERE pmu = 'waiting'), weight_ns DESC, count DESC, at;

-- Sort the sums that the last step of folding made.
-- [reorder] source
DELETE FROM temp.light;
DELETE FROM temp.moved;
INSERT INTO temp.light SELECT NULL, into_sum, NULL, fold_key(:fold, into_sum) FROM temp.tally WHERE NOT kept GROUP BY into_sum
	ORDER BY sum(weight_ns) DESC, sum(count) DESC, min(place);

-- Fold one step: keep as many of the heaviest sums as leave room for the coarser sums of the others, but at least
-- half as many as there is room for, except in the last step.
-- [fold] source
WITH least(n) AS (SELECT CASE WHEN :fold < 2 THEN :room / 2 ELSE 0 END),
	met(at) AS MATERIALIZED (SELECT max(at) FROM temp.light GROUP BY coarse),
	total(n, of_all) AS (SELECT at - 1, at - 1 + (SELECT count(*) FROM met WHERE at > :room)
			+ sum(at IN met) OVER (ORDER BY at DESC)
		FROM temp.light WHERE at <= :room),
	kept(n) AS (SELECT coalesce(max(n), (SELECT n FROM least)) FROM total
		WHERE of_all <= :room AND n >= (SELECT n FROM least))
	INSERT INTO temp.moved SELECT sum, CASE WHEN at > n THEN coarse END, at FROM temp.light, kept;
UPDATE temp.tally SET kept = m.into_sum IS NULL, cut = cut OR :fold = 0 AND m.into_sum NOTNULL AND m.into_sum <> tally.into_sum,
	into_sum = coalesce(m.into_sum, tally.into_sum), place = m.place
	FROM temp.moved m WHERE m.sum = tally.into_sum AND NOT kept;

-- Charge users for their sums, the heaviest first; those of users over their share lose detail.
-- [share] source
INSERT INTO temp.moved SELECT l.sum, share_charge(payer(task), share_key(r.sum),
		:sample_bytes + :reading_bytes * (SELECT count(*)
		FROM temp.counted WHERE at_event BETWEEN r.at << 8 AND (r.at << 8) + 255)), l.at
	FROM temp.light l CROSS JOIN temp.tally r ON r.at = l.tally ORDER BY l.at;
UPDATE temp.tally SET into_sum = m.into_sum, cut = m.into_sum <> tally.sum, place = m.place
	FROM temp.moved m WHERE m.sum = tally.sum;
INSERT INTO temp.lost SELECT hart, :over_share, count FROM temp.tally WHERE cut AND count > 0;

-- [regroup] source
INSERT INTO temp.made SELECT row_number() OVER (ORDER BY min(place)), into_sum, sum_part(into_sum, 0) >> 32,
	sum_part(into_sum, 0) & 0xffffffff, event, rung, hart, sum(count), sum(weight_ns),
	sum(CASE WHEN cut THEN count ELSE truncated END), sum(uncounted), 0, 0, 0, 0 FROM temp.tally GROUP BY into_sum;
INSERT INTO temp.made_counted SELECT (m.at << 8) | (at_event & 255) e, sum(c.value), sum(c.enabled_ns), sum(c.running_ns), min(c.whole)
	FROM temp.counted c JOIN temp.tally r ON r.at = at_event >> 8 JOIN temp.made m ON m.sum = r.into_sum GROUP BY e;
DELETE FROM temp.tally;
DELETE FROM temp.counted;
INSERT INTO temp.tally SELECT * FROM temp.made;
INSERT INTO temp.counted SELECT * FROM temp.made_counted;
DELETE FROM temp.made;
DELETE FROM temp.made_counted;

-- [losses] source
INSERT INTO temp.loss SELECT hart, cause, sum(count) FROM temp.lost GROUP BY hart, cause;

-- [write] main
INSERT INTO main.window VALUES (:window, :start, :end, :realtime);
INSERT INTO main.sample SELECT :base + at, :window, hart, coalesce(task_give(task, payer(task)), 0),
	coalesce(stack_give(CASE WHEN stack_fits(stack) THEN stack ELSE leaf(stack) END, payer(task)), 0), event, rung,
	count, weight_ns, CASE WHEN stack_fits(stack) THEN truncated ELSE count END, uncounted FROM temp.tally ORDER BY at;
INSERT INTO main.reading SELECT :base + (at_event >> 8), at_event & 255, value, CASE WHEN NOT whole THEN enabled_ns END,
	CASE WHEN NOT whole AND running_ns <> enabled_ns THEN running_ns END FROM temp.counted ORDER BY at_event;
INSERT INTO main.loss SELECT :window, * FROM temp.loss;

-- An extract has the seconds of the processes that it takes, and those of harts only if it takes all tasks.
-- [seconds_taken] source
INSERT INTO temp.second SELECT hart, task_of(task), CAST(substr(at, 1, :seconds) AS BLOB) FROM source.second
	WHERE window BETWEEN :first AND :last AND typeof(hart) = 'integer' AND typeof(task) = 'integer' AND typeof(at) = 'blob'
	AND CASE WHEN hart < 0 THEN task_of(task) > 0 AND takes(task)
		ELSE task = 0 AND hart < :harts AND NOT :narrow AND :only IS NULL END;
INSERT INTO temp.second SELECT -1, 0, CAST(at AS INTEGER) FROM source.second
	WHERE window BETWEEN :first AND :last AND hart = -1 AND task = 0 AND NOT :narrow AND :only IS NULL;

-- [seconds] main
INSERT OR IGNORE INTO main.second SELECT :window, hart, coalesce(task_row(task), 0), at FROM temp.second
	WHERE task = 0 OR task_row(task) NOTNULL;
DELETE FROM temp.second;

-- Keep the heaviest rows of loops, and add up the others of each task to the function '[other]'. Entries of an
-- uncounted callee (kind 5) are calls, and do not count as entries of '[other]'.
-- [loop_fold] source
DELETE FROM temp.moved;
INSERT OR IGNORE INTO temp.site SELECT site_key(2 << 32, text('') << 32 | text('[other]'), text(''), 0, 0), 2, NULL,
	'[other]', NULL, NULL, '', NULL, NULL, NULL, 0;
INSERT INTO temp.moved SELECT at, CASE WHEN n > :hour_loops THEN loop_key(loop_part(at, 0),
		site_key(2 << 32, text('') << 32 | text('[other]'), text(''), 0, 0), 0) ELSE at END, kind = 5 AND n > :hour_loops
	FROM (SELECT a.at, kind, row_number() OVER (ORDER BY coalesce(l.high, 0) DESC, coalesce(l.low, 0) DESC, a.at) n
		FROM (SELECT DISTINCT at FROM temp.loop) a JOIN temp.site s ON s.entry = loop_part(a.at, 1)
		LEFT JOIN temp.loop l ON l.at = a.at
			AND l.metric = CASE kind WHEN 5 THEN metric_key(text('entries')) ELSE metric_key(text('instructions')) END);
INSERT INTO temp.made_loop SELECT m.into_sum, metric, sum(high), sum(low) FROM temp.loop l JOIN temp.moved m ON m.sum = l.at
	WHERE NOT (m.place AND metric = metric_key(text('entries'))) GROUP BY m.into_sum, metric;
DELETE FROM temp.loop;
INSERT INTO temp.loop SELECT * FROM temp.made_loop;
DELETE FROM temp.made_loop;

-- A region with granted_ns had its events counted: write a zero for each granted event of this window or
-- file for which the region has no count.
-- [loops] main
INSERT OR IGNORE INTO temp.loop SELECT at, e, 0, 0 FROM temp.loop g, (SELECT entry e FROM temp.metric WHERE seen
		UNION SELECT metric_key(text(name)) FROM main.loop_metric)
	WHERE g.metric = metric_key(text('granted_ns')) AND (high > 0 OR low > 0) AND words(metric_part(e, 0)) GLOB 'granted:*';
INSERT INTO main.loop_count SELECT :window, coalesce(task_give(loop_part(at, 0), NULL), 0), site_give(loop_part(at, 1), NULL),
	coalesce(site_give(loop_part(at, 2), NULL), 0), metric_give(metric, NULL),
	CASE WHEN high + (low >> 32) > 0x7fffffff THEN 9223372036854775807 ELSE (high << 32) + low END
	FROM temp.loop l WHERE high > 0 OR low > 0 OR words(metric_part(metric, 0)) GLOB 'granted:*' AND EXISTS
		(SELECT 1 FROM temp.loop g WHERE g.at = l.at AND g.metric = metric_key(text('granted_ns')) AND (g.high > 0 OR g.low > 0));
INSERT INTO main.loop_site SELECT n.row, kind, CASE WHEN length(build_id) > 0 THEN build_id END, subprogram, source, line, nest,
	inlined_at, nullif(n.parent, 0), line_last, column, flags FROM temp.new_site n JOIN temp.site USING (entry) ORDER BY n.row;
INSERT INTO main.loop_metric SELECT row, words(metric_part(entry, 0)),
	(SELECT unit FROM temp.metric m WHERE m.entry = n.entry) FROM temp.new_metric n;

-- [give] main
INSERT INTO main.stack SELECT row, parent, coalesce(frame_give(stack_part(entry, 1), payer), 0) FROM temp.new_stack ORDER BY row;

-- [fetch] source
INSERT INTO temp.task SELECT n.row, pid, tid, CASE WHEN t.process <> t.id AND :tier = 0 AND n.parent > 0 THEN n.parent ELSE n.row END,
	CASE WHEN t.process = t.id OR :tier = 1 THEN nullif(n.parent, 0) END, start_ns, end_ns, words(text(comm)), words(text(exe)), CASE WHEN whole THEN argv END,
	CASE WHEN c.path NOTNULL THEN cgroup_key(text(c.path)) END, uid, kernel_thread, account, n.payer
	FROM temp.new_task n CROSS JOIN source.task t ON t.id = n.origin LEFT JOIN source.cgroup c ON c.id = t.cgroup
	WHERE :tier < 2;
INSERT INTO temp.frame SELECT row, f.offset FROM temp.new_frame n CROSS JOIN source.frame f ON f.id = n.origin WHERE :tier = 2;
INSERT INTO temp.place SELECT row, depth, function_of(function), source_of(source), line, inlined, payer
	FROM temp.new_frame n CROSS JOIN source.place p ON p.frame = n.origin WHERE :tier < 2 AND n.origin > 0;

-- [describe] main
INSERT INTO temp.place SELECT row, 0, symbol, 0, NULL, 0, payer
	FROM (SELECT *, CASE :tier WHEN 2 THEN frame_part(entry, 1) ELSE names_part(frame_part(entry, 2), 1) END symbol
		FROM temp.new_frame) WHERE (:tier = 2 OR origin = 0) AND symbol > 0;
INSERT INTO main.frame SELECT n.row, coalesce(file_give(frame_part(entry, 0), payer), 0),
	CASE :tier WHEN 2 THEN coalesce(f.offset, 0) ELSE frame_part(entry, 1) END, frame_part(entry, 3)
	FROM temp.new_frame n LEFT JOIN temp.frame f USING (row) ORDER BY n.row;
INSERT INTO main.place SELECT frame, depth, function_give(function, payer), source_give(source, payer), line, inlined
	FROM temp.place WHERE charge(payer, frame, depth, nullif(function, 0), nullif(source, 0), line, inlined)
	ORDER BY frame, depth;
INSERT INTO temp.task SELECT row, 0, 0, row, NULL, 0, NULL, words(task_part(entry, 0)), words(task_part(entry, 1)), NULL,
	task_part(entry, 2) & 0xffffffff, CASE WHEN whose >> 39 & 1 THEN 0 WHEN whose & (1 << 38) THEN NULL
		ELSE (whose & ((1 << 38) - 1)) - 1 END,
	whose >> 40, nullif(whose & ((1 << 38) - 1), 0) - 1, payer
	FROM (SELECT *, task_part(entry, 3) whose FROM temp.new_task) WHERE :tier = 2;
INSERT INTO main.task SELECT id, pid, tid, process, parent, start_ns, end_ns, comm, exe,
		argv, cgroup_give(cgroup, payer), uid, kernel_thread, account
	FROM temp.task WHERE charge(payer, id, pid, tid, process, parent, start_ns, end_ns, comm, exe,
		argv, nullif(cgroup, 0), uid, kernel_thread, account) ORDER BY id
	ON CONFLICT (id) DO UPDATE SET end_ns = excluded.end_ns, comm = excluded.comm, exe = coalesce(excluded.exe, exe),
		argv = coalesce(excluded.argv, argv), cgroup = coalesce(excluded.cgroup, cgroup);
INSERT OR REPLACE INTO main.task_label_set SELECT row, labels_give(labels, payer)
	FROM (SELECT *, CASE :tier WHEN 2 THEN task_part(entry, 2) >> 32 ELSE task_part(entry, 0) >> 32 END labels
		FROM temp.new_task)
	WHERE labels > 0 AND (:tier > 0 OR (SELECT process = id FROM main.task WHERE id = row)) AND charge(payer, row, labels);
INSERT INTO main.label_set SELECT row, CAST(substr(t, 1, instr(t, ' ') - 1) AS INTEGER), substr(t, instr(t, ' ') + 1)
	FROM (SELECT row, words(labels_part(entry, 0)) t FROM temp.new_labels);
INSERT INTO main.cgroup SELECT row, words(cgroup_part(entry, 0)) FROM temp.new_cgroup;
INSERT INTO main.function SELECT row, words(function_part(entry, 0)) FROM temp.new_function;
INSERT INTO main.source SELECT row, words(source_part(entry, 0)) FROM temp.new_source;

-- [files] source
INSERT INTO temp.file SELECT row, kind, words(text(path)), CASE WHEN length(build_id) > 0 THEN CAST(build_id AS BLOB) END,
	CASE WHEN inode NOTNULL THEN major END, CASE WHEN inode NOTNULL THEN minor END, inode, deleted, state, has_symbols,
	has_debug, payer FROM temp.new_file n CROSS JOIN source.file f ON f.id = n.origin WHERE n.origin > 0;

-- [end] main
INSERT INTO temp.file SELECT row, file_part(entry, 0) & 255, words(file_part(entry, 1)), NULL, NULL, NULL, NULL, 0, 0, 0, 0,
	payer FROM temp.new_file WHERE origin = 0;
INSERT INTO main.file SELECT id, kind, path, build_id, major, minor, inode, deleted, state, has_symbols, has_debug FROM temp.file
	WHERE charge(payer, id, kind, path, build_id, major, minor, inode, deleted, state, has_symbols, has_debug);
DELETE FROM temp.file;
DELETE FROM temp.frame;
DELETE FROM temp.place;
DELETE FROM temp.task;
DELETE FROM temp.tally;
DELETE FROM temp.counted;
DELETE FROM temp.lost;
DELETE FROM temp.loss;
DELETE FROM temp.loop;
DELETE FROM temp.new_site;
DELETE FROM temp.new_metric;
DELETE FROM temp.new_task;
DELETE FROM temp.new_stack;
DELETE FROM temp.new_frame;
DELETE FROM temp.new_file;
DELETE FROM temp.new_function;
DELETE FROM temp.new_source;
DELETE FROM temp.new_cgroup;
DELETE FROM temp.new_labels;
