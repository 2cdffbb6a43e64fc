/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The least that a counted program needs to run: a block for each thread, and at the end a file of
 * all counters (MPERF_STUB_OUTPUT), for read_counts.py. It lets tests of the pass judge the pass
 * alone, with any target's compiler and without a build for it, and tells what the real one would
 * not: which entries count is known beforehand (MPERF_STUB_ONE_IN; the real one draws by chance),
 * and a file comes out of what no wrapper linked. Tests that are called real or go through mperf-cc
 * have the real one.
 *
 *      file = { n_counters:u64 table_bytes:u64 counters table }*, by module; threads added up
 */

#include "runtime/abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#include <asm/prctl.h>
#endif

#define OBJECTS_MAX 16
#define BLOCKS_MAX 256

struct block {
	struct mperf_object *object;
	uint64_t *counters;
};

/* A program may have this: called by all that compiled code calls while it counts. */
__attribute__((weak)) void mperf_stub_called(void);

static void call_program(void)
{
	if (mperf_stub_called)
		mperf_stub_called();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS_MAX];
static unsigned n_blocks;
static struct mperf_object *objects[OBJECTS_MAX];
static unsigned n_objects;

static void write_module(FILE *file, const struct mperf_object *o, const struct mperf_module *m)
{
	const uint64_t first = m->counters - o->counters;
	const uint64_t head[] = {m->n_counters, m->table_bytes};
	fwrite(head, sizeof(head), 1, file);
	for (uint64_t i = 0; i < m->n_counters; i++) {
		uint64_t sum = 0;
		for (unsigned b = 0; b < n_blocks; b++)
			sum += blocks[b].object == o ? blocks[b].counters[first + i] : 0;
		fwrite(&sum, sizeof(sum), 1, file);
	}
	fwrite(m->table, 1, m->table_bytes, file);
}

static void write_all(void)
{
	const char *path = getenv("MPERF_STUB_OUTPUT");
	FILE *file = path ? fopen(path, "w") : NULL;
	if (!file)
		return;
	for (unsigned i = 0; i < n_objects; i++)
		for (const struct mperf_module *m = objects[i]->modules;
			m < objects[i]->modules_end; m++)
			write_module(file, objects[i], m);
	fclose(file);
}

void __mperf_object_register(struct mperf_object *o)
{
	for (unsigned i = 0; i < n_objects; i++)
		if (objects[i] == o)
			return;
	if (n_objects == 0)
		atexit(write_all);
	if (n_objects < OBJECTS_MAX)
		objects[n_objects++] = o;
}

void __mperf_object_unregister(struct mperf_object *o)
{
	(void)o;
}

int64_t __mperf_thread_enter(struct mperf_object *o)
{
	call_program();
	const uint64_t n = o->counters_end - o->counters;
	uint64_t *counters = calloc(n, sizeof(*counters));
	if (!counters)
		abort();
	pthread_mutex_lock(&lock);
	if (n_blocks < BLOCKS_MAX)
		blocks[n_blocks++] = (struct block){o, counters};
	pthread_mutex_unlock(&lock);
	*o->bias() = (char *)counters - (char *)o->counters;
#ifdef __x86_64__
	for (const struct mperf_module *m = o->modules; m < o->modules_end; m++)
		if (m->flags & MPERF_MODULE_SEGMENT)
			syscall(SYS_arch_prctl, ARCH_SET_GS, *o->bias());
#endif
	return *o->bias();
}

/* MPERF_STUB_ONE_IN=N */
void __mperf_choices_register(struct mperf_choice *first, struct mperf_choice *end)
{
	const char *text = getenv("MPERF_STUB_ONE_IN");
	for (struct mperf_choice *c = first; text && c < end; c++)
		c->one_in = strcmp(text, "1") == 0 ? -1 : (int32_t)strtol(text, NULL, 10);
}

void __mperf_choices_unregister(struct mperf_choice *first, struct mperf_choice *end)
{
	(void)first;
	(void)end;
}

/* Every Nth counts, beginning with the Nth. */
uint32_t __mperf_turn_draw(uint64_t *words, int32_t one_in)
{
	call_program();
	const uint32_t counts = words[MPERF_TURN_WINDOW] != 0;
	words[MPERF_TURN_WINDOW] = 1;
	words[MPERF_TURN_COUNTDOWN] = (uint64_t)(counts ? one_in : one_in - 1);
	return counts;
}

uint64_t __mperf_loop_begin(uint64_t *words, uint32_t published)
{
	struct timespec now;
	call_program();
	clock_gettime(CLOCK_MONOTONIC, &now);
	words[MPERF_TIMED_COUNTDOWN] = 1000;
	const uint64_t ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	words[MPERF_TIMED_OPEN_NS] = published ? ns : 0;
	return ns;
}

void __mperf_loop_end(uint64_t *words, uint64_t begin_ns)
{
	struct timespec now;
	call_program();
	clock_gettime(CLOCK_MONOTONIC, &now);
	words[MPERF_TIMED_OPEN_NS] = 0;
	words[MPERF_TIMED_ENTRIES]++;
	words[MPERF_TIMED_NS] += now.tv_sec * 1000000000ull + now.tv_nsec - begin_ns;
}
