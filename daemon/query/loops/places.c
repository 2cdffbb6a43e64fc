/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Find the code of a parallel region. Compilers outline it into a separate function, which contains the loops and
 * barriers that were reported inside the region. A sample is in the region if its stack contains that function, or
 * the call that begins the region, which only the stack of the starting thread contains. Functions that are called
 * from several regions identify none; their names distinguish them from outlined functions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts_private.h"

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

/* A build id as part of a key. If the build id of a sample's file is not known (a mapping found in
 * /proc), the sample may be in any file. So all places are noted for the unknown build id too. */
#define ANY_FILE 0
static uint32_t file_key(const struct loop_facts *f, uint32_t build_id)
{
	const char *text = text_of(&f->texts, build_id);
	return text && *text ? build_id : ANY_FILE;
}

/* The region that a key means; *ret_new: it is new. Valid until the next. 0, -errno. */
static int region_at(
	struct region_index *index, const struct key *key, uint32_t **ret_region, bool *ret_new)
{
	const uint32_t n = index->keys.n_keys;
	uint32_t i;
	int r = facts_outcome(key_get(&index->keys, key, &i));
	if (r == 0)
		r = array_grow(&index->region, &index->size, i + 1, sizeof(*index->region));
	if (r != 0)
		return r;
	*ret_region = &index->region[i];
	*ret_new = i == n;
	return 0;
}

/* The region that a key of these parts means; 0: none. */
static uint32_t region_find(const struct region_index *index, uint64_t first, uint64_t second)
{
	const uint32_t i = key_find(&index->keys, &(struct key){{first, second}});
	return i == KEY_NONE ? 0 : index->region[i];
}

static int note_call(struct loop_facts *f, uint32_t build_id, uint32_t site, uint64_t offset)
{
	uint32_t *region;
	bool is_new;
	int r = region_at(&f->regions.calls, &(struct key){{build_id, offset}}, &region, &is_new);
	if (r == 0)
		*region = site;
	return r;
}

static int note_body(struct loop_facts *f, const char *function, uint32_t build_id, uint32_t region)
{
	uint32_t name, *known;
	bool is_new;
	int r = facts_text(f, function, &name);
	if (r == 0)
		r = region_at(&f->regions.bodies, &(struct key){{name, build_id}}, &known, &is_new);
	if (r == 0)
		*known = is_new || *known == region ? region : BODY_OF_SEVERAL;
	return r;
}

/* The function from which another was outlined: "solve" for "solve.omp_outlined.1" and, in C++, for
 * "solve(int) [clone .omp_outlined]". Returns its length; 0: not in the name (before LLVM 17). */
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
 * and it returns to that function's caller. Then only the body identifies the region. */
static int note_body_of_region(struct loop_facts *f, uint32_t site, const char *symbol)
{
	const struct fact_site *s = &f->sites.site[site - 1];
	const uint32_t region = s->parent;
	struct facts_regions *all = &f->regions;
	char name[FUNCTION_BYTES];
	int r = array_grow(&all->body, &all->size, region, sizeof(*all->body));
	if (r < 0)
		return r;
	struct region_body *body = &all->body[region - 1];
	if (s->line && (!body->line || s->line < body->line)) {
		body->source = s->source;
		body->line = s->line;
	}
	size_t n = outlined_from(symbol);
	if (body->function || n == 0 || n >= sizeof(name))
		return 0;
	memcpy(name, symbol, n);
	name[n] = '\0';
	uint32_t function, *last;
	bool is_new;
	r = facts_text(f, name, &function);
	if (r == 0)
		r = region_at(&all->owners, &(struct key){{function, file_key(f, s->build_id)}},
			&last, &is_new);
	if (r != 0)
		return r;
	body->function = function;
	body->next = *last;
	*last = region;
	return 0;
}

struct region_body loop_facts_body_of(const struct loop_facts *f, uint32_t region)
{
	const bool is_known = region > 0 && region <= f->regions.size;
	return is_known ? f->regions.body[region - 1] : (struct region_body){0};
}

/* The only region to which the code of a function belongs; 0: none, or several. */
static uint32_t region_of_body(const struct loop_facts *f, uint32_t function, uint32_t build_id)
{
	const uint32_t region = region_find(&f->regions.bodies, function, file_key(f, build_id));
	return region == BODY_OF_SEVERAL ? 0 : region;
}

/* mperf-cc counts an outlined loop for the function in whose source it is. Of several regions there,
 * the loop is in the last that begins before it. */
uint32_t loop_facts_region_of_loop(const struct loop_facts *f, uint32_t site)
{
	const struct fact_site *loop = &f->sites.site[site - 1];
	uint32_t found = 0, found_line = 0;
	uint32_t region = region_of_body(f, loop->readable, loop->build_id);
	if (region)
		return region;
	region = region_find(&f->regions.owners, loop->readable, file_key(f, loop->build_id));
	while (region) {
		const struct fact_site *r = &f->sites.site[region - 1];
		const struct region_body body = loop_facts_body_of(f, region);
		uint32_t line = r->readable == body.function ? r->line : body.line;
		if (line <= loop->line && (!found || line > found_line)) {
			found = region;
			found_line = line;
		}
		region = body.next;
	}
	return found;
}

int loop_facts_note_place(struct loop_facts *f, uint32_t site, uint64_t offset, const char *symbol)
{
	const struct fact_site *s = &f->sites.site[site - 1];
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

/* --- samples ---------------------------------------------------------------------------------- */

static uint32_t region_of_frame(const struct loop_facts *f, const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	uint32_t build_id = l->file[frame->file].build_id;
	uint32_t region = region_find(&f->regions.calls, file_key(f, build_id), frame->offset);
	for (uint32_t place = 0; !region && place < frame->n_places; place++)
		region = region_of_body(f, l->place[frame->place + place].function, build_id);
	return region;
}

uint32_t loop_facts_region_of_stack(const struct loop_facts *f, uint32_t stack)
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

static void region_index_clear(struct region_index *index)
{
	key_table_clear(&index->keys);
	free(index->region);
}

void facts_regions_clear(struct facts_regions *r)
{
	region_index_clear(&r->calls);
	region_index_clear(&r->bodies);
	region_index_clear(&r->owners);
	free(r->body);
}
