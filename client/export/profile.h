/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A profile: the dictionaries of an export, and its samples as they come
 *
 * Entries are kept, since later samples refer to them; samples are passed on at once. Every number
 * is checked, so a format can use it as an index. Names come from other people's programs and
 * become harmless text here (escape.h), so a format only escapes its own special characters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/mperf.pb-c.h"

/* Entries of one dictionary; the daemon has no more ids. */
#define PROFILE_ENTRIES_MAX (1u << 26)
/* A format gets at most this many frames of a stack, the innermost. Kernel and user have 512 each,
 * and inlining multiplies them. A recording with more is crafted, and its output would grow with
 * the square. */
#define PROFILE_DEPTH_MAX 4096

enum {
	PROFILE_TOO_LARGE = 1, /* more entries than the limit */
	PROFILE_MALFORMED,     /* a number without an entry, or arrays of different lengths */
};

/* As file.kind of a segment (daemon/store/segment/schema.sql). */
enum profile_kind {
	PROFILE_ELF = 1,
	PROFILE_KERNEL,
	PROFILE_MODULE,
	PROFILE_VDSO,
	PROFILE_PERF_MAP,
	PROFILE_JITDUMP,
	PROFILE_ANONYMOUS,
	PROFILE_UNKNOWN,
};

struct profile_module {
	uint32_t path, build_id; /* texts; build_id 0: none */
	enum profile_kind kind;
	uint64_t offset_max; /* of its frames */
};

struct profile_frame {
	uint32_t module;
	uint64_t offset;
	uint32_t place, n_places; /* innermost first, the symbol itself last; 0: no name */
};

struct profile_place {
	uint32_t function, source; /* texts; 0: not known */
	uint32_t line;             /* 0: not known */
};

struct profile_task {
	int32_t pid, tid;
	uint32_t comm, process, cgroup; /* texts */
};

struct profile_window {
	int64_t realtime_ns, start_ns, end_ns;
};

struct profile_stack {
	uint32_t caller, frame; /* caller 0: none; frame is none of 0 */
};

/* Arrays by number; [0] is "not known", empty. */
struct profile {
	Mperf__Unit unit; /* of profile_sample.value: UNIT_NS or UNIT_COUNT */
	char **text;      /* escaped; [0] is "" */
	struct profile_module *module;
	struct profile_frame *frame;
	struct profile_place *place; /* all frames' */
	struct profile_task *task;
	struct profile_window *window;
	struct profile_stack *stack;
	uint32_t n_texts, n_modules, n_frames, n_places, n_tasks, n_windows, n_stacks;
	uint32_t size_texts, size_modules, size_frames, size_places, size_tasks, size_windows,
		size_stacks;
	uint64_t n_samples; /* rows so far */
};

struct profile_sample {
	uint32_t window, task, stack, event; /* numbers; event is a text */
	int32_t hart;                        /* -1: not known */
	int64_t at_ns; /* when it was taken, from the start of its window; -1: not known */
	uint64_t count, ns, value;
	bool has_cycles, has_instructions;
	uint64_t cycles, instructions;
};

/* Does the sample have only cycles and instructions, delivered by a context switch? Formats that
 * cannot show these leave it out. */
static inline bool profile_sample_is_counts(const struct profile_sample *s)
{
	return s->count == 0 && s->value == 0;
}

/* Prepare the empty struct. 0 or -ENOMEM. */
int profile_init(struct profile *p);
void profile_clear(struct profile *p);

/* Take a part; `take` gets each of its samples. 0, an outcome above, take's value, -ENOMEM. */
int profile_add(struct profile *p, const Mperf__Profile *part,
	int (*take)(void *userdata, const struct profile_sample *s), void *userdata);

/* The name of a place, or "[unknown]". */
const char *profile_function(const struct profile *p, const struct profile_place *place);
/* The file name of a module without its folders; "[unknown]". */
const char *profile_module_name(const struct profile *p, uint32_t module);
bool profile_is_kernel(const struct profile *p, const struct profile_frame *f);

/* The places of a frame: at least one, which for a frame without names is empty. */
const struct profile_place *profile_places(
	const struct profile *p, const struct profile_frame *f, uint32_t *ret_n);
