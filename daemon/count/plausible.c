/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/count/plausible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/mperf.pb-c.h"
#include "proto/syntax/unit.h"

/* A rule stays only where no true count can break it: limits are far above what exists.
 *
 * Two kinds of rule look safe and are not:
 * - L1-dcache-load-misses against L1-dcache-loads: Intel counts the former as L1D.REPLACEMENT, which
 *   includes stores and prefetches. Source: Linux 6.1, arch/x86/events/intel/core.c,
 *   skl_hw_cache_event_ids.
 * - Accesses or misses against instructions: one instruction may access megabytes, as rep movsb and
 *   rep stosb do; the kernel clears pages so.
 */
#define CLOCK_PER_NS 10.0        /* cycles: no processor is sold that runs at 10 GHz */
#define WIDTH 16.0               /* instructions per cycle: today's widest cores retire ten or so */
#define SCALED_SLACK 2.0         /* scaled counts are estimates */
#define UNSCALED_SLACK 1.001     /* counters of a group are read one after the other */
#define LARGE (INT64_C(1) << 46) /* a difference of a 48-bit counter that went wrong */
/* Events per ns, over the whole time, above which such a difference is not just a long run. */
#define LARGE_PER_NS 40.0

/* An event is at most `times` another one. */
static const struct rule {
	const char *event, *other;
	double times;
} rules[] = {
	{"instructions", "cycles", WIDTH},
	{"cache-misses", "cache-references", 1},
	{"branch-misses", "branches", 1},
	{"branches", "instructions", 1},
	{"LLC-load-misses", "LLC-loads", 1},
	{"dTLB-load-misses", "dTLB-loads", 1},
	{"stalled-cycles-frontend", "cycles", 1},
	{"stalled-cycles-backend", "cycles", 1},
};

/* Names of the same event. */
static const struct alias {
	const char *name, *event;
} aliases[] = {
	{"cpu-cycles", "cycles"},
	{"branch-instructions", "branches"},
};

static size_t name_bytes(const char *event)
{
	return strcspn(event, ":");
}

static bool is_named(const char *event, const char *name)
{
	return strlen(name) == name_bytes(event) && strncmp(event, name, name_bytes(event)) == 0;
}

static bool is_event(const char *event, const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (strcmp(aliases[i].event, name) == 0 && is_named(event, aliases[i].name))
			return true;
	return is_named(event, name);
}

static bool has_equal_modifiers(const char *a, const char *b)
{
	return strcmp(a + name_bytes(a), b + name_bytes(b)) == 0;
}

static bool is_too_much(
	const struct plausible_count *part, const struct plausible_count *whole, double times)
{
	bool is_scaled = part->is_scaled || whole->is_scaled;
	if (part->count < 0 || whole->count < 0)
		return false;
	return part->count > whole->count * times * (is_scaled ? SCALED_SLACK : UNSCALED_SLACK);
}

static const char *count_text(double count, char text[static UNIT_TEXT_BYTES])
{
	unit_text(MPERF__UNIT__UNIT_COUNT, count, text);
	return text;
}

/* The rule that these two break, whichever of them is which. */
static bool doubt_pair(const struct plausible_count *part, const struct plausible_count *whole,
	char ret_text[static PLAUSIBLE_TEXT_BYTES])
{
	char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
	if (!has_equal_modifiers(part->event, whole->event))
		return false;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		const struct rule *rule = &rules[i];
		if (!is_event(part->event, rule->event) || !is_event(whole->event, rule->other) ||
			!is_too_much(part, whole, rule->times))
			continue;
		snprintf(ret_text, PLAUSIBLE_TEXT_BYTES, "not plausible: %s %s for %s %s",
			count_text(part->count, a), rule->event, count_text(whole->count, b),
			rule->other);
		return true;
	}
	return false;
}

static bool doubt_alone(const struct plausible_count *c, char ret_text[static PLAUSIBLE_TEXT_BYTES])
{
	char count[UNIT_TEXT_BYTES], time[UNIT_TEXT_BYTES];
	double per_ns = is_event(c->event, "cycles") ? CLOCK_PER_NS : LARGE_PER_NS;
	bool is_large = c->count >= (double)LARGE || is_event(c->event, "cycles");
	if (c->count < 0 || !is_large || c->ns <= 0 || c->count <= c->ns * per_ns)
		return false;
	unit_text(MPERF__UNIT__UNIT_NS, c->ns, time);
	snprintf(ret_text, PLAUSIBLE_TEXT_BYTES, "not plausible: %s in %s",
		count_text(c->count, count), time);
	return true;
}

bool plausible_doubt(const struct plausible_count *counts, size_t n_counts, size_t which,
	char ret_text[static PLAUSIBLE_TEXT_BYTES])
{
	if (doubt_alone(&counts[which], ret_text))
		return true;
	for (size_t i = 0; i < n_counts; i++)
		if (i != which && (doubt_pair(&counts[which], &counts[i], ret_text) ||
					  doubt_pair(&counts[i], &counts[which], ret_text)))
			return true;
	return false;
}
