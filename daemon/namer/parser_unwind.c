/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Unwinding in the parser. It makes tables of files, which go to the daemon. Stacks that tables cannot unwind are
 * unwound here by elfutils, in spaces: the mappings of processes, with the call frame information of their files. A
 * stack names its space by generation. The parser asks for a space that it does not have: that costs one round trip, so
 * it can drop any of them at any time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/parser_private.h"
#include "daemon/namer/table_file.h"
#include "proto/base/memory.h"

static struct parsed_space *find_space(struct parser *p, uint64_t generation)
{
	for (uint32_t i = 0; i < p->n_spaces; i++)
		if (p->space[i].generation == generation) {
			p->space[i].used = ++p->clock;
			return &p->space[i];
		}
	return NULL;
}

static struct parsed_space *room_for_space(struct parser *p)
{
	if (p->n_spaces < PARSER_SPACES_MAX)
		return &p->space[p->n_spaces++];

	struct parsed_space *oldest = &p->space[0];
	for (uint32_t i = 1; i < p->n_spaces; i++)
		if (p->space[i].used < oldest->used)
			oldest = &p->space[i];
	parser_space_clear(oldest);
	return oldest;
}

static int compare_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The files that an unwinder reads from; forgetting one of them drops the unwinder. */
static int list_files(const struct parsed_maps *m, uint32_t **ret_file, uint32_t *ret_n)
{
	uint32_t n = 0;
	uint32_t *file = calloc(m->n_maps ? m->n_maps : 1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_maps; i++)
		if (m->map[i].fd >= 0)
			file[n++] = m->map[i].file;
	qsort(file, n, sizeof(*file), compare_id);
	uint32_t n_distinct = 0;
	for (uint32_t i = 0; i < n; i++)
		if (n_distinct == 0 || file[n_distinct - 1] != file[i])
			file[n_distinct++] = file[i];
	*ret_file = file;
	*ret_n = n_distinct;
	return 0;
}

static int make_space(struct parser *p, uint16_t machine)
{
	const struct parsed_maps *m = &p->arriving;
	_cleanup_(freep) uint32_t *file = NULL;
	struct unwinder *unwinder = NULL;
	uint32_t n_files = 0;
	int r = list_files(m, &file, &n_files);

	if (r == 0)
		r = unwinder_new(m->map, m->n_maps, machine, &unwinder);
	if (r == -ENOMEM && parser_make_room(p, NULL))
		r = unwinder_new(m->map, m->n_maps, machine, &unwinder);
	if (r != 0)
		return r < 0 ? r : -EINVAL;
	*room_for_space(p) = (struct parsed_space){
		.generation = m->generation,
		.file = TAKE_PTR(file),
		.n_files = n_files,
		.unwinder = unwinder,
		.used = ++p->clock,
	};
	return 0;
}

static int begin_maps(struct parser *p, const struct message_space *m)
{
	parser_drop_arriving(p);
	p->arriving.map = calloc(m->n_total ? m->n_total : 1, sizeof(*p->arriving.map));
	if (!p->arriving.map)
		return -ENOMEM;
	p->arriving.generation = m->generation;
	p->arriving.n_total = m->n_total;
	return 0;
}

static void take_maps(struct parser *p, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct message_map m;
		memcpy(&m, bytes + i * sizeof(m), sizeof(m));
		struct parsed_file *f = m.file ? parser_file(p, m.file) : NULL;
		p->arriving.map[p->arriving.n_maps++] = (struct unwind_map){
			.start = m.start,
			.end = m.end,
			.file_offset = m.file_offset,
			.file = f ? m.file : 0,
			.fd = f ? f->fd[PART_MAIN] : -1,
			.path = "",
		};
	}
}

int parser_take_space(struct parser *p, const void *bytes, size_t n)
{
	struct message_space m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.n > MESSAGE_MAPS_MAX || m.n_total > MESSAGE_SPACE_MAPS_MAX ||
		m.machine > UINT16_MAX || n != sizeof(m) + m.n * sizeof(struct message_map))
		return -EBADMSG;
	if (find_space(p, m.generation))
		return parser_done(p, &m.head, 0);
	if (m.first == 0) {
		int r = begin_maps(p, &m);
		if (r < 0)
			return parser_done(p, &m.head, r);
	}
	if (!p->arriving.map || p->arriving.generation != m.generation ||
		p->arriving.n_total != m.n_total || p->arriving.n_maps != m.first ||
		m.n > m.n_total - m.first)
		return -EBADMSG;

	take_maps(p, (const uint8_t *)bytes + sizeof(m), m.n);
	if (p->arriving.n_maps < p->arriving.n_total)
		return parser_done(p, &m.head, 0);
	int r = make_space(p, (uint16_t)m.machine);
	parser_drop_arriving(p);
	return parser_done(p, &m.head, r);
}

static int answer_unwound(struct parser *p, const struct message *question, uint32_t outcome)
{
	struct message_unwound m = {.outcome = outcome};
	uint8_t *at = p->out + sizeof(m);

	if (outcome == UNWINDING_DONE) {
		m.truncated = p->unwound.truncated;
		m.n = (uint32_t)p->unwound.n_frames;
	}
	for (uint32_t i = 0; i < m.n; i++, at += sizeof(struct message_frame)) {
		struct message_frame f = {.file = (uint32_t)p->unwound.frame[i].file,
			.offset = p->unwound.frame[i].offset};
		memcpy(at, &f, sizeof(f));
	}
	memcpy(p->out, &m, sizeof(m));
	return parser_answer(p, question, p->out, MESSAGE_UNWOUND, (size_t)(at - p->out));
}

int parser_take_unwind(struct parser *p, const void *bytes, size_t n)
{
	struct message_unwind m;
	uint64_t regs[MESSAGE_REGS_MAX];

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.n_regs != (uint32_t)__builtin_popcountll(m.regs_mask) ||
		m.n_stack > MESSAGE_STACK_BYTES_MAX ||
		n != sizeof(m) + m.n_regs * sizeof(*regs) + m.n_stack)
		return -EBADMSG;

	const uint8_t *at = (const uint8_t *)bytes + sizeof(m);
	memcpy(regs, at, m.n_regs * sizeof(*regs));
	at += m.n_regs * sizeof(*regs);
	struct parsed_space *s = find_space(p, m.generation);
	if (!s)
		return answer_unwound(p, &m.head, UNWINDING_NO_SPACE);
	parser_trap_stack(at, m.n_stack);
	p->unwound.n_frames = 0;
	const struct unwind_sample sample = {
		.regs = regs, .regs_mask = m.regs_mask, .stack = at, .n_stack = m.n_stack};
	int r = unwinder_unwind(s->unwinder, &sample, &p->unwound);
	return answer_unwound(p, &m.head, r == 0 ? UNWINDING_DONE : UNWINDING_FAILED);
}

/* --- tables ----------------------------------------------------------------------------------- */

static int send_table(struct parser *p, const struct message *question, struct message_tabled *m,
	const struct unwind_table *t)
{
	const uint8_t *bytes = t ? (const uint8_t *)t->memory : NULL;
	const size_t n_bytes = t ? unwind_table_memory_bytes(t) : 0;
	int r;

	do {
		m->n = (uint32_t)(n_bytes - m->first < MESSAGE_TABLE_BYTES_MAX
					  ? n_bytes - m->first
					  : MESSAGE_TABLE_BYTES_MAX);
		m->last = m->first + m->n == n_bytes;
		memcpy(p->out, m, sizeof(*m));
		if (m->n)
			memcpy(p->out + sizeof(*m), bytes + m->first, m->n);
		r = parser_answer(p, question, p->out, MESSAGE_TABLED, sizeof(*m) + m->n);
		m->first += m->n;
	} while (r == 0 && !m->last);
	return r;
}

static int make_table(
	const struct parsed_file *f, const struct message_table *m, struct unwind_table **ret_table)
{
	if (f->kind == KIND_JITDUMP)
		return image_table(f->image, (uint16_t)m->machine, m->n_bytes_max, ret_table);
	return table_of_file(f->fd[PART_MAIN], (uint16_t)m->machine, m->build_id, m->n_build_id,
		m->n_bytes_max, ret_table);
}

int parser_take_table(struct parser *p, const void *bytes, size_t n)
{
	_cleanup_(freep) struct unwind_table *t = NULL;
	struct message_tabled answer = {.outcome = TABLE_FORGOTTEN};
	struct message_table m;

	if (n != sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.file == 0 || m.machine > UINT16_MAX || m.n_build_id > sizeof(m.build_id))
		return -EBADMSG;
	answer.file = m.file;
	const struct parsed_file *f = parser_file(p, m.file);
	if (!f || (f->kind == KIND_JITDUMP && !f->image))
		return send_table(p, &m.head, &answer, NULL);
	parser_trap_image(f->fd[PART_MAIN]);
	int r = make_table(f, &m, &t);
	if (r == -ENOMEM && parser_make_room(p, f))
		r = make_table(f, &m, &t);
	answer.outcome = r == 0          ? TABLE_MADE
			 : r == -ENOENT  ? TABLE_OTHER_FILE
			 : r == -EBADMSG ? TABLE_NOTHING
					 : TABLE_LEFT;
	if (t) {
		answer.base = t->base;
		answer.n_segments = t->n_segments;
		answer.n_rules = t->n_rules;
		answer.n_pages = t->n_pages;
		answer.n_rows = t->n_rows;
	}
	return send_table(p, &m.head, &answer, t);
}
