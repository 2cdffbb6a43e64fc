/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What is put back into a queue: each way in which a question comes back unanswered is walked here,
 * or in the tests of users, turns, stacks and workers that are away.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#define TIMEOUT_NS 2000000000ull

static struct namer_rig rig;
static struct namer *n;

static void begin(const char *role, const char *play)
{
	const struct namer_options o = {.open_timeout_ns = TIMEOUT_NS};

	if (role)
		namer_rig_begin_fake(&rig, role, play, &o);
	else
		namer_rig_begin(&rig, &(struct namer_options){.binary = namer_rig_worker(true)});
	n = rig.namer;
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

static struct file *program(void)
{
	return namer_rig_file(&rig, FILE_ELF, namer_rig_self());
}

static uint32_t parser_restarts(void)
{
	struct namer_status s;

	namer_status(n, &s);
	return s.parser.restarts;
}

/* Frames of one file that the parser loses each time end as too large, others' are asked. */
static void is_lost_for_good(const char *play)
{
	begin("parse", play);
	struct file *f = program();
	struct frame *first = namer_rig_frame(&rig, f, 16), *second = namer_rig_frame(&rig, f, 32);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_OVERSIZE);
	ck_assert_int_eq(first->state, FRAME_UNNAMED);
	ck_assert_int_eq(second->state, FRAME_UNNAMED);
	ck_assert_uint_eq(rig.n_named, 2);
	ck_assert_uint_eq(n->queues.n_entries, 0);
	ck_assert_uint_eq(parser_restarts(), 0);
	teardown();
}

EACH_TEST(.seconds = 120);

TEST(file_that_is_forgotten_when_names_are_asked_is_given_up)
{
	is_lost_for_good("forgetful");
}

TEST(file_that_is_forgotten_when_it_is_loaded_is_given_up)
{
	is_lost_for_good("loadless");
}

TEST(file_that_the_parser_has_no_room_for_is_given_up)
{
	is_lost_for_good("full");
}

TEST(names_asked_of_a_parser_that_is_killed_are_asked_once_more)
{
	begin("parse", "mortal");
	struct file *f = program();
	struct frame *first = namer_rig_frame(&rig, f, 16), *second = namer_rig_frame(&rig, f, 32);

	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(parser_restarts(), 2);
	ck_assert_int_eq(f->state, FILE_CRASHED);
	ck_assert_int_eq(first->state, FRAME_UNNAMED);
	ck_assert_int_eq(second->state, FRAME_UNNAMED);
	ck_assert_uint_eq(n->queues.n_entries, 0);
	teardown();
}

TEST(parser_that_wants_ever_more_split_units_is_ended)
{
	begin("parse", "greedy");
	struct file *f = program();
	struct frame *first = namer_rig_frame(&rig, f, 16), *second = namer_rig_frame(&rig, f, 32);

	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_gt(parser_restarts(), 0);
	ck_assert_int_eq(f->state, FILE_CRASHED);
	ck_assert_int_eq(first->state, FRAME_UNNAMED);
	ck_assert_int_eq(second->state, FRAME_UNNAMED);
	ck_assert_uint_eq(n->queues.n_entries, 0);
	teardown();
}

TEST(debug_file_that_hangs_costs_lines_and_not_the_name)
{
	begin("open", "half");
	struct file *f = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "stripped");

	ck_assert_int_eq(namer_rig_shell("cd '%s' && objcopy --strip-debug stripped &&"
					 " objcopy --remove-section .note.gnu.build-id stripped &&"
					 " cp stripped a.debug &&"
					 " objcopy --add-gnu-debuglink=a.debug stripped",
				 rig.dir),
		0);
	struct frame *frame = namer_rig_name(&rig, f, namer_rig_landmark());
	namer_rig_is_honest(frame);
	ck_assert_uint_eq(naming_user_find(&n->users, rig.uid)->opens.deaths, 1);
	ck_assert_int_eq(f->state, FILE_READY);
	teardown();
}

TEST(debug_file_that_ended_the_parser_before_is_left_alone)
{
	begin(NULL, NULL);
	struct file *bad = namer_rig_file_of(&rig, geteuid(), "/bin/true", "crash", "a.debug");
	struct file *f = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "stripped");

	ck_assert_int_eq(namer_rig_shell("cd '%s' && objcopy --strip-debug stripped &&"
					 " objcopy --remove-section .note.gnu.build-id stripped &&"
					 " objcopy --add-gnu-debuglink=a.debug stripped",
				 rig.dir),
		0);
	namer_rig_name(&rig, bad, 16);
	ck_assert_int_eq(bad->state, FILE_CRASHED);
	namer_rig_is_honest(namer_rig_name(&rig, f, namer_rig_landmark()));
	ck_assert_uint_eq(parser_restarts(), 1);
	teardown();
}

/* A worker that is gone before it is asked has not seen the question. */
TEST(question_that_does_not_reach_its_worker_waits_for_the_next)
{
	struct worker *workers[2];

	begin(NULL, NULL);
	workers[0] = &n->opener;
	workers[1] = &n->parser;
	for (uint64_t i = 0; i < 2; i++) {
		while (workers[i]->state != WORKER_IDLE)
			namer_rig_step(&rig, 10);
		ck_assert_int_eq(shutdown(workers[i]->fd, SHUT_WR), 0);
		struct file *f = program();
		if (i == 0)
			namer_open(n, f, rig.uid);
		struct frame *frame = namer_rig_frame(&rig, f, namer_rig_landmark() + i);
		ck_assert(namer_rig_run(&rig));
		namer_rig_is_honest(frame);
		ck_assert_uint_eq(workers[i]->restarts, 1);
	}
	teardown();
}

/* The frames are named by then, so their entries stand for nothing: none is asked twice. */
TEST(frames_that_others_brought_to_their_turn_are_not_asked_again)
{
	struct frame *frame[3];

	begin(NULL, NULL);
	struct file *f = program();
	struct naming_user *slow = naming_user_get(&n->users, 1000);
	rig.uid = 1000;
	slow->budget_ns = -1;
	slow->budget_at_ns = UINT64_MAX;
	for (uint64_t i = 0; i < 3; i++) {
		frame[i] = namer_rig_frame(&rig, f, namer_rig_landmark() + i);
		ck_assert_int_eq(namer_hurry(n, frame[i], 1001), 0);
	}
	ck_assert_uint_eq(n->queues.n_entries, 6);
	slow->parse_ns = 1; /* the other comes first */
	slow->budget_ns = 1;
	ck_assert(namer_rig_run(&rig));
	while (n->queues.n_entries > 0)
		namer_rig_step(&rig, 10);
	ck_assert_uint_eq(rig.n_named, 3);
	for (int i = 0; i < 3; i++)
		namer_rig_is_honest(frame[i]);
	teardown();
}

TEST(what_rests_is_looked_at_again_only_when_its_time_comes)
{
	begin(NULL, NULL);
	struct file *f = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "mine");
	ck_assert_int_eq(chmod(f->path, 0777), 0); /* it is charged to who runs it */
	struct naming_user *u = naming_user_get(&n->users, 1000);
	rig.uid = 1000;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	account_charge(&u->files, 1, now);
	struct frame *frame = namer_rig_frame(&rig, f, namer_rig_landmark());
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert_uint_eq(n->blames.wake_ns, u->files.until_ns);
	/* charged once more in the meantime: it rests on */
	u->files.until_ns += NAMER_REFUSED_NS;
	n->blames.wake_ns = 0;
	ck_assert_int_eq(namer_dispatch(n, now + 1), 0);
	ck_assert_uint_eq(n->blames.wake_ns, u->files.until_ns);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	u->files.until_ns = 0;
	n->blames.wake_ns = 0;
	while (frame->state == FRAME_ASKED)
		namer_rig_step(&rig, 10);
	namer_rig_is_honest(frame);
	teardown();
}

TEST(image_that_makes_no_room_for_another_is_forgotten_first)
{
	begin(NULL, NULL);
	struct file *f = program();
	namer_rig_name(&rig, f, namer_rig_landmark());
	struct slot *held = f->namer_slot;
	held->bytes[PART_MAIN] = NAMER_IMAGES_BYTES_MAX;
	struct file *other = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "other");
	namer_rig_is_honest(namer_rig_name(&rig, other, namer_rig_landmark()));
	ck_assert_uint_eq(held->loaded, 0);
	namer_rig_is_honest(namer_rig_name(&rig, f, namer_rig_landmark() + 1));
	teardown();
}
