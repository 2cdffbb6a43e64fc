/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * First a sweep of sizes finds the levels of memory, then the plan tries kernels, then all roofs are
 * measured in rounds of one repeat each. So a disturbance of a second spoils one repeat of many
 * roofs, and not all repeats of one.
 */
#include "client/roofs/measure/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/roofs/caches.h"
#include "client/roofs/measure/plan.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SWEEP_FIRST_BYTES 4096
#define SWEEP_TRIES 3
#define SWEEP_TRIES_MAX 8 /* while a level that the machine states is missing */
#define SWEEP_RUN_NS 1000000
#define SWEEP_WARM_NS_MAX 20000000 /* a pass over the largest cache */
#define SWEEP_LAST_BYTES_MIN (32u << 20)
#define SWEEP_LAST_BYTES_MAX (1u << 30)
#define SWEEP_BYTES_A_SECOND (24u << 20) /* of time: touching memory takes some, too */
#define SWEEP_SHARE 0.25                 /* maximum share of the time for second and third tries */
#define SWEEP_SHARE_MAX 0.5              /* after this share, larger sizes are left out */
#define SWEEP_SECONDS_ENOUGH 3           /* in this time sizes beyond all caches can be touched */
#define TIMES_CACHES 4       /* times the largest cache: smaller sets do not reach DRAM */
#define WARM_UP_NS 200000000 /* of each unit: clocks and voltages follow slowly */
#define WARM_UP_QUICK_NS 20000000

static void progress(const struct scope *s, double part)
{
	char what[ROOF_TEXT_BYTES];
	snprintf(what, sizeof(what), "%zu %s of %.80s", s->n_harts,
		s->n_harts == 1 ? "hart" : "harts", s->kind);
	s->options->progress(what, s->done_from + part * (s->done_to - s->done_from));
}

__attribute__((format(printf, 2, 3))) static int add_note(
	struct roofs *roofs, const char *format, ...)
{
	if (roofs->n_notes == ROOFS_NOTES_MAX)
		return 0; /* there are enough */
	void *grown = realloc(roofs->note, (roofs->n_notes + 1) * sizeof(*roofs->note));
	if (!grown)
		return -ENOMEM;
	roofs->note = grown;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(roofs->note[roofs->n_notes++], ROOF_NOTE_BYTES, format, arguments);
	va_end(arguments);
	return 0;
}

/* --- the sweep -------------------------------------------------------------------------------- */

/* The number behind `word` in a file of a control group; -1: none, which may be "max". */
static int64_t read_group(const char *group, const char *name, const char *word)
{
	char path[4096 + 64], line[128];
	int64_t n;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, word, strlen(word)) == 0 &&
			sscanf(line + strlen(word), "%" SCNd64, &n) == 1)
			return n;
	return -1;
}

/* Memory that a group still allows; its cached files can be dropped. UINT64_MAX: no limit. */
static uint64_t memory_of_group(const char *group)
{
	int64_t max = read_group(group, "memory.max", ""),
		now = read_group(group, "memory.current", ""),
		file = read_group(group, "memory.stat", "file ");
	if (max < 0 || now < 0)
		return UINT64_MAX;
	int64_t kept = now > file && file > 0 ? now - file : now;
	return max > kept ? (uint64_t)(max - kept) : 0;
}

/* Memory that our control group and those above it still allow. With more the kernel would kill us, above all
 * in a container. Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.12. */
static uint64_t memory_of_groups(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];
	uint64_t least = UINT64_MAX;
	while (f && fgets(line, sizeof(line), f)) {
		char *group = strncmp(line, "0::/", 4) == 0 ? line + 3 : NULL, *slash;
		if (!group)
			continue;
		group[strcspn(group, "\n")] = '\0';
		for (;;) {
			uint64_t left = memory_of_group(group);
			least = left < least ? left : least;
			if (!(slash = strrchr(group, '/')))
				break;
			*slash = '\0';
		}
	}
	return least;
}

/* Half of what is available, or SWEEP_LAST_BYTES_MAX if that is not known. */
static uint64_t memory_for_us(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/meminfo", "re");
	char line[256];
	uint64_t kib, bytes = UINT64_MAX, of_groups = memory_of_groups();
	while (f && bytes == UINT64_MAX && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			bytes = kib * 1024;
	bytes = of_groups < bytes ? of_groups : bytes;
	return bytes == UINT64_MAX ? SWEEP_LAST_BYTES_MAX : bytes / 2;
}

static struct sweep_hint hint_of(const struct scope *s)
{
	struct machine_caches c = machine_caches(s->number[0]);
	const struct machine_caches documented = caches_of(s->options->caches, s->number[0]);
	if (!caches_are_stated(&c) && caches_are_stated(&documented))
		c = documented;
	struct sweep_hint hint = {.n_caches = c.n_levels};
	_Static_assert(MACHINE_CACHES_MAX <= SWEEP_CACHES_MAX, "all levels have a place");
	for (size_t k = 0; k < c.n_levels; k++) {
		uint64_t n = c.level[k].n_sharing < s->n_harts ? c.level[k].n_sharing : s->n_harts;
		hint.cache[k] = n > 0 ? c.level[k].bytes / n : c.level[k].bytes;
	}
	return hint;
}

/* The largest size of the sweep, for each hart. If time is short, it may be too small to reach memory. */
static uint64_t last_bytes(const struct scope *s)
{
	const struct sweep_hint hint = hint_of(s);
	const uint64_t caches = hint.n_caches > 0 ? hint.cache[hint.n_caches - 1] : 0,
		       most = memory_for_us() / s->n_harts;
	uint64_t bytes = TIMES_CACHES * caches;
	if (bytes < SWEEP_LAST_BYTES_MIN)
		bytes = SWEEP_LAST_BYTES_MIN;
	uint64_t seconds = (s->until_ns - s->from_ns) / 1000000000;
	uint64_t max = SWEEP_LAST_BYTES_MIN + seconds * SWEEP_BYTES_A_SECOND;
	if (seconds >= SWEEP_SECONDS_ENOUGH && max < TIMES_CACHES * caches)
		max = TIMES_CACHES * caches;
	if (max > SWEEP_LAST_BYTES_MAX)
		max = SWEEP_LAST_BYTES_MAX;
	if (bytes > max)
		bytes = max;
	return bytes < most ? bytes : most;
}

/* The kernel that loads fastest from the smallest size. */
static const struct kernel *best_load(const struct scope *s, struct crew *c)
{
	const struct kernel *best = NULL;
	double highest = 0;
	for (size_t i = 0; i < n_kernels; i++) {
		if (s->probe[i].verdict != PROBE_RIGHT || strcmp(kernels[i].operation, "load") != 0)
			continue;
		struct job job = {&kernels[i], SWEEP_FIRST_BYTES * 2, SWEEP_RUN_NS, SWEEP_RUN_NS};
		struct job_result result;
		crew_run(c, &job, &result);
		if (result.rate > highest) {
			highest = result.rate;
			best = &kernels[i];
		}
	}
	return best;
}

static size_t sweep(const struct scope *s, struct crew *c, uint64_t bytes,
	struct level ret_level[static SWEEP_LEVELS_MAX])
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	size_t n = sweep_sizes(SWEEP_FIRST_BYTES, bytes, KERNEL_BLOCK_BYTES, point);
	const struct kernel *load = best_load(s, c);
	const struct sweep_hint hint = hint_of(s);
	const size_t stated = sweep_is_stated(&hint) ? hint.n_caches + 1 : 0;
	size_t n_levels = 0;
	for (int round = 0; load && round < SWEEP_TRIES_MAX; round++) {
		if (round > 0 && scope_past(s, SWEEP_SHARE))
			break;
		if (round >= SWEEP_TRIES && n_levels >= stated)
			break;
		double rate = 1e9 * (double)s->n_harts;
		for (size_t i = 0; i < n; i++) {
			struct job job = {load, point[i].bytes, SWEEP_RUN_NS, SWEEP_RUN_NS / 4};
			struct job_result result;
			uint64_t pass_ns = (uint64_t)(1.2e9 * (double)point[i].bytes *
						      (double)s->n_harts / rate);
			if (pass_ns > job.warm_ns)
				job.warm_ns =
					pass_ns < SWEEP_WARM_NS_MAX ? pass_ns : SWEEP_WARM_NS_MAX;
			crew_run(c, &job, &result);
			rate = result.rate;
			if (round == 0 && scope_past(s, SWEEP_SHARE_MAX))
				n = i + 1;
			if (rate > point[i].rate)
				point[i].rate = rate;
		}
		n_levels = sweep_levels(point, n, &hint, ret_level);
		progress(s, 0.1 * (round < SWEEP_TRIES ? round + 1 : SWEEP_TRIES) / SWEEP_TRIES);
	}
	return n_levels;
}

__attribute__((format(printf, 3, 4))) static void append(
	char *text, size_t size, const char *format, ...)
{
	size_t at = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + at, size - at, format, arguments);
	va_end(arguments);
}

static bool is_among(const struct level *level, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(level[i].name, name) == 0)
			return true;
	return false;
}

/* Levels that the machine states and the sweep did not find, as a text; "": none. */
static void list_missing(const struct sweep_hint *hint, const struct level *level, size_t n,
	char *ret_text, size_t size)
{
	*ret_text = '\0';
	for (size_t k = 0; sweep_is_stated(hint) && k <= hint->n_caches; k++) {
		char name[ROOF_WORD_BYTES] = "DRAM";
		if (k < hint->n_caches)
			snprintf(name, sizeof(name), "L%c", (int)('1' + k));
		if (is_among(level, n, name))
			continue;
		append(ret_text, size, "%s%s", *ret_text ? ", " : "", name);
		if (k < hint->n_caches)
			append(ret_text, size, " (%" PRIu64 " KiB)", hint->cache[k] >> 10);
	}
}

static int note_levels(
	const struct scope *s, const struct level *level, size_t n, struct roofs *roofs)
{
	const struct sweep_hint hint = hint_of(s);
	const bool stated = sweep_is_stated(&hint);
	char text[160] = "", missing[80];
	for (size_t i = 0; i < n; i++) {
		append(text, sizeof(text), "%s%s", i > 0 ? ", " : "", level[i].name);
		if (level[i].knee)
			append(text, sizeof(text),
				stated ? " of %" PRIu64 " KiB" : " up to %" PRIu64 " KiB",
				level[i].knee >> 10);
	}
	list_missing(&hint, level, n, missing, sizeof(missing));
	if (n == 0)
		return add_note(roofs,
			"%zu of %.50s: rates change with every size, so no level of memory was "
			"found",
			s->n_harts, s->kind);
	if (*missing)
		return add_note(roofs,
			"%zu of %.50s, of each hart: %s; not found: %s (not reached, or without a "
			"steady rate)",
			s->n_harts, s->kind, text, missing);
	return add_note(roofs, "%zu of %.50s, of each hart: %s%s", s->n_harts, s->kind, text,
		stated                   ? ", by the sizes of caches"
		: level[n - 1].knee == 0 ? ""
					 : "; memory was not reached, or has no steady rate");
}

/* --- the rounds ------------------------------------------------------------------------------- */

static void warm_up(const struct scope *s, struct crew *c)
{
	for (size_t i = 0; i < n_kernels; i++) {
		const struct kernel *k = &kernels[i];
		if (s->probe[i].verdict != PROBE_RIGHT || k->limit != ROOF_COMPUTE ||
			strcmp(k->precision, "f32") != 0 || strcmp(k->operation, "mul+add") != 0 ||
			k->lmul > 1)
			continue;
		struct job job = {.kernel = k, .run_ns = s->quick ? WARM_UP_QUICK_NS : WARM_UP_NS};
		struct job_result result;
		crew_run(c, &job, &result);
	}
}

/* Run one repeat of each roof that needs more. False: the time is over, or none does. */
static bool run_round(const struct scope *s, struct crew *c, struct plan *p, size_t wanted)
{
	bool any = false;
	for (size_t i = 0; i < p->n; i++) {
		struct planned *r = &p->roof[i];
		struct job job = {r->kernel, r->bytes, r->run_ns, r->warm_ns};
		struct job_result result;
		if (r->n >= wanted || r->n_bad == REPEATS_MOST)
			continue;
		if (clock_ns(CLOCK_MONOTONIC) >= s->until_ns)
			return false;
		any = true;
		crew_run(c, &job, &result);
		if (result.disturbed) {
			r->bad[r->n_bad++] = result.rate;
			continue;
		}
		r->rate[r->n] = result.rate;
		r->hz[r->n++] = result.hz;
	}
	return any;
}

static void run_rounds(const struct scope *s, struct crew *c, struct plan *p)
{
	const size_t wanted = s->quick ? REPEATS_WANTED : REPEATS_MOST;
	for (size_t round = 1; run_round(s, c, p, wanted); round++)
		if (round <= wanted)
			progress(s, 0.2 + 0.8 * (double)round / (double)wanted);
}

/* --- what came out ---------------------------------------------------------------------------- */

/* Sum up the undisturbed repeats. If there are too few, take all: the interval covers all of them, and the value
 * is their upper quartile, since others only slow us down. */
static void sum_up(const struct planned *r, struct roof *roof)
{
	double all[STATISTICS_REPEATS_MAX], first, last;
	size_t n = r->n;
	const bool few = n < REPEATS_LEAST;
	memcpy(all, r->rate, n * sizeof(*all));
	for (size_t i = 0; few && i < r->n_bad; i++)
		all[n++] = r->bad[i];

	struct middle middle = statistics_middle(all, n, few);
	roof->value = middle.value;
	roof->low = middle.low;
	roof->high = middle.high;
	roof->repeats = (uint32_t)n;
	roof->hz = r->n > 0 ? statistics_middle(r->hz, r->n, true).value : 0;
	if (few && r->n_bad > 0)
		roof->value = statistics_upper(all, n);
	if (few && r->n_bad == 0)
		snprintf(roof->note, sizeof(roof->note), "there was time for %zu repeats only", n);
	else if (few)
		snprintf(roof->note, sizeof(roof->note),
			"disturbed: %zu of %zu repeats lost a hart to others", r->n_bad, n);
	else if (statistics_throttled(r->rate, r->n, &first, &last))
		snprintf(roof->note, sizeof(roof->note),
			"throttled: the last third reached %.1f %% of the first",
			100 * last / first);
	else if (r->n_bad > 0)
		snprintf(roof->note, sizeof(roof->note),
			"%zu of %zu repeats lost a hart to others, and are left out", r->n_bad,
			r->n + r->n_bad);
}

static int report(const struct scope *s, const struct plan *p, struct roofs *roofs)
{
	struct roof *grown = realloc(roofs->roof, (roofs->n + p->n) * sizeof(*grown));
	if (!grown && roofs->n + p->n > 0)
		return -ENOMEM;
	roofs->roof = grown;
	for (size_t i = 0; i < p->n && roofs->n < ROOFS_MAX; i++) {
		const struct planned *r = &p->roof[i];
		const struct kernel *k = r->kernel;
		s->tally->n_repeats += r->n + r->n_bad;
		s->tally->n_disturbed += r->n_bad;
		if (r->n + r->n_bad == 0)
			continue;
		struct roof *roof = &roofs->roof[roofs->n++];
		*roof = (struct roof){
			.limit = k->limit,
			.scope = s->scope,
			.n_harts = (uint32_t)s->n_harts,
			.bytes = r->bytes,
			.lmul = k->lmul,
		};
		snprintf(roof->kind, sizeof(roof->kind), "%s", s->kind);
		snprintf(roof->unit, sizeof(roof->unit), "%s", k->unit);
		snprintf(roof->precision, sizeof(roof->precision), "%s", k->precision);
		snprintf(roof->level, sizeof(roof->level), "%s", r->level ? r->level : "");
		snprintf(k->limit == ROOF_COMPUTE ? roof->operation : roof->pattern,
			ROOF_WORD_BYTES, "%s", k->operation);
		sum_up(r, roof);
	}
	return 0;
}

int scope_measure(const struct scope *s, struct roofs *roofs)
{
	struct level level[SWEEP_LEVELS_MAX];
	struct crew *c = NULL;
	uint64_t bytes = last_bytes(s);
	_cleanup_(freep) struct plan *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	progress(s, 0);
	int r = crew_new(s->number, s->n_harts, bytes, true, &c);
	if (r < 0)
		return r;

	warm_up(s, c);
	size_t n_levels = sweep(s, c, bytes, level);
	plan_compute(p, c, s);
	for (size_t i = 0; i < n_levels; i++)
		plan_memory(p, c, s, &level[i]);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	plan_cut(p, s->until_ns > now_ns ? s->until_ns - now_ns : 0);
	progress(s, 0.2);
	run_rounds(s, c, p);

	r = report(s, p, roofs);
	if (r == 0)
		r = note_levels(s, level, n_levels, roofs);
	if (r == 0 && crew_huge(c) < 0.9)
		r = add_note(roofs, "%zu of %.50s: %.0f %% of the memory was in huge pages",
			s->n_harts, s->kind, 100 * crew_huge(c));
	if (r == 0 && p->n_left_out > 0)
		r = add_note(roofs, "%zu of %.50s: %zu roofs were left out, since time ran out",
			s->n_harts, s->kind, p->n_left_out);
	crew_free(c);
	return r;
}
