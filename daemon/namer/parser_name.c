/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Images in the parser: loading them, and naming offsets in them. Memory that runs out is first
 * sought among the other images and spaces, all of which can be made again; only a file that does
 * not fit alone is oversize. Files that a JIT appends to are loaded anew when they grew and an
 * offset was missed, so that a method compiled a second ago has its name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <elfutils/libdwelf.h>
#include <libelf.h>

#include "daemon/namer/parser_private.h"
#include "proto/memory.h"

/* To read the list takes a slow hart a second. */
#define KALLSYMS_AGAIN_NS UINT64_C(60000000000)

static bool grows(const struct parsed_file *f)
{
	return f->kind == KIND_PERF_MAP || f->kind == KIND_JITDUMP;
}

static off_t size_of(int fd)
{
	struct stat s;

	return fstat(fd, &s) < 0 ? -1 : s.st_size;
}

/* The list is read anew for a module that came since, which is not there. */
static bool list_serves(const struct parser *p, const char *module)
{
	return p->kallsyms && (!module || kallsyms_find(p->kallsyms, module) ||
				      p->now_ns - p->kallsyms_ns < KALLSYMS_AGAIN_NS);
}

static int open_kallsyms(
	struct parser *p, const struct parsed_file *f, const char *module, struct image **ret_image)
{
	if (!list_serves(p, module)) {
		struct kallsyms *list;
		p->kallsyms = kallsyms_unref(p->kallsyms);
		int r = kallsyms_read(f->fd[PART_MAIN], &list);
		if (r)
			return r;
		p->kallsyms = list;
		p->kallsyms_ns = p->now_ns;
	}
	return image_open_kallsyms(p->kallsyms, module, module ? f->base : 0, ret_image);
}

static int open_image(struct parser *p, const struct parsed_file *f, struct image **ret_image)
{
	int fd = f->fd[PART_MAIN];

	lseek(fd, 0, SEEK_SET); /* the parser before this one may have read from it */
	switch (f->kind) {
	case KIND_ELF:
	case KIND_VDSO: {
		int r = image_open_elf(fd, ret_image);
		parser_trap_image(fd);
		return r;
	}
	case KIND_KERNEL:
		return open_kallsyms(p, f, NULL, ret_image);
	case KIND_MODULE:
		return open_kallsyms(p, f, f->module, ret_image);
	case KIND_PERF_MAP:
		return image_open_perf_map(fd, ret_image);
	case KIND_JITDUMP:
		return image_open_jitdump(fd, ret_image);
	}
	return IMAGE_MALFORMED;
}

static uint32_t load(struct parser *p, struct parsed_file *f)
{
	struct image *image = NULL;

	f->image = image_free(f->image);
	f->bytes = size_of(f->fd[PART_MAIN]);
	int r = open_image(p, f, &image);
	if ((r == -ENOMEM || r == IMAGE_OVERSIZE) && parser_make_room(p, f))
		r = open_image(p, f, &image);
	if (r == 0) {
		f->image = image;
		f->loaded = true;
		return image_has_symbols(image) || image_has_debug(image) || grows(f)
			       ? STATE_READY
			       : STATE_NO_SYMBOLS;
	}
	return r == -ENOMEM || r == IMAGE_OVERSIZE ? STATE_OVERSIZE : STATE_MALFORMED;
}

static int add_part(struct parsed_file *f, uint32_t part)
{
	parser_trap_image(f->fd[part]);
	return part == PART_DEBUG ? image_add_debug(f->image, f->fd[part], &f->debug_belongs)
				  : image_add_alt(f->image, f->fd[part]);
}

bool parser_load_again(struct parser *p, struct parsed_file *f)
{
	if (!f->loaded)
		return false;
	load(p, f);
	/* as when they came: one that does not fit any more adds nothing */
	for (uint32_t part = PART_MAIN + 1; f->image && part < N_PARTS; part++)
		if (f->fd[part] >= 0 && add_part(f, part) == -ENOMEM && parser_make_room(p, f))
			add_part(f, part);
	return f->image;
}

/* Is it the file that was mapped? One without a build id is not another for that. */
static bool is_other(int fd, const struct message_load *m)
{
	const void *id = NULL;
	bool other = false;

	if (m->n_build_id == 0 || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return false;
	if (elf_kind(elf) == ELF_K_ELF) {
		ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
		other = n > 0 && (n != m->n_build_id || memcmp(id, m->build_id, (size_t)n) != 0);
	}
	elf_end(elf);
	return other;
}

static void fill_wants(const struct parsed_file *f, struct message_loaded *m)
{
	struct image_wants wants = {0};

	m->has_symbols = image_has_symbols(f->image);
	m->has_debug = image_has_debug(f->image);
	if (f->kind != KIND_ELF)
		return;
	image_wants(f->image, &wants);
	m->want_debug = (wants.symbols || wants.debug) && f->fd[PART_DEBUG] < 0;
	m->want_alt = (wants.alt_link[0] || wants.n_alt_build_id) && f->fd[PART_ALT] < 0;
	m->n_build_id = wants.n_build_id <= sizeof(m->build_id) ? wants.n_build_id : 0;
	m->n_alt_build_id =
		wants.n_alt_build_id <= sizeof(m->alt_build_id) ? wants.n_alt_build_id : 0;
	memcpy(m->build_id, wants.build_id, sizeof(m->build_id));
	memcpy(m->alt_build_id, wants.alt_build_id, sizeof(m->alt_build_id));
	_Static_assert(sizeof(wants.debuglink) == sizeof(m->debuglink), "debuglink");
	memcpy(m->debuglink, wants.debuglink, sizeof(m->debuglink));
	memcpy(m->alt_link, wants.alt_link, sizeof(m->alt_link));
	m->debuglink[sizeof(m->debuglink) - 1] = 0;
	m->alt_link[sizeof(m->alt_link) - 1] = 0;
}

static int answer_loaded(struct parser *p, const struct message *question,
	const struct parsed_file *f, uint32_t state)
{
	struct message_loaded m = {.file = f ? f->id : 0, .state = state};

	if (f && f->image && (state == STATE_READY || state == STATE_NO_SYMBOLS))
		fill_wants(f, &m);
	return parser_answer(p, question, &m, MESSAGE_LOADED, sizeof(m));
}

int parser_take_load(struct parser *p, const void *bytes, size_t n)
{
	struct message_load m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (n != sizeof(m) + m.n_module || m.n_build_id > sizeof(m.build_id))
		return -EBADMSG;

	struct parsed_file *f = parser_file(p, m.file);
	if (!f || m.n_module >= sizeof(f->module))
		return f ? -EBADMSG : answer_loaded(p, &m.head, NULL, STATE_FORGOTTEN);
	f->kind = m.kind;
	f->base = m.base;
	memcpy(f->module, (const char *)bytes + sizeof(m), m.n_module);
	f->module[m.n_module] = 0;
	if (m.kind == KIND_ELF && is_other(f->fd[PART_MAIN], &m))
		return answer_loaded(p, &m.head, f, STATE_VANISHED);
	return answer_loaded(p, &m.head, f, load(p, f));
}

int parser_add_part(struct parser *p, const struct message_file *m, struct parsed_file *f)
{
	if (!f || !f->image || f->fd[m->part] < 0)
		return answer_loaded(p, &m->head, NULL, STATE_FORGOTTEN);

	if (add_part(f, m->part) == -ENOMEM && parser_make_room(p, f))
		add_part(f, m->part);
	/* A separate file that does not fit or does not parse adds nothing; the image stays. */
	bool any = image_has_symbols(f->image) || image_has_debug(f->image);
	return answer_loaded(p, &m->head, f, any ? STATE_READY : STATE_NO_SYMBOLS);
}

/* --- naming ---------------------------------------------------------------------------------- */

static size_t length(const char *s)
{
	return s ? strnlen(s, MESSAGE_NAME_BYTES_MAX) : 0;
}

static size_t naming_bytes(const struct image_naming *n)
{
	size_t bytes = sizeof(struct message_naming);

	for (uint32_t i = 0; i < n->n_places; i++)
		bytes += sizeof(struct message_place) + length(n->place[i].function) +
			 length(n->place[i].source);
	return bytes;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
	if (n > 0)
		memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put_naming(uint8_t *at, const struct image_naming *n)
{
	struct message_naming head = {
		.outcome = n->outcome == IMAGE_NAMED           ? NAMING_NAMED
			   : n->outcome == IMAGE_OUT_OF_SYMBOL ? NAMING_OUT_OF_SYMBOL
							       : NAMING_NO_SYMBOLS,
		.n_places = (uint8_t)n->n_places,
	};

	at = put(at, &head, sizeof(head));
	for (uint32_t i = 0; i < n->n_places; i++) {
		const struct image_place *from = &n->place[i];
		struct message_place place = {
			.line = from->line,
			.n_function = (uint16_t)length(from->function),
			.n_source = (uint16_t)length(from->source),
			.inlined = from->inlined,
		};
		at = put(at, &place, sizeof(place));
		at = put(at, from->function, place.n_function);
		at = put(at, from->source, place.n_source);
	}
	return at;
}

/* A file that a JIT appends to has something new for one of these offsets, perhaps. */
static void reload_if_grown(
	struct parser *p, struct parsed_file *f, const uint8_t *offsets, uint32_t n)
{
	if (!grows(f) || size_of(f->fd[PART_MAIN]) == f->bytes)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t offset;
		memcpy(&offset, offsets + i * sizeof(offset), sizeof(offset));
		image_name(f->image, offset, &p->naming);
		if (p->naming.outcome != IMAGE_NAMED) {
			load(p, f);
			return;
		}
	}
}

static int send_named(struct parser *p, const struct message_name *question, struct message_named m,
	const uint8_t *end)
{
	m.file = question->file;
	memcpy(p->out, &m, sizeof(m));
	return parser_answer(p, &question->head, p->out, MESSAGE_NAMED, (size_t)(end - p->out));
}

int parser_take_name(struct parser *p, const void *bytes, size_t n)
{
	struct message_name m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.n == 0 || m.n > MESSAGE_OFFSETS_MAX || n != sizeof(m) + m.n * sizeof(uint64_t))
		return -EBADMSG;

	const uint8_t *offsets = (const uint8_t *)bytes + sizeof(m);
	uint8_t *at = p->out + sizeof(struct message_named);
	struct parsed_file *f = parser_file(p, m.file);
	if (f && f->image)
		reload_if_grown(p, f, offsets, m.n);
	if (!f || (!f->image && !parser_load_again(p, f)))
		return send_named(
			p, &m, (struct message_named){.state = STATE_FORGOTTEN, .last = 1}, at);

	uint32_t n_put = 0;
	for (uint32_t i = 0; i < m.n; i++) {
		uint64_t offset;
		memcpy(&offset, offsets + i * sizeof(offset), sizeof(offset));
		p->naming.n_places = 0;
		image_name(f->image, offset, &p->naming);
		if ((size_t)(p->out + sizeof(p->out) - at) < naming_bytes(&p->naming)) {
			int r = send_named(p, &m,
				(struct message_named){.state = STATE_READY, .n = n_put}, at);
			if (r < 0)
				return r;
			n_put = 0;
			at = p->out + sizeof(struct message_named);
		}
		at = put_naming(at, &p->naming);
		n_put++;
	}
	return send_named(
		p, &m, (struct message_named){.state = STATE_READY, .n = n_put, .last = 1}, at);
}
