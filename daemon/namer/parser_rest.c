/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Release of the parser's memory. Most files are used once or twice, when a program is new, and then
 * never again; but a daemon runs for weeks. All that it holds can be made again from descriptors:
 * symbols in a millisecond, the unpacked debug information of a C library in forty, of a large program
 * in seconds.
 *
 * Idle images drop at once the parts that are cheap to make again. Beyond that, memory is bounded, and
 * the part of least worth is dropped. The worth of a part is the CPU time of making it again, divided
 * by its memory and by the time since its last use: an image that was not used for long is not likely
 * to be used soon. If only the last use counted, a library that all programs call would be unpacked
 * again and again.
 */

#include <malloc.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/clock.h"

#define KEPT_IMAGES 64u /* idle ones, most of some 20 KB */
#define IDLE_NS UINT64_C(5000000000)
/* Reading them again takes a slow hart ten milliseconds, and what is named at all is often named
 * again within minutes. */
#define UNITS_IDLE_NS UINT64_C(120000000000)
/* Unpacking takes more, and what is unpacked is the most of what a machine at rest would hold. */
#define LINES_IDLE_NS UINT64_C(300000000000)
#define LOOK_NS UINT64_C(1000000000)
/* Beside a build, half of the parser's time went into releasing pages of images in use each second, and reading them
 * again for the next name. */
#define RELEASE_NS UINT64_C(10000000000)
#define HEAVY_BYTES ((size_t)256 << 10)

size_t parser_heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

struct effort effort_now(void)
{
	return (struct effort){clock_ns(CLOCK_PROCESS_CPUTIME_ID), parser_heap_bytes()};
}

struct effort effort_since(const struct effort *begin)
{
	struct effort now = effort_now();
	return (struct effort){
		.cpu_ns = now.cpu_ns - begin->cpu_ns,
		.heap_bytes =
			now.heap_bytes > begin->heap_bytes ? now.heap_bytes - begin->heap_bytes : 0,
	};
}

/* Parts of an image, in the order in which they are dropped. */
enum part { PART_UNITS, PART_LINES, PART_IMAGE };

/* Lines of a file that is not compressed stay in the file, and take no memory to speak of. */
static enum part first_part(const struct parsed_file *f)
{
	if (f->units.heap_bytes >= HEAVY_BYTES)
		return PART_UNITS;
	if (image_has_open_lines(f->image) && f->lines.heap_bytes >= HEAVY_BYTES)
		return PART_LINES;
	return PART_IMAGE;
}

/* CPU time saved by keeping the first part, per byte and second. */
static double worth(const struct parsed_file *f, uint64_t now_ns)
{
	enum part part = first_part(f);
	const struct effort *e = part == PART_UNITS   ? &f->units
				 : part == PART_LINES ? &f->lines
						      : &f->load;

	return (double)e->cpu_ns / (double)(e->heap_bytes + 1) /
	       (double)(now_ns - f->used_ns + LOOK_NS);
}

static struct parsed_file *last_used(struct parser *p)
{
	struct parsed_file *last = NULL;

	for (uint32_t i = 0; i < p->n_files; i++)
		if (p->file[i].image && (!last || p->file[i].used > last->used))
			last = &p->file[i];
	return last;
}

/* Choose the image that drops a part, among images idle for idle_ns. If idle_ns is 0, never the last used
 * one. */
static struct parsed_file *least_worth(struct parser *p, uint64_t now_ns, uint64_t idle_ns)
{
	struct parsed_file *least = NULL, *last = last_used(p);

	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (!f->image || now_ns - f->used_ns < idle_ns || (f == last && idle_ns == 0))
			continue;
		if (!least || worth(f, now_ns) < worth(least, now_ns))
			least = f;
	}
	return least;
}

static struct parsed_file *oldest_image(struct parser *p, uint32_t *ret_n_images)
{
	struct parsed_file *oldest = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (!f->image)
			continue;
		n++;
		if (!oldest || f->used < oldest->used)
			oldest = f;
	}
	*ret_n_images = n;
	return oldest;
}

static void drop(struct parser *p, struct parsed_file *f, enum part part)
{
	f->units = (struct effort){0};
	if (part == PART_UNITS) {
		image_drop_units(f->image);
	} else if (part == PART_LINES) {
		image_drop_lines(f->image);
	} else {
		parser_forget_spaces_of(p, f->id); /* spaces may point into it */
		f->image = image_free(f->image);
	}
}

/* The part that an image drops when it is idle, and the time when it is due. False: it has none to drop. */
static bool idle_part(const struct parsed_file *f, enum part *ret_part, uint64_t *ret_due_ns)
{
	if (!f->image || (!f->units.cpu_ns && !image_has_open_lines(f->image)))
		return false;
	*ret_part = f->units.cpu_ns ? PART_UNITS : PART_LINES;
	*ret_due_ns = f->used_ns + (f->units.cpu_ns ? UNITS_IDLE_NS : LINES_IDLE_NS);
	return true;
}

/* Images release pages that the kernel can read again: idle ones for the last time, those in use now and then. Images
 * that are idle for minutes drop the units that were read, and then what was unpacked. */
static bool lay_to_rest(struct parser *p, uint64_t now_ns)
{
	enum part part;
	uint64_t due_ns;
	bool any = false;

	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (!f->image)
			continue;
		const bool idle = now_ns - f->used_ns >= IDLE_NS;
		if (!f->rests && (idle || now_ns - f->released_ns >= RELEASE_NS)) {
			image_release_pages(f->image);
			f->released_ns = now_ns;
			f->rests = idle;
			any |= idle;
		}
		if (idle_part(f, &part, &due_ns) && now_ns >= due_ns) {
			drop(p, f, part);
			any = true;
		}
	}
	return any;
}

/* Drop parts of images idle for idle_ns until no more than that is in use. */
static bool shrink(struct parser *p, uint64_t now_ns, uint64_t idle_ns, size_t bytes)
{
	bool any = false;

	for (struct parsed_file *f; parser_heap_bytes() > bytes; any = true) {
		f = least_worth(p, now_ns, idle_ns);
		if (!f)
			break;
		drop(p, f, first_part(f));
	}
	return any;
}

/* A file may claim any size: half of the limit at most is made free. */
void parser_leave_room(struct parser *p, struct parsed_file *f, size_t bytes)
{
	const size_t most = PARSER_CROWDED_BYTES / 2;

	f->used =
		++p->clock; /* alone the last used one, which is kept, even if its image is shared */
	if (bytes >= HEAVY_BYTES &&
		shrink(p, p->now_ns, 0, PARSER_CROWDED_BYTES - (bytes < most ? bytes : most)))
		malloc_trim(0);
}

int parser_rest_ms(const struct parser *p, uint64_t now_ns)
{
	uint64_t first_ns = UINT64_MAX, due_ns;
	enum part part;

	for (uint32_t i = 0; i < p->n_files; i++)
		if (idle_part(&p->file[i], &part, &due_ns) && due_ns < first_ns)
			first_ns = due_ns;
	if (first_ns == UINT64_MAX)
		return -1;
	return (int)((first_ns > now_ns ? first_ns - now_ns : 0) / 1000000 + LOOK_NS / 1000000);
}

bool parser_rest(struct parser *p, uint64_t now_ns)
{
	uint32_t n;

	if (now_ns - p->rested_ns < LOOK_NS && !p->grown)
		return false;
	bool any = now_ns - p->rested_ns >= LOOK_NS && lay_to_rest(p, now_ns);
	if (now_ns - p->rested_ns >= LOOK_NS)
		p->rested_ns = now_ns;
	p->grown = false;
	for (struct parsed_file *f; (f = oldest_image(p, &n)); any = true) {
		if (n <= KEPT_IMAGES || now_ns - f->used_ns < IDLE_NS)
			break;
		drop(p, f, PART_IMAGE);
	}
	any |= shrink(p, now_ns, IDLE_NS, PARSER_KEPT_BYTES);
	any |= shrink(p, now_ns, 0, PARSER_CROWDED_BYTES);
	if (any)
		malloc_trim(0);
	return any;
}
