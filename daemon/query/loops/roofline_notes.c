/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Notes below a roofline. First the limits of its figures, each only if it applies and short enough
 * for a line of 100 columns; then, with --notes, the meaning of the columns.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/query/loops/roofline_private.h"

#define NOTE_BYTES 256
#define UNCOUNTED_NOTED 3    /* names in one line: 80 bytes each at most */
#define UNCOUNTED_SHARE 0.01 /* of the time */

static void note(struct roofline *r, const char *says)
{
	struct provenance *p = &r->facts.provenance;
	uint32_t text;
	if (p->n_notes < PROVENANCE_NOTES_MAX && text_get(&r->facts.texts, says, &text) == 0)
		p->note[p->n_notes++] = text;
}

static void explain_dram(struct roofline *r)
{
	char says[512];
	if (r->has_dram && r->dram.misses >= 0)
		note(r, "DRAM counts each of the LLC-load-misses as a line of 64 bytes, without "
			"stores, write-backs and prefetches.");
	if (!r->has_dram || r->dram.misses >= 0)
		return;
	snprintf(says, sizeof(says), "DRAM bytes are %.180s on this core: %.240s.",
		r->dram.metric->text, r->dram.metric->says);
	note(r, says);
}

/* --- limits ----------------------------------------------------------------------------------- */

struct found {
	bool calls, assembly, modelled, measured, untimed;
};

static struct found find(const struct roofline *r)
{
	struct found found = {.calls = roofline_has_callees(r)};
	for (uint32_t i = 0; i < r->rows.n; i++) {
		uint32_t group = r->rows.row[i].group;
		found.calls |= r->groups.total[group].value[LOOP_EXTERNAL_CALLS] > 0;
		found.measured |= r->times.total[group].clock == ROOF_MEASURED;
		found.untimed |= r->q.by == ROOFLINE_LOOP && !r->rows.any_sampled &&
				 r->times.total[group].clock == ROOF_NO_CLOCK;
		found.modelled |= r->groups.total[group].modelled_bytes > 0;
		found.assembly |= r->q.by != ROOFLINE_THREAD &&
				  r->facts.sites.site[group].flags & MPERF_SCOPE_ASSEMBLY;
	}
	return found;
}

/* Programs measure time by CLOCK_MONOTONIC: if threads waited, it exceeds the CPU time of
 * samples. */
static void note_waiting(struct roofline *r, bool measured)
{
	char text[NOTE_BYTES];
	double percent = 100 * roofline_cpu_share(r), waited_s = r->times.waited_ns / 1e9;
	if (percent >= 100 || (!measured && waited_s <= 0))
		return;
	if (waited_s > 0)
		snprintf(text, sizeof(text),
			"Threads had a CPU for %.0f %% of the time: sampled times leave out %.1f s "
			"of waiting%s.",
			percent, waited_s, measured ? ", measured ones do not" : "");
	else
		snprintf(text, sizeof(text),
			"Threads had a CPU for %.0f %% of the time: measured times are wall time "
			"and include time spent waiting.",
			percent);
	note(r, text);
}

/* A region belongs to one thread. */
static void note_workers(struct roofline *r)
{
	char text[NOTE_BYTES];
	uint32_t outside = 0, inside = 0;
	for (uint32_t i = 0; i < r->facts.whos.keys.n_keys; i++) {
		const struct fact_who *who = &r->facts.whos.who[i];
		inside += who->counted_inside;
		outside += who->counted_outside && !who->counted_inside;
	}
	if (inside == 0 || outside == 0)
		return;
	snprintf(text, sizeof(text),
		"A region counts only the thread that entered it: %u others, such as OpenMP "
		"workers, counted in no region.",
		outside);
	note(r, text);
}

/* Code that nobody counts, by samples: libraries, objects of another compiler, the kernel. */
struct uncounted {
	uint64_t name;
	double ns;
};

/* The longest ones, largest time first; absent ones have no time. */
static void find_uncounted(const struct roofline *r, struct uncounted ret[static UNCOUNTED_NOTED])
{
	const struct loop_facts *f = &r->facts;
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++) {
		const uint64_t *part = f->table.keys.key[i].part;
		struct uncounted u = {part[3], f->table.fact[i].sampled_ns};
		if (part[0] != 0 || part[1] != FACT_ANY_REGION || u.name == 0)
			continue;
		for (unsigned k = 0; k < UNCOUNTED_NOTED; k++) {
			struct uncounted other = ret[k];
			if (u.ns <= other.ns)
				continue;
			ret[k] = u;
			u = other;
		}
	}
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path ? path : "";
}

/* Name the longest of them, with their shares. False: none has a share that needs a note. */
static bool note_uncounted(struct roofline *r)
{
	struct uncounted found[UNCOUNTED_NOTED] = {{0, 0}};
	char text[NOTE_BYTES];
	size_t n = 0;
	find_uncounted(r, found);
	for (unsigned i = 0; i < UNCOUNTED_NOTED && r->times.whole_ns > 0; i++) {
		const struct text_table *texts = &r->facts.texts;
		double share = found[i].ns / r->times.whole_ns;
		if (share < UNCOUNTED_SHARE)
			break;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.40s (%.20s) %.0f %%",
			i == 0 ? "Not counted: " : ", ",
			text_of(texts, LOOP_UNCOUNTED_FUNCTION(found[i].name)),
			base_name(text_of(texts, LOOP_UNCOUNTED_MODULE(found[i].name))),
			100 * share);
	}
	if (n == 0)
		return false;
	snprintf(text + n, sizeof(text) - n, " of the time.");
	note(r, text);
	return true;
}

/* The service refuses messages that would block other users for too long. */
static void note_tables(struct roofline *r)
{
	char text[NOTE_BYTES];
	uint64_t n = provenance_lost(&r->facts.provenance, &r->facts.texts, LOSS_TABLE);
	if (n == 0)
		return;
	snprintf(text, sizeof(text),
		"Loops of %llu compilation unit%s are missing: their tables are too large. Compile "
		"smaller units.",
		(unsigned long long)n, n > 1 ? "s" : "");
	note(r, text);
}

/* The share of the regions' entries that was measured and represents all. */
static void note_measured(struct roofline *r)
{
	char text[NOTE_BYTES];
	double entries = 0, measured = 0;
	for (uint32_t i = 0; i < r->rows.n && r->rows.any_measured_in_part; i++) {
		const double *v = r->groups.total[r->rows.row[i].group].value;
		if (v[LOOP_REPRESENTED] <= 0)
			continue;
		entries += v[LOOP_ENTRIES];
		measured += v[LOOP_TIMED_ENTRIES];
	}
	if (measured <= 0 || measured >= entries)
		return;
	snprintf(text, sizeof(text),
		"%.2g %% of the entries of regions were measured: times and events are scaled, "
		"with the errors shown.",
		100 * measured / entries);
	note(r, text);
}

static void note_limits(struct roofline *r, const struct found *found)
{
	note_tables(r);
	if (r->rows.any_doubted)
		note(r, "Counts of the hardware that cannot be are left out: see the column "
			"unseen.");
	note_waiting(r, found->measured);
	if (found->untimed)
		note(r, "Some loops have no time: build with MPERF_PASS=all-nests=1, or with -g "
			"and let mperfd sample.");
	if (r->q.by == ROOFLINE_REGION)
		note_workers(r);
	if (r->facts.granted.left_out)
		note(r, "Different events were counted at different times; only four are shown.");
	if (r->facts.scaled.n_scarce > 0)
		note(r, "Some functions or loops were entered fewer times than 1 in N: see the "
			"column unseen.");
	if (r->facts.scaled.any)
		note(r, "Not all entries counted: counts are scaled; the column sampling_error "
			"says how well.");
	note_measured(r);
	if (found->assembly)
		note(r, "Some inline assembly has a time but no counts: see the column unseen.");
	bool named = r->q.by != ROOFLINE_THREAD && note_uncounted(r);
	if (found->calls && !named)
		note(r, "Some calls run code that is not counted: see the column unseen.");
	if (r->rows.any_shared)
		note(r, "Some times are a part of their nest's by counted instructions: see the "
			"column clock.");
}

/* --- meanings --------------------------------------------------------------------------------- */

static void explain_costs(struct roofline *r)
{
	char text[NOTE_BYTES];
	snprintf(text, sizeof(text),
		"'Counting' is estimated from %.2f ns per update and %.0f ns per clock read, "
		"measured on this machine just now. 'Error' is the standard error of the time.",
		r->costs.update_ns, r->costs.clock_ns);
	note(r, text);
}

static void explain(struct roofline *r, const struct found *found)
{
	note(r, "Time adds up over threads, so a rate is what one thread reached.");
	if (r->q.by == ROOFLINE_LOOP)
		note(r, "Columns that end in _self, which tables show, are without the loops "
			"inside; --inclusive shows those with them.");
	if (r->rows.any_sampled)
		note(r, "'Sampled' time is the CPU time of samples in those lines; 'measured' "
			"time was taken by the program for whole nests, without timed nests in "
			"other functions that these called.");
	if (r->rows.any_shared)
		note(r, "'Shared' time is what samples leave of the time of the surrounding nest, "
			"divided by counted instructions, as if calls took no time.");
	note(r, "Bandwidth is what loads and stores asked for, from any cache. 'Corrected' "
		"estimates it without the cost of counting (Examem, equations 1 to 5), from "
		"counted accesses, instructions and updates.");
	explain_costs(r);
	if (r->q.by == ROOFLINE_REGION && r->facts.granted.n > 0)
		note(r, "Events of regions count user code, in entries that began after the "
			"thread got its counters ('counted for').");
	if (r->q.by == ROOFLINE_REGION && r->facts.granted.n > 0)
		explain_dram(r);
	if (r->rows.any_measured_in_part)
		note(r, "Errors of regions are standard errors, from how much measured entries in "
			"a "
			"row differ. To measure all: MPERF_REGION_SAMPLE=1.");
	if (r->facts.scaled.any)
		note(r, "The column sampling_error is how far off scaled counts may be if entries "
			"differ by as much as their mean. To count more of them: MPERF_SAMPLE=1.");
	if (found->modelled)
		note(r, "'Modelled' bytes are loaded by no source line of the program: jump "
			"tables, constants, strlen.");
}

void roofline_note(struct roofline *r)
{
	const struct found found = find(r);
	if (r->rows.n == 0)
		return;
	note_limits(r, &found);
	if (r->q.explains)
		explain(r, &found);
}
