/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Images in the parser: loading them, and naming offsets in them. When memory runs out, other
 * images and spaces are freed first, since all can be made again; only a file that does not fit
 * alone is oversize. If the daemon saw that a file of a JIT has grown, the new part is read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>
#include <libelf.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/memory.h"

/* Memory that libdw may keep for units that were read, in one image. A library's units take some 20 KB
 * each, a large C++ program's a megabyte. */
#define UNITS_BYTES_MAX ((size_t)3 << 20)
#define UNITS_LOOK_NAMES 32u /* names between two checks of that memory */
/* Names after which an image releases its pages at once. Else parser_rest does so: a call to the kernel
 * and the pages that the next name needs again would cost more than the name. */
#define UNRELEASED_MAX 1024u

/* Reading the list takes a slow hart a second. */
#define KALLSYMS_AGAIN_NS UINT64_C(60000000000)

static bool grows(const struct parsed_file *f)
{
	return f->kind == KIND_PERF_MAP || f->kind == KIND_JITDUMP;
}

/* The list is read again for a missing module, which may have been loaded since. */
static bool list_serves(const struct parser *p, const char *module)
{
	return p->kallsyms && (!module || kallsyms_find(p->kallsyms, module) || !p->modules_ns ||
				      p->now_ns - p->modules_ns < KALLSYMS_AGAIN_NS);
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
		p->modules_ns = 0;
	}
	int r = module ? kallsyms_read_module(p->kallsyms, module) : 0;
	if (r)
		return r;
	if (module && !p->modules_ns && kallsyms_is_whole(p->kallsyms))
		p->modules_ns = p->now_ns;
	return image_open_kallsyms(p->kallsyms, module, module ? f->base : 0, ret_image);
}

static int open_image(struct parser *p, const struct parsed_file *f, struct image **ret_image)
{
	int fd = f->fd[PART_MAIN];

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

/* An image of the file alone, without its other parts. */
static int load_own(struct parser *p, struct parsed_file *f)
{
	struct image *image = NULL;

	f->image = image_free(f->image);
	f->units = (struct effort){0};
	p->grown = true;
	(void)parser_identify(f->fd[PART_MAIN], &f->identity[PART_MAIN]);
	struct effort begin = effort_now();
	int r = open_image(p, f, &image);
	if ((r == -ENOMEM || r == IMAGE_OVERSIZE) && parser_make_room(p, f))
		r = open_image(p, f, &image);
	if (r)
		return r;
	f->image = image;
	f->loaded = true;
	f->load = effort_since(&begin);
	return 0;
}

static uint32_t load(struct parser *p, struct parsed_file *f)
{
	int r = parser_share(p, f) ? 0 : load_own(p, f);

	if (r == 0)
		return image_has_symbols(f->image) || image_has_debug(f->image) || grows(f)
			       ? STATE_READY
			       : STATE_NO_SYMBOLS;
	return r == -ENOMEM || r == IMAGE_OVERSIZE ? STATE_OVERSIZE : STATE_MALFORMED;
}

static int join_part(struct parsed_file *f, uint32_t part)
{
	(void)parser_identify(f->fd[part], &f->identity[part]);
	switch (part) {
	case PART_DEBUG:
		return image_add_debug(f->image, f->fd[part], &f->debug_belongs);
	case PART_ALT:
		return image_add_alt(f->image, f->fd[part]);
	case PART_PACKAGE:
		return image_add_package(f->image, f->fd[part]);
	}
	return -EINVAL;
}

/* On failure there may be no image any more. */
static int add_part(struct parser *p, struct parsed_file *f, uint32_t part)
{
	parser_trap_image(f->fd[part]);
	if (parser_share(p, f))
		return 0;
	if (image_is_shared(f->image)) { /* with files that do not have the part */
		int r = load_own(p, f);
		if (r == 0 && part == PART_ALT && f->fd[PART_DEBUG] >= 0)
			r = join_part(f, PART_DEBUG);
		if (r < 0 || !f->image)
			return r;
	}
	return join_part(f, part);
}

/* Recreate an image that was freed. False: impossible, or it never existed. */
static bool load_again(struct parser *p, struct parsed_file *f)
{
	if (!f->loaded)
		return false;
	load(p, f);
	/* as on arrival: a file that no longer matches adds nothing */
	for (uint32_t part = PART_MAIN + 1; f->image && part < N_PARTS; part++)
		if (f->fd[part] >= 0 && add_part(p, f, part) == -ENOMEM && f->image &&
			parser_make_room(p, f))
			add_part(p, f, part);
	return f->image;
}

/* Is it the mapped file? Not if it lacks the expected build id. */
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
		other = n != m->n_build_id || memcmp(id, m->build_id, (size_t)n) != 0;
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

	if (add_part(p, f, m->part) == -ENOMEM && f->image && parser_make_room(p, f))
		add_part(p, f, m->part);
	if (!f->image)
		return answer_loaded(p, &m->head, NULL, STATE_FORGOTTEN);
	/* A separate file that does not match or does not parse adds nothing; the image stays. */
	bool any = image_has_symbols(f->image) || image_has_debug(f->image);
	return answer_loaded(p, &m->head, f, any ? STATE_READY : STATE_NO_SYMBOLS);
}

int parser_add_split(struct parser *p, const struct message_file *m, struct parsed_file *f, int fd)
{
	if (!f || !f->image)
		return answer_loaded(p, &m->head, NULL, STATE_FORGOTTEN);
	parser_trap_image(fd);
	(void)image_add_split(f->image, fd);
	return answer_loaded(p, &m->head, f, STATE_READY);
}

/* --- naming ----------------------------------------------------------------------------------- */

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
		.addr = n->addr,
		.outcome = n->outcome == IMAGE_NAMED           ? NAMING_NAMED
			   : n->outcome == IMAGE_PLACED        ? NAMING_PLACED
			   : n->outcome == IMAGE_OUT_OF_SYMBOL ? NAMING_OUT_OF_SYMBOL
							       : NAMING_NO_SYMBOLS,
		.n_places = (uint8_t)n->n_places,
		.from = n->from,
		.to = n->to,
	};

	at = put(at, &head, sizeof(head));
	for (uint32_t i = 0; i < n->n_places; i++) {
		const struct image_place *from = &n->place[i];
		struct message_place place = {
			.line = from->line,
			.n_function = (uint16_t)length(from->function),
			.n_source = (uint16_t)length(from->source),
			.inlined = from->inlined,
			.split_missing = from->split_missing,
		};
		at = put(at, &place, sizeof(place));
		at = put(at, from->function, place.n_function);
		at = put(at, from->source, place.n_source);
	}
	return at;
}

static int send_named(struct parser *p, const struct message_name *question, struct message_named m,
	const uint8_t *end)
{
	m.file = question->file;
	memcpy(p->out, &m, sizeof(m));
	return parser_answer(p, &question->head, p->out, MESSAGE_NAMED, (size_t)(end - p->out));
}

/* Make room for that number of bytes behind `at`: send the answer so far if it takes that room. 0 or -errno */
static int send_for_room(struct parser *p, const struct message_name *question, size_t bytes,
	uint8_t **at, uint32_t *n)
{
	if ((size_t)(p->out + sizeof(p->out) - *at) >= bytes)
		return 0;
	int r = send_named(p, question, (struct message_named){.state = STATE_READY, .n = *n}, *at);
	*at = p->out + sizeof(struct message_named);
	*n = 0;
	return r;
}

/* The offsets from here on wait for that file. */
static int send_wanted(struct parser *p, const struct message_name *question, const char *path,
	uint8_t *at, uint32_t n)
{
	size_t length = strnlen(path, MESSAGE_PATH_BYTES_MAX);
	int r = send_for_room(p, question, length, &at, &n);
	if (r < 0)
		return r;
	struct message_named m = {.state = STATE_READY,
		.n = n,
		.last = 1,
		.wants_split = 1,
		.n_split = (uint32_t)length};
	return send_named(p, question, m, put(at, path, length));
}

static void open_lines(struct parser *p, struct parsed_file *f)
{
	if (!image_has_debug(f->image) || image_has_open_lines(f->image))
		return;
	parser_leave_room(p, f, image_lines_bytes(f->image));
	struct effort begin = effort_now();
	if (image_open_lines(f->image) == -ENOMEM && parser_make_room(p, f))
		(void)image_open_lines(f->image); /* else the symbols must suffice */
	f->lines = effort_since(&begin);
	p->grown = true;
}

/* Add the effort of reading units to the image's, and drop its units if they take too much memory. */
static void bound_units(struct parser *p, struct parsed_file *f, struct effort *begin)
{
	if (!image_has_debug(f->image))
		return;
	struct effort read = effort_since(begin);
	f->units.cpu_ns += read.cpu_ns;
	f->units.heap_bytes += read.heap_bytes;
	p->grown |= read.heap_bytes > 0;
	if (f->units.heap_bytes > UNITS_BYTES_MAX) {
		image_drop_units(f->image);
		f->units = (struct effort){0};
	}
	*begin = effort_now();
}

int parser_take_name(struct parser *p, const void *bytes, size_t n)
{
	struct message_name m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.n == 0 || m.n > MESSAGE_OFFSETS_MAX ||
		n != sizeof(m) + m.n * sizeof(struct message_offset))
		return -EBADMSG;

	const uint8_t *offsets = (const uint8_t *)bytes + sizeof(m);
	uint8_t *at = p->out + sizeof(struct message_named);
	struct parsed_file *f = parser_file(p, m.file);
	if (!f || (!f->image && !load_again(p, f)))
		return send_named(
			p, &m, (struct message_named){.state = STATE_FORGOTTEN, .last = 1}, at);

	open_lines(p, f);
	if (m.no_split)
		image_give_up_split(f->image);
	struct effort begin = image_has_debug(f->image) ? effort_now() : (struct effort){0};
	const bool had_starts = image_has_starts(f->image);
	uint32_t n_put = 0;
	for (uint32_t i = 0; i < m.n; i++) {
		struct message_offset asked;
		if (i % UNITS_LOOK_NAMES == UNITS_LOOK_NAMES - 1) {
			bound_units(p, f, &begin);
			image_release_pages(f->image);
		}
		memcpy(&asked, offsets + i * sizeof(asked), sizeof(asked));
		p->naming.n_places = 0;
		image_name_by(f->image, asked.offset, asked.order, &p->naming);
		const char *wanted = image_wants_split(f->image);
		if (wanted)
			return send_wanted(p, &m, wanted, at, n_put);
		int r = send_for_room(p, &m, naming_bytes(&p->naming), &at, &n_put);
		if (r < 0)
			return r;
		at = put_naming(at, &p->naming);
		n_put++;
	}
	bound_units(p, f, &begin);
	p->grown |= image_has_starts(f->image) && !had_starts;
	p->n_unreleased += m.n;
	int r = send_named(
		p, &m, (struct message_named){.state = STATE_READY, .n = n_put, .last = 1}, at);
	if (p->n_unreleased >= UNRELEASED_MAX) {
		p->n_unreleased = 0;
		image_release_pages(f->image);
	}
	return r;
}

/* --- growing ---------------------------------------------------------------------------------- */

/* Read on in a file that has grown. If its image takes too much memory, make it again from the file's present
 * contents alone. */
static uint32_t read_on(struct parser *p, struct parsed_file *f)
{
	if (!f->image)
		return load_again(p, f) ? STATE_READY : STATE_FORGOTTEN;
	struct effort begin = effort_now();
	int r = image_read_on(f->image, f->fd[PART_MAIN]);
	p->grown = true;
	if (r < 0 || r == IMAGE_OVERSIZE)
		return load(p, f);
	struct effort more = effort_since(&begin);
	f->load.cpu_ns += more.cpu_ns;
	f->load.heap_bytes += more.heap_bytes;
	(void)parser_identify(f->fd[PART_MAIN], &f->identity[PART_MAIN]);
	return r ? STATE_MALFORMED : STATE_READY;
}

int parser_take_grow(struct parser *p, const void *bytes, size_t n)
{
	struct message_grow m;

	if (n != sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	struct parsed_file *f = parser_file(p, m.file);
	struct message_grown grown = {.file = m.file, .state = STATE_FORGOTTEN};
	if (f && grows(f))
		grown.state = read_on(p, f);
	uint8_t *at = p->out + sizeof(grown);
	struct image_change change[MESSAGE_CHANGES_MAX] = {0};
	if (grown.state == STATE_READY) {
		const struct image_mark before = {m.mark_at, m.mark};
		grown.lost = !image_goes_on(f->image, f->fd[PART_MAIN], &before);
		const struct image_mark now = image_mark(f->image);
		grown.mark_at = now.at;
		grown.mark = now.hash;
		grown.order = image_order(f->image);
		grown.n_rewrites = image_n_rewrites(f->image);
		grown.n = image_changes(f->image, m.after, change, MESSAGE_CHANGES_MAX);
	}
	for (uint32_t i = 0; i < grown.n; i++) {
		struct message_change to = {
			.start = change[i].start,
			.end = change[i].end,
			.from_ns = change[i].from_ns,
			.order = change[i].order,
		};
		at = put(at, &to, sizeof(to));
	}
	memcpy(p->out, &grown, sizeof(grown));
	return parser_answer(p, &m.head, p->out, MESSAGE_GROWN, (size_t)(at - p->out));
}
