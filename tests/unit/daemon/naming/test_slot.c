/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/naming/slot.c: which file is closed to make room for another.
 */
#include <fcntl.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "tests/unit/daemon/naming/naming_rig.inc"

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

enum { N_SLOTS = 6 };
static struct slot *slot[N_SLOTS];

static void make_slots(void)
{
	char name[32];

	for (int i = 0; i < N_SLOTS; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		struct file *file = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, name));
		ck_assert_int_eq(slot_get(n, file, &slot[i]), 0);
	}
}

static void hold(int i, enum message_part part)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	slot_hold(n, slot[i], part, fd, 1);
}

/* Close one; which is it? -1: none. */
static int evicted(void)
{
	bool open[N_SLOTS];
	int found = -1;

	for (int i = 0; i < N_SLOTS; i++)
		open[i] = slot[i]->fd[PART_MAIN] >= 0;
	if (!slot_evict(n, n->users.user[0]))
		return -1;
	for (int i = 0; i < N_SLOTS; i++)
		if (open[i] && slot[i]->fd[PART_MAIN] < 0) {
			ck_assert_int_eq(found, -1);
			found = i;
		}
	ck_assert_int_ge(found, 0);
	return found;
}

static uint32_t n_held(void)
{
	uint32_t found = 0;

	for (const struct slot *s = TAILQ_FIRST(&n->slots.held); s; s = TAILQ_NEXT(s, held))
		found++;
	return found;
}

TEST(open_files_are_closed_in_order_of_last_use)
{
	make_slots();
	for (int i = 0; i < 4; i++)
		hold(i, PART_MAIN);
	slot_touch(n, slot[0]);
	slot_touch(n, slot[2]);
	slot_touch(n, slot[5]); /* not open */
	ck_assert_int_eq(evicted(), 1);
	hold(1, PART_MAIN);
	ck_assert_int_eq(evicted(), 3);
	ck_assert_int_eq(evicted(), 0);
	slot_touch(n, slot[2]);
	ck_assert_int_eq(evicted(), 1);
	ck_assert_int_eq(evicted(), 2);
	ck_assert_int_eq(evicted(), -1);
	ck_assert_uint_eq(n->slots.n_fds, 0);
}

TEST(only_open_files_are_looked_at_for_one_to_close)
{
	make_slots();
	ck_assert_uint_eq(n_held(), 0);
	hold(1, PART_MAIN);
	hold(1, PART_DEBUG);
	hold(1, PART_MAIN); /* opened again */
	hold(4, PART_MAIN);
	ck_assert_uint_eq(n_held(), 2);
	ck_assert_uint_eq(n->slots.n_fds, 3);
	ck_assert_int_eq(evicted(), 1);
	ck_assert_uint_eq(n_held(), 1);
	ck_assert_uint_eq(n->slots.n_fds, 1);
	ck_assert_int_eq(slot_release(n, slot[4]), 0);
	ck_assert_int_eq(slot_release(n, slot[4]), 0);
	ck_assert_uint_eq(n_held(), 0);
}

TEST(file_that_is_asked_about_stays_open)
{
	make_slots();
	hold(0, PART_MAIN);
	hold(1, PART_MAIN);
	slot[0]->queue = QUEUE_PARSER;
	ck_assert_int_eq(evicted(), 1);
	ck_assert_int_eq(evicted(), -1);
	slot[0]->queue = QUEUE_NONE;
	ck_assert_int_eq(evicted(), 0);
}
