/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * naming FILE…: what naming costs, without a profiler around it. Feeds a parser in this process with
 * requests as they came in a recording, as the daemon sends them: each file and its debug file when
 * a frame in it is first wanted, and four times a second all new frames, file by file. A line of the
 * input is "NANOSECONDS PATH OFFSET"; README.md says how to get it from a recording. Time is that of
 * the input, so a minute takes as long as the parser works. Run below callgrind it counts
 * instructions.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/clock.h"

#define DRAIN_NS UINT64_C(250000000)
#define REQUESTS_MAX 1000000u

struct request {
	uint64_t ns, offset;
	uint32_t file; /* from 1 */
};

struct asked_file {
	char *path;
	bool given;
};

static struct request *request;
static struct asked_file file[PARSER_FILES_MAX];
static uint32_t n_requests, n_files;
static struct message_loaded loaded;
static struct message_named named;
static uint64_t n_named, n_loads, n_places, n_lines, hash;

static int hear(void *userdata, const void *bytes, size_t n)
{
	struct message head;

	(void)userdata;
	memcpy(&head, bytes, sizeof(head));
	if (head.type == MESSAGE_LOADED)
		memcpy(&loaded, bytes, sizeof(loaded));
	if (head.type != MESSAGE_NAMED)
		return 0;
	memcpy(&named, bytes, sizeof(named));
	const uint8_t *at = (const uint8_t *)bytes + sizeof(named);
	for (size_t i = sizeof(named); i < n; i++) /* FNV-1a: two parsers say the same */
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	for (uint32_t i = 0; i < named.n; i++) {
		struct message_naming naming;
		memcpy(&naming, at, sizeof(naming));
		at += sizeof(naming);
		n_named += naming.outcome == NAMING_NAMED;
		for (uint8_t k = 0; k < naming.n_places; k++) {
			struct message_place place;
			memcpy(&place, at, sizeof(place));
			at += sizeof(place) + place.n_function + place.n_source;
			n_places++;
			n_lines += place.line != 0;
		}
	}
	return 0;
}

static uint32_t file_of(const char *path)
{
	for (uint32_t i = 0; i < n_files; i++)
		if (strcmp(file[i].path, path) == 0)
			return i + 1;
	if (n_files == PARSER_FILES_MAX || !(file[n_files].path = strdup(path)))
		abort();
	return ++n_files;
}

static void read_requests(FILE *from)
{
	char path[4096];
	struct request r;

	/* not from the heap, whose size the parser looks at */
	request = mmap(NULL, REQUESTS_MAX * sizeof(*request), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (request == MAP_FAILED)
		abort();
	while (n_requests < REQUESTS_MAX &&
		fscanf(from, "%" SCNu64 " %4095s %" SCNu64, &r.ns, path, &r.offset) == 3) {
		r.file = file_of(path);
		request[n_requests++] = r;
	}
}

static int compare_requests(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	uint64_t at = x->ns / DRAIN_NS, other = y->ns / DRAIN_NS;

	if (at != other)
		return at < other ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

static void take(struct parser *p, const void *bytes, size_t n, int fd)
{
	if (parser_take(p, bytes, n, fd) < 0) {
		fputs("naming: the parser rejects a request\n", stderr);
		exit(1);
	}
	parser_rest(p, p->now_ns);
}

static void give_debug(struct parser *p, uint32_t id)
{
	char path[128] = "/usr/lib/debug/.build-id/";
	struct message_file m = {.head = {.type = MESSAGE_FILE}, .file = id, .part = PART_DEBUG};

	for (uint8_t i = 0; i < loaded.n_build_id; i++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "%02x%s",
			loaded.build_id[i], i == 0 ? "/" : "");
	strcat(path, ".debug");
	int fd = loaded.n_build_id ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		take(p, &m, sizeof(m), fd);
}

static bool give(struct parser *p, uint32_t id)
{
	const char *path = file[id - 1].path;
	struct message_file m = {.head = {.type = MESSAGE_FILE}, .file = id};
	struct {
		struct message_load m;
		char module[64];
	} load = {.m = {.head = {.type = MESSAGE_LOAD}, .file = id, .kind = KIND_ELF}};
	bool kernel = path[0] == '[';
	int fd = open(kernel ? "/proc/kallsyms" : path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (kernel)
		load.m.kind = strcmp(path, "[kernel]") == 0 ? KIND_KERNEL : KIND_MODULE;
	if (load.m.kind == KIND_MODULE) {
		load.m.n_module = (uint16_t)(strcspn(path + 1, "]") & 63);
		memcpy(load.module, path + 1, load.m.n_module);
	}
	take(p, &m, sizeof(m), fd);
	take(p, &load, sizeof(load.m) + load.m.n_module, -1);
	if (loaded.want_debug)
		give_debug(p, id);
	return loaded.state == STATE_READY;
}

static void ask(struct parser *p, uint32_t id, const struct request *r, uint32_t n)
{
	struct {
		struct message_name m;
		struct message_offset offset[MESSAGE_OFFSETS_MAX];
	} name = {.m = {.head = {.type = MESSAGE_NAME}, .file = id, .n = n}};

	for (uint32_t i = 0; i < n; i++)
		name.offset[i] = (struct message_offset){.offset = r[i].offset};
	struct parsed_file *f = parser_file(p, id);
	n_loads += f && !f->image;
	take(p, &name, sizeof(name.m) + n * sizeof(*name.offset), -1);
}

static void name_all(struct parser *p)
{
	for (uint32_t i = 0, n; i < n_requests; i += n) {
		const struct request *first = &request[i];
		for (n = 1; i + n < n_requests && n < MESSAGE_OFFSETS_MAX &&
			    compare_requests(first, first + n) == 0;
			n++)
			continue;
		p->now_ns = first->ns / DRAIN_NS * DRAIN_NS + (UINT64_C(1) << 40);
		struct asked_file *f = &file[first->file - 1];
		if (!f->given && !give(p, first->file))
			continue;
		f->given = true;
		ask(p, first->file, first, n);
	}
}

static uint64_t peak_kb(void)
{
	char line[256];
	uint64_t kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmHWM: %" SCNu64, &kb);
	if (f)
		fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	struct parser *p = NULL;
	FILE *from = argc == 2 ? fopen(argv[1], "re") : NULL;

	if (!from || parser_new(hear, NULL, &p) < 0) {
		fputs("usage: naming FILE, with lines of NANOSECONDS PATH OFFSET\n", stderr);
		return 2;
	}
	/* as sandbox.c */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 256 << 10);
	read_requests(from);
	fclose(from);
	qsort(request, n_requests, sizeof(*request), compare_requests);
	uint64_t before_kb = peak_kb(), begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	name_all(p);
	printf("%u frames in %u files: %" PRIu64 " named, %" PRIu64 " places, %" PRIu64
	       " with lines; %" PRIu64 " images made again; %.1f ms of CPU; peak %" PRIu64
	       " KB, of which %" PRIu64 " KB were there before; answers %016" PRIx64 "\n",
		n_requests, n_files, n_named, n_places, n_lines, n_loads,
		(double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e6, peak_kb(), before_kb,
		hash);
	parser_free(p);
	return 0;
}
