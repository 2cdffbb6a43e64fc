/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The parser's files and spaces, and its answers. */

#include <stdlib.h>
#include <string.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/memory.h"

void parser_space_clear(struct parsed_space *s)
{
	unwinder_free(s->unwinder);
	free(s->file);
}

static bool space_has(const struct parsed_space *s, uint32_t file)
{
	for (uint32_t i = 0; i < s->n_files; i++)
		if (s->file[i] == file)
			return true;
	return false;
}

void parser_forget_spaces_of(struct parser *p, uint32_t file)
{
	for (uint32_t i = 0; i < p->n_spaces;) {
		if (file != 0 && !space_has(&p->space[i], file)) {
			i++;
			continue;
		}
		parser_space_clear(&p->space[i]);
		p->space[i] = p->space[--p->n_spaces];
	}
}

void parser_drop_arriving(struct parser *p)
{
	free(p->arriving.map);
	p->arriving = (struct parsed_maps){0};
}

struct parsed_file *parser_file(struct parser *p, uint32_t id)
{
	for (uint32_t i = 0; i < p->n_files; i++)
		if (p->file[i].id == id) {
			p->file[i].used = ++p->clock;
			p->file[i].used_ns = p->now_ns;
			p->file[i].rests = false;
			parser_touch_shared(p, &p->file[i]);
			return &p->file[i];
		}
	return NULL;
}

void parser_file_clear(struct parsed_file *f)
{
	f->image = image_free(f->image);
	for (int part = 0; part < N_PARTS; part++)
		closep(&f->fd[part]);
}

void parser_forget_file(struct parser *p, uint32_t id)
{
	struct parsed_file *f = parser_file(p, id);

	if (!f)
		return;
	parser_forget_spaces_of(p, id);
	parser_drop_arriving(p); /* it may have the descriptor */
	parser_file_clear(f);
	*f = p->file[--p->n_files];
}

bool parser_make_room(struct parser *p, const struct parsed_file *kept)
{
	bool any = p->n_spaces > 0 || p->kallsyms;

	parser_forget_spaces_of(p, 0);
	p->kallsyms = kallsyms_unref(p->kallsyms);
	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (f == kept || !f->image)
			continue;
		f->image = image_free(f->image);
		any = true;
	}
	return any;
}

int parser_answer(
	struct parser *p, const struct message *question, void *answer, uint32_t type, size_t bytes)
{
	struct message head = {.magic = MESSAGE_MAGIC,
		.type = type,
		.serial = question->serial,
		.bytes = (uint32_t)bytes};

	memcpy(answer, &head, sizeof(head));
	return p->send(p->userdata, answer, bytes);
}

int parser_done(struct parser *p, const struct message *question, int error)
{
	struct message_done m = {.error = error};

	return parser_answer(p, question, &m, MESSAGE_DONE, sizeof(m));
}
