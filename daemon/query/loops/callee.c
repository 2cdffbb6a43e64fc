/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Find the callee that a sample was in, and the loop that called it. The stack is followed from the leaf outwards to
 * the first counted frame: the frame below it is the callee. Frames can be missing: a C library without frame
 * pointers loses the caller of its leaf, and then the counted frame found is further out than the real one. So the
 * line of the call must be one where the loop calls that callee, and the name must fit, if the library has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts_private.h"

static const char *text_or_empty(const struct loop_facts *f, uint32_t text)
{
	const char *t = text_of(&f->texts, text);
	return t ? t : "";
}

/* The C library has one implementation for several functions, named after one of them. */
static const char *family(const char *name)
{
	static const char *const of[][2] = {{"memcpy", "memmove"}, {"mempcpy", "memmove"},
		{"bcopy", "memmove"}, {"bzero", "memset"}};
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (strcmp(name, of[i][0]) == 0)
			return of[i][1];
	return name;
}

/* Does `function` implement the function `name`, or one of its family? __memmove_avx_unaligned_erms
 * implements memmove, sin@plt sin. */
static bool is_called(const char *function, const char *name)
{
	static const char *const families[] = {
		"memcpy", "memmove", "mempcpy", "bcopy", "memset", "bzero"};
	if (strcmp(function, name) == 0)
		return true;
	while (*function == '_')
		function++;
	while (*name == '_')
		name++;
	const char *members[1 + sizeof(families) / sizeof(*families)] = {name};
	size_t n_members = 1;
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (strcmp(family(families[i]), family(name)) == 0)
			members[n_members++] = families[i];
	for (size_t i = 0; i < n_members; i++) {
		size_t n = strlen(members[i]);
		if (n > 0 && strncmp(function, members[i], n) == 0 &&
			(function[n] == '\0' || function[n] == '_' || function[n] == '@'))
			return true;
	}
	return false;
}

bool loop_facts_moves(const struct loop_facts *f, uint32_t site)
{
	const char *name = family(text_or_empty(f, f->sites.site[site - 1].subprogram));
	return strcmp(name, "memmove") == 0 || strcmp(name, "memset") == 0;
}

/* Does the frame call the site on one of the site's lines? */
static bool is_call_line(const struct loop_facts *f, const struct fact_site *callee,
	const struct loaded_frame *frame)
{
	if (callee->line == 0)
		return false;
	for (uint32_t i = frame->place; i < frame->place + frame->n_places; i++) {
		const struct loaded_place *p = &f->loaded.place[i];
		if (p->line >= callee->line && p->line <= callee->line_last &&
			loop_facts_same_file(
				text_or_empty(f, p->source), text_or_empty(f, callee->source)))
			return true;
	}
	return false;
}

/* The function that the caller entered; NULL: the library has no name for it. */
static const char *entered(const struct loop_facts *f, const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	if (frame->state != FRAME_NAMED || frame->n_places == 0)
		return NULL;
	uint32_t function = l->place[frame->place + frame->n_places - 1].function;
	return function == l->unknown_name ? NULL : text_of(&f->texts, function);
}

/* The only callee of a site that matches; 0: none, or several match. */
static uint32_t match(const struct loop_facts *f, uint32_t site, const struct loaded_frame *caller,
	const struct loaded_frame *called)
{
	const char *name = entered(f, called);
	uint32_t found = 0;
	for (uint32_t i = f->sites.site[site - 1].first_callee; i != 0;
		i = f->sites.site[i - 1].next_callee) {
		const struct fact_site *callee = &f->sites.site[i - 1];
		if (!callee->here || !is_call_line(f, callee, caller) ||
			(name && !is_called(name, text_or_empty(f, callee->readable)) &&
				!is_called(name, text_or_empty(f, callee->subprogram))))
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

uint32_t loop_facts_callee(struct loop_facts *f, uint32_t stack)
{
	const struct loaded *l = &f->loaded;
	uint32_t at = stack, result = 0;
	/* a stack's caller has a lower number, and results are cached: all is linear */
	while (at != 0 && f->stack_callee[at] == FACT_UNSEEN) {
		uint32_t caller = l->stack[at].parent;
		uint32_t site = caller ? loop_facts_frame(f, l->stack[caller].frame) : 0;
		if (site != 0) {
			result = match(f, site, &l->frame[l->stack[caller].frame],
				&l->frame[l->stack[at].frame]);
			break;
		}
		at = caller;
	}
	if (at != 0 && f->stack_callee[at] != FACT_UNSEEN)
		result = f->stack_callee[at];
	for (uint32_t i = stack; i != 0 && f->stack_callee[i] == FACT_UNSEEN;
		i = l->stack[i].parent) {
		f->stack_callee[i] = result;
		if (i == at)
			break;
	}
	return result;
}

int loop_callees_begin(struct loop_facts *f)
{
	const size_t n = (size_t)f->loaded.n_stacks + 1;
	f->stack_callee = malloc(n * sizeof(*f->stack_callee));
	if (!f->stack_callee)
		return -ENOMEM;
	memset(f->stack_callee, 0xff, n * sizeof(*f->stack_callee)); /* FACT_UNSEEN */
	return 0;
}

void loop_callees_end(struct loop_facts *f)
{
	free(f->stack_callee);
	f->stack_callee = NULL;
}
