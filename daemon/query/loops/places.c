/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Find the code of a parallel region. It is a function of its own, which compilers outline, and which has the loops
 * and barriers that the region was seen in. So that function is the region's, and a sample is in the region if its
 * stack has that function, or the call by which the region begins: the thread that began it has that, the others do
 * not. Functions that are called from several regions say nothing, and are told from outlined ones by their names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts.h"

#define BODY_OF_SEVERAL UINT32_MAX
#define STACK_FRAMES_LOOKED_AT 128u
#define FUNCTION_BYTES 1024 /* longer names are not found */

/* Source: LLVM 14 to 19, clang/lib/CodeGen/CGOpenMPRuntime.cpp (omp_outlined, with a dot before it or
 * behind the function's name), and OMPIRBuilder.cpp, which flang uses ("..omp_par"). */
static bool is_outlined(const char *function)
{
	return function && (strstr(function, "omp_outlined") || strstr(function, "..omp_par"));
}

uint64_t loop_facts_place_key(struct fact_site_key *key, struct place_words *words)
{
	const char *at = strchr(key->nest, '@');
	uint64_t offset = at ? strtoull(at + 1, NULL, 16) : 0;
	words->symbol = "";
	if (!*key->subprogram)
		return offset;
	snprintf(words->nest, sizeof(words->nest), "%.*s",
		at ? (int)(at - key->nest) : (int)strlen(key->nest), key->nest);
	words->symbol = *key->inlined_at ? key->inlined_at : key->subprogram;
	key->nest = words->nest;
	key->inlined_at = "";
	return offset;
}

static int outcome(int r)
{
	return r == KEY_TABLE_FULL ? -EOVERFLOW : r;
}

/* A build id as part of a key. Where the kernel did not tell that of a sample's file, which is found
 * in /proc then, the file may be any: what is noted is noted for it too. */
#define ANY_FILE 0
static uint32_t file_key(const struct loop_facts *f, uint32_t build_id)
{
	const char *text = text_of(&f->texts, build_id);
	return text && *text ? build_id : ANY_FILE;
}

static int note_call(struct loop_facts *f, uint32_t build_id, uint32_t site, uint64_t offset)
{
	const struct key key = {{build_id, offset}};
	uint32_t i;
	int r = outcome(key_get(&f->calls, &key, &i));
	if (r == 0)
		r = array_grow(&f->call_region, &f->size_calls, i + 1, sizeof(*f->call_region));
	if (r == 0)
		f->call_region[i] = site;
	return r;
}

static int note_body(struct loop_facts *f, const char *function, uint32_t build_id, uint32_t region)
{
	uint32_t i, name;
	int r = outcome(text_get(&f->texts, function, &name));
	const struct key key = {{name, build_id}};
	uint32_t n = f->bodies.n_keys;
	if (r == 0)
		r = outcome(key_get(&f->bodies, &key, &i));
	if (r == 0)
		r = array_grow(&f->body_region, &f->size_bodies, i + 1, sizeof(*f->body_region));
	if (r == 0)
		f->body_region[i] =
			i == n || f->body_region[i] == region ? region : BODY_OF_SEVERAL;
	return r;
}

/* The function that an outlined one is part of: "solve" of "solve.omp_outlined.1" and, of C++,
 * "solve(int) [clone .omp_outlined]". Returns its length; 0: the name does not say, before LLVM 17. */
static size_t outlined_from(const char *function)
{
	static const char *const marks[] = {" [clone .omp_outlined", ".omp_outlined", "..omp_par"};
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		const char *mark = strstr(function, marks[i]);
		if (mark)
			return (size_t)(mark - function);
	}
	return 0;
}

/* If the call that begins a region is the last thing its function does, compilers make it a jump,
 * and it returns to that function's caller. Then only the body tells which region it is. */
static int note_body_of_region(struct loop_facts *f, uint32_t site, const char *symbol)
{
	struct fact_site *region = &f->site[f->site[site - 1].parent - 1];
	const struct fact_site *s = &f->site[site - 1];
	char name[FUNCTION_BYTES];
	if (s->line && (!region->body_line || s->line < region->body_line)) {
		region->body_source = s->source;
		region->body_line = s->line;
	}
	size_t n = outlined_from(symbol);
	if (region->body || n == 0 || n >= sizeof(name))
		return 0;
	memcpy(name, symbol, n);
	name[n] = '\0';
	uint32_t body, i, file = file_key(f, s->build_id), index = f->site[site - 1].parent;
	int r = outcome(text_get(&f->texts, name, &body));
	if (r == 0)
		r = outcome(key_get(&f->owners, &(struct key){{body, file}}, &i));
	if (r == 0)
		r = array_grow(&f->owner_region, &f->size_owners, i + 1, sizeof(*f->owner_region));
	if (r != 0)
		return r;
	region->body = body;
	region->next_of_body = f->owner_region[i];
	f->owner_region[i] = index;
	return 0;
}

/* mperf-cc counts an outlined loop for the function that it stands in; of several regions there, it is
 * in the last that begins before it. */
uint32_t loop_facts_region_of_loop(const struct loop_facts *f, uint32_t site)
{
	const struct fact_site *loop = &f->site[site - 1];
	uint32_t file = file_key(f, loop->build_id), found = 0, found_line = 0;
	uint32_t region = loop_facts_body(f, loop->readable, loop->build_id);
	uint32_t i = key_find(&f->owners, &(struct key){{loop->readable, file}});
	if (region || i == KEY_NONE)
		return region;
	for (region = f->owner_region[i]; region; region = f->site[region - 1].next_of_body) {
		const struct fact_site *r = &f->site[region - 1];
		uint32_t line = r->readable == r->body ? r->line : r->body_line;
		if (line <= loop->line && (!found || line > found_line)) {
			found = region;
			found_line = line;
		}
	}
	return found;
}

int loop_facts_note_place(struct loop_facts *f, uint32_t site, uint64_t offset, const char *symbol)
{
	const struct fact_site *s = &f->site[site - 1];
	uint32_t region = s->parent, subprogram = s->subprogram;
	const uint32_t file[] = {file_key(f, s->build_id), ANY_FILE};
	int r = 0;
	if (s->kind == LOOP_SITE_PARALLEL) {
		for (int i = 0; i < 2 && offset && r == 0; i++)
			r = note_call(f, file[i], site, offset - 1); /* frames are inside calls */
		return r;
	}
	if (region && is_outlined(symbol))
		r = note_body_of_region(f, site, symbol);
	for (int i = 0; i < 2 && region && is_outlined(symbol) && r == 0; i++)
		r = note_body(f, symbol, file[i], region);
	/* adding texts moves them */
	char function[FUNCTION_BYTES];
	snprintf(function, sizeof(function), "%s", text_of(&f->texts, subprogram));
	for (int i = 0; i < 2 && region && is_outlined(function) && r == 0; i++)
		r = note_body(f, function, file[i], region);
	return r;
}

uint32_t loop_facts_body(const struct loop_facts *f, uint32_t function, uint32_t build_id)
{
	uint32_t i = key_find(&f->bodies, &(struct key){{function, file_key(f, build_id)}});
	return i == KEY_NONE || f->body_region[i] == BODY_OF_SEVERAL ? 0 : f->body_region[i];
}

/* --- samples ---------------------------------------------------------------------------------- */

static uint32_t region_of_frame(const struct loop_facts *f, const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	uint32_t build_id = l->file[frame->file].build_id;
	uint32_t i = key_find(&f->calls, &(struct key){{file_key(f, build_id), frame->offset}});
	if (i != KEY_NONE)
		return f->call_region[i];
	for (uint32_t place = 0; place < frame->n_places; place++) {
		uint32_t region =
			loop_facts_body(f, l->place[frame->place + place].function, build_id);
		if (region)
			return region;
	}
	return 0;
}

/* The innermost region of a stack. */
static uint32_t region_of_stack(const struct loop_facts *f, uint32_t stack)
{
	const struct loaded *l = &f->loaded;
	for (unsigned n = 0; stack && stack <= l->n_stacks && n < STACK_FRAMES_LOOKED_AT; n++) {
		uint32_t region = region_of_frame(f, &l->frame[l->stack[stack].frame]);
		if (region)
			return region;
		stack = l->stack[stack].parent;
	}
	return 0;
}

static int take(void *userdata, const struct scan_row *row)
{
	struct loop_facts *f = userdata;
	const struct loaded *l = &f->loaded;
	uint32_t who;
	struct fact *fact;
	if (!f->counts[l->task[row->task].process])
		return 0;
	provenance_row(&f->provenance, l, row);
	f->sampled_ns += (double)row->weight_ns;
	f->samples_taken += row->count;
	const struct loaded_frame *leaf = loaded_leaf(l, row->stack);
	uint32_t function = leaf->n_places > 0 ? l->place[leaf->place + leaf->n_places - 1].function
					       : l->unknown_name;
	uint64_t name = f->n_uncounted < LOOP_UNCOUNTED_MAX
				? (uint64_t)function << 32 | loaded_module(l, leaf)
				: 0;
	int r = loop_facts_task(f, row->task, &who);
	const struct key key = FACT_KEY(region_of_stack(f, row->stack), FACT_ANY_REGION, who, name);
	uint32_t n = f->keys.n_keys;
	if (r == 0)
		r = loop_facts_get(f, &key, &fact);
	if (r != 0)
		return r;
	f->n_uncounted += f->keys.n_keys > n;
	fact->sampled_ns += (double)row->weight_ns;
	fact->samples += row->count;
	return 0;
}

int loop_facts_add_place_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes)
{
	return scan_samples(&f->loaded, filter, notes, take, f);
}
