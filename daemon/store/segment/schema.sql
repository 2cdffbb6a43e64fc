-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
--
-- mperf segment, schema version 1 (user_version 1, application_id 0x6d507266 "mPrf").
--
-- A segment is one SQLite file that holds a stretch of profile and every name it needs. This text is
-- a public interface: read a sealed segment with any SQLite, open it with ?immutable=1. Behind its last
-- page a sealed one has 32 bytes more, which SQLite passes over: "mPrfSeal", the number of bytes before
-- them (64 bits, little endian) and their XXH3 hash (128 bits, big endian). A file that does not
-- match them is refused.
--
-- Numbers that mean time are nanoseconds. `*_ns` without further word is CLOCK_MONOTONIC of the boot
-- in meta; `realtime_ns` is CLOCK_REALTIME. Ids are the segment's own and mean nothing in another
-- file: join segments by what they name (build id and offset, pid and start, function and path).
-- NULL is "not known", never zero. Text that names other people's programs is as they gave it.
-- No column holds a kernel address: offsets in the kernel count from its base.

-- What the segment is. Keys:
--   boot_id               /proc/sys/kernel/random/boot_id
--   monotonic_ns, realtime_ns   one instant on both clocks, at the start
--   end_ns                CLOCK_MONOTONIC at which it was sealed
--   host, release, arch   uname -n, -r, -m
--   hz                    samples a second that each hart was asked for; the highest rate, where it rose; 0: none
--                         samples by time
--   period:EVENT          occurrences of that event for which each of its samples stands, as was asked for; how much
--                         time that is is not known, and their weight_ns is 0. Missing: it samples by time, or is a
--                         clock
--   switches              what kept the counts of groups apart where one task gave way to another, as a sum:
--                         1 the context-switches sibling, 2 BPF, 8 switches were only counted on some hart
--                         (sample.uncounted), 4 not even that: nothing was charged there, before version 4 to
--                         anybody; missing: nothing was to be cut
--   command               what was recorded, for people; may be missing
--   all                   1: the whole system was watched; 0: only targets and what they started
--   tier                  'window', 'minute' or 'hour': what one row of "window" stands for
--   software              who wrote it, 'mperfd' and its version
--   sealed                1 once it is complete; a file with 0 is unfinished
--   recovered             1: its writer died, and another sealed it; its end is that of the last window
--   hz_lowest             where the kernel let less be sampled than hz: the least it let
--   leader:HART:RUNG      event that shared out that hart's time at that rung, where it is not the hart's; 0: any
--   core:HARTS            name of the platform of these harts (platform-db), whose formulas fit their counts
--   turn:HARTS:PASS       how far turns of groups may put the counts of that pass off on these harts, in millionths
--                         of them (daemon/count/rotation.h); missing: not known
--   note:HARTS:EVENT:TEXT   1: what figures of these harts ('0-3,8'), and of that event if it is not 0, mean less than they seem to
-- of the file of a pinned job (daemon/store/pin.h):
--   pinned_uid, pinned_labels   the job, as in label_set
--   pinned_by             user who pinned it
--   pinned_group, pinned_keep   what it was selected by, and how many of these are kept; 0: until unpinned
--   pinned_ns             CLOCK_REALTIME at which it was pinned
-- and of these and the coarser tiers, which sum up what finer files hold:
--   source:NAME           1: the file of that name is in it
--   hz_mixed              1: its sources had different rates, hz is the highest
-- In the minute tier tasks are processes. In the hour tier they are programs, with pid 0; frames are
-- functions, and harts the first of their kind. There the program '[other]' and the function '[other]'
-- stand for what was too little to be kept apart.
CREATE TABLE meta (
	key TEXT PRIMARY KEY NOT NULL,      -- see above
	value                               -- text or integer, as the key wants
) WITHOUT ROWID;

-- What was counted or sampled. An event is its content; the name is for people. With pmu 'waiting' it is threads without a
-- hart, config says what they waited for, and weight_ns is how long.
CREATE TABLE event (
	id INTEGER PRIMARY KEY,
	pmu TEXT NOT NULL,                  -- 'hardware', 'software', 'cache', 'raw', 'tracepoint', or as sysfs names the PMU
	type INTEGER NOT NULL,              -- perf_event_attr.type
	config INTEGER NOT NULL,            -- perf_event_attr.config, .config1, .config2
	config1 INTEGER NOT NULL,
	config2 INTEGER NOT NULL,
	modifiers INTEGER NOT NULL,         -- 1 user excluded, 2 kernel excluded, 4 hypervisor excluded; precise_ip * 16
	name TEXT NOT NULL,                 -- as the user wrote it, 'cycles:u'
	unit TEXT NOT NULL,                 -- of its values: 'ns' or 'count'
	UNIQUE (pmu, type, config, config1, config2, modifiers)
);

-- The harts (CPUs) and how each was sampled.
CREATE TABLE hart (
	id INTEGER PRIMARY KEY,             -- as Linux numbers them
	rung INTEGER NOT NULL,              -- 0 not sampled, 1 cycles, 2 the core's own leader, 3 cpu-clock leading counters, 4 cpu-clock, 5 as asked
	reason TEXT,                        -- why this rung, a sentence
	leader INTEGER,                     -- event that shares out this hart's time
	user_only INTEGER NOT NULL          -- 1: user mode alone was seen
);

-- Control groups of tasks.
CREATE TABLE cgroup (
	id INTEGER PRIMARY KEY,             -- the kernel's id of the group
	path TEXT NOT NULL                  -- below the root of the hierarchy, '/system.slice/…'
);

-- A thread that lived: one with samples or counts, and what it descends from; of jobs, and of the chosen processes of a
-- recording, also processes without any. (pid, start_ns) names a process, (tid, start_ns) a thread; numbers recur. uid is
-- whose it wholly was (mperfd(8), PERMISSIONS), 0 also where it was nobody's; NULL also where its group
-- was not the one of that user. A process that became another's has a task for each of them. account is the
-- real user of its process, who paid for it, also where uid is not.
CREATE TABLE task (
	id INTEGER PRIMARY KEY,
	pid INTEGER NOT NULL,               -- process
	tid INTEGER NOT NULL,               -- thread
	process INTEGER NOT NULL,           -- task of the process' first thread; itself for that one
	parent INTEGER,                     -- task that started the process
	start_ns INTEGER NOT NULL,
	end_ns INTEGER,                     -- NULL: lived on when the segment was sealed
	comm TEXT NOT NULL,                 -- the name that the kernel had last
	exe TEXT,                           -- path of the executable; set for processes only
	argv BLOB,                          -- arguments, each ended by NUL; set for processes only
	cgroup INTEGER,
	uid INTEGER,
	kernel_thread INTEGER NOT NULL,     -- 1: a thread of the kernel
	account INTEGER
);

-- Labels of tasks, for tools that add their own: mperf's are those of label_set. Children inherit; only
-- roots are here.
CREATE TABLE label (
	task INTEGER NOT NULL,
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (task, key)
) WITHOUT ROWID;

-- Jobs: sets of labels that processes had, by requests and from their environment. A process that came
-- into another job has a task for each.
CREATE TABLE label_set (
	id INTEGER PRIMARY KEY,
	uid INTEGER NOT NULL,               -- who gave them: a user may claim any label, so trust no label without its user
	labels TEXT NOT NULL                -- one JSON object of text by key, with sorted keys: {"branch":"main","job":"lint"}
);
CREATE TABLE task_label_set (
	task INTEGER PRIMARY KEY,           -- a process; its threads have the same labels
	label_set INTEGER NOT NULL
);

-- Where code came from.
CREATE TABLE file (
	id INTEGER PRIMARY KEY,
	kind INTEGER NOT NULL,              -- 1 ELF, 2 kernel, 3 module, 4 vdso, 5 perf map, 6 jitdump, 7 anonymous, 8 unknown
	path TEXT NOT NULL,                 -- as the process saw it; '[kernel]', '[vdso]', '[nf_tables]'
	build_id BLOB,                      -- 1 to 20 bytes
	major INTEGER,                      -- device and inode, where there is no build id
	minor INTEGER,
	inode INTEGER,
	deleted INTEGER NOT NULL,           -- 1: no longer had this name when it was mapped
	state INTEGER NOT NULL,             -- naming it: 0 unseen, 1 opening, 2 ready, 3 vanished, 4 refused, 5 no symbols, 6 malformed, 7 hung on open, 8 parser spun, 9 parser crashed, 10 oversize
	has_symbols INTEGER NOT NULL,
	has_debug INTEGER NOT NULL          -- 2: but not all files of its split units (-gsplit-dwarf) that names needed
);

-- An address in a file. Callers are call sites (inside the call, not behind it).
CREATE TABLE frame (
	id INTEGER PRIMARY KEY,
	file INTEGER NOT NULL,
	offset INTEGER NOT NULL,            -- ELF: file offset; kernel, module, vdso: from its base; JIT, anonymous: address
	state INTEGER NOT NULL              -- 0, 1 not named yet, 2 named, 3 outside every sized symbol, 4 file gives no names, 5 by the start of its function
);

-- Names that places refer to, each once.
CREATE TABLE function (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL                  -- demangled
);
CREATE TABLE source (
	id INTEGER PRIMARY KEY,
	path TEXT NOT NULL                  -- as debug information has it
);

-- What a frame is called. Depth 0 is the innermost inlined function, the last is the symbol itself.
CREATE TABLE place (
	frame INTEGER NOT NULL,
	depth INTEGER NOT NULL,
	function INTEGER,
	source INTEGER,
	line INTEGER,
	inlined INTEGER NOT NULL,           -- 1: this function is inlined into the next place's
	PRIMARY KEY (frame, depth)
) WITHOUT ROWID;

-- Stacks as a tree of call sites: a row is one frame under its caller.
CREATE TABLE stack (
	id INTEGER PRIMARY KEY,             -- above its parent's
	parent INTEGER NOT NULL,            -- the caller; 0: outermost
	frame INTEGER NOT NULL
);

-- Stretches of time: one flush, minute or hour (meta.tier).
CREATE TABLE window (
	id INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL,
	end_ns INTEGER NOT NULL,            -- exclusive
	realtime_ns INTEGER NOT NULL        -- of its start
);

-- How often it was sampled where. Rows with the same (window, hart, task, stack, event, rung) add up. Those of an event with
-- pmu 'waiting' are not CPU time.
CREATE TABLE sample (
	id INTEGER PRIMARY KEY,
	window INTEGER NOT NULL,
	hart INTEGER NOT NULL,
	task INTEGER NOT NULL,
	stack INTEGER NOT NULL,             -- its leaf; 0: no stack
	event INTEGER NOT NULL,             -- the event that sampled
	rung INTEGER NOT NULL,              -- as in hart, at that time; from 16 on no sample, but counts of the whole hart, in pass rung - 16
	count INTEGER NOT NULL,             -- samples; 0 for counts that a context switch delivered
	weight_ns INTEGER NOT NULL,         -- time that these samples stand for (daemon/attribute/weigh.c)
	truncated INTEGER NOT NULL,         -- samples of these whose stack ends early
	uncounted INTEGER NOT NULL DEFAULT 0 -- samples of these that the readings do not cover: the group is not cut at switches, and there was one since the sample before
);

-- What events counted while a sample row gathered. cpu-clock's own value is weight_ns and has no row.
CREATE TABLE reading (
	sample INTEGER NOT NULL,
	event INTEGER NOT NULL,
	value INTEGER NOT NULL,             -- not scaled; for an event that sampled outside a group, its periods' sum
	enabled_ns INTEGER,                 -- NULL: sum of periods, complete as it is
	running_ns INTEGER,                 -- NULL: all of enabled_ns; else scale value by enabled_ns / running_ns
	PRIMARY KEY (sample, event)
) WITHOUT ROWID;

-- How long threads lived in the window, of recordings of some processes. Linux counts the times of each thread, and they
-- are read a few times a second, so that they may come in the next window. A file of an earlier version has no such
-- table. What is left of lived_ns is the time in which the thread waited for something other than a hart.
CREATE TABLE thread_time (
	window INTEGER NOT NULL,
	task INTEGER NOT NULL,
	lived_ns INTEGER NOT NULL,
	ran_ns INTEGER NOT NULL,            -- it had a hart
	ready_ns INTEGER NOT NULL,          -- it waited for a hart
	unsplit_ns INTEGER NOT NULL,        -- it had no hart; whether it waited for one is not known
	PRIMARY KEY (window, task)
) WITHOUT ROWID;

-- When the samples of a window were taken, in recordings: a whole number of 65,536ths of the window for each sample, in
-- two bytes, little endian. First those of its row with the lowest id, ascending, as many as its count, then those of
-- the next. 0: before the window, the sample waited for its callers. The service's windows have none, and a file of an
-- earlier version has no such table.
CREATE TABLE moment (
	window INTEGER PRIMARY KEY,
	at BLOB NOT NULL
);

-- How the time of harts and processes was spread over a window, in the service's windows: a byte for each second from the
-- window's start, in proportion to the time that the hart was busy, or the process ran, in it. 255 is the second with the
-- most; seconds of 0 at the end are left out. What has no row here was spread evenly, by a tenth of a second in each
-- second. A row with neither a hart nor a process says for how many processes there was no room: `at` is their number.
-- Recordings have moments instead. A file of an earlier version has no such table.
CREATE TABLE second (
	window INTEGER NOT NULL,
	hart INTEGER NOT NULL,              -- -1: of a process
	task INTEGER NOT NULL,              -- a process; 0: of a hart
	at BLOB NOT NULL,
	PRIMARY KEY (window, hart, task)
) WITHOUT ROWID;

-- What was lost or could not be done, by hart and cause.
CREATE TABLE loss (
	window INTEGER NOT NULL,
	hart INTEGER NOT NULL,
	cause TEXT NOT NULL,                -- 'ring overrun', …; mperfctl(1) lists them
	count INTEGER NOT NULL,
	PRIMARY KEY (window, hart, cause)
) WITHOUT ROWID;

-- Loops, functions, regions and blocks that count themselves (programs built with the mperf pass),
-- and what they call that does not: its calls are entries, and what copies move are bytes.
-- Copies that the compiler made of a loop are one site. What a site is in comes before it.
CREATE TABLE loop_site (
	id INTEGER PRIMARY KEY,
	kind INTEGER NOT NULL,              -- 1 loop, 2 function, 3 region, 4 block, 5 callee that is not counted itself; of OpenMP 6 parallel region, in one 7 what deals out work, 8 waits, 9 locks
	build_id BLOB,                      -- of the file it was compiled into
	subprogram TEXT NOT NULL,           -- linkage name of the function that it was written in; name of a region, '' what is in none
	source TEXT,                        -- path, as the compiler was given it
	line INTEGER,                       -- where it starts
	nest TEXT NOT NULL,                 -- path of ordinals from the outermost loop, '1.2'; of a block with its own, '1.2#3'; '' for functions and regions; of OpenMP a word, and the offset of its return address in the file: 'critical@11a0'
	inlined_at TEXT,                    -- 'path:line' chain, innermost first, where it was inlined; of OpenMP the symbol, where that is not subprogram
	parent INTEGER,                     -- loop or function that it is in, or that calls it; of a region the region around it
	line_last INTEGER,                  -- where it ends
	column INTEGER,                     -- where in its line it starts
	flags INTEGER NOT NULL              -- a sum: 1 there is a vectorised copy, 2 a remainder, 4 inline assembly in it is not counted, 8 lines are not known, 16 its counts are of counted_entries of all entries
);

-- Names of what they count: 'entries', 'iterations', 'bytes_loaded', 'bytes_stored', 'loads',
-- 'stores', 'stack_bytes_loaded', 'stack_bytes_stored', 'int_ops', 'fp16_ops', 'fp32_ops',
-- 'fp64_ops', 'fp_wide_ops', 'branches', 'calls', 'external_calls', 'instructions', 'updates',
-- 'lanes_issued', 'lanes_active', 'timed_entries', 'time_ns'; of each but the last two a variant
-- that ends in '_modelled', which is to be added: what library calls are taken to do. Of regions
-- also 'counted_entries', 'counted_ns' and 'span_ns', for how long their counts gathered; and of
-- events that the service gave their threads to count, 'granted:NAME', in entries of 'granted_ns'.
-- If 1 in N entries of a region was measured, these and 'time_ns' are of all, estimated from
-- 'timed_entries' of them, which stand for 'represented' ones; 'inner_entries' are inside the same
-- region, and not drawn from. 'time_variance' and 'variance:NAME' are variances of these estimates,
-- in 1024 units squared, rounded up. Of parallel regions 'calls' are the instances that a thread began, and
-- 'wait_ns' and 'lock_ns' are part of 'time_ns'.
CREATE TABLE loop_metric (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	unit TEXT NOT NULL                  -- 'count', 'bytes', 'ns', 'variance'
);

-- What they counted in a window: a loop without the loops and callees inside, a function without its loops.
CREATE TABLE loop_count (
	window INTEGER NOT NULL,
	task INTEGER NOT NULL,              -- 0: not known
	loop INTEGER NOT NULL,              -- loop_site
	region INTEGER NOT NULL,            -- loop_site of the innermost region that it was counted in; 0: in none
	metric INTEGER NOT NULL,            -- loop_metric
	value INTEGER NOT NULL,
	PRIMARY KEY (window, task, loop, region, metric)
) WITHOUT ROWID;
