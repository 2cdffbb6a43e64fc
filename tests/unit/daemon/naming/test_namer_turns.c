/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Users have turns at the namer: nobody waits for another longer than one question takes.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/daemon/naming/naming_rig.inc"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

/* --- the caller's turns ----------------------------------------------------------------------- */

static int n_polled(bool is_patient)
{
	struct pollfd fds[NAMER_FDS_MAX];

	namer_be_patient(rig.namer, is_patient);
	int n_fds = namer_fds(rig.namer, fds);
	namer_be_patient(rig.namer, false);
	return n_fds;
}

TEST(a_patient_caller_is_woken_for_new_files_and_a_backlog_alone)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)fclose);
	struct file *f = namer_rig_file(&rig, FILE_ELF, s.path);
	struct namer_status status;

	namer_rig_frame(&rig, f, s.offset);
	ck_assert_int_eq(namer_dispatch(rig.namer, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert_int_eq(n_polled(true), 2);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(n_polled(true), 2); /* it may end */
	namer_status(rig.namer, &status);
	kill(status.parser.pid, SIGSTOP);
	namer_rig_frame(&rig, f, s.offset + 8);
	ck_assert_int_eq(namer_dispatch(rig.namer, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert_int_eq(n_polled(true), 1);
	ck_assert_int_eq(n_polled(false), 2);
	for (uint64_t i = 0; i < 2000; i++)
		namer_rig_frame(&rig, f, s.offset + 16 + i * 8);
	ck_assert_int_eq(n_polled(true), 2);
	kill(status.parser.pid, SIGCONT);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_named, 2002);
}

/* The parser may have answered at once. */
static bool is_asked(uint64_t now_ns)
{
	const uint32_t before = n->parser.serial;

	ck_assert_int_eq(namer_dispatch(rig.namer, now_ns), 0);
	return n->parser.serial != before;
}

TEST(for_a_patient_caller_frames_of_a_second_are_asked_for_together)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)fclose);
	struct file *f = namer_rig_file(&rig, FILE_ELF, s.path);
	uint64_t at = s.offset, now_ns;

	namer_rig_name(&rig, f, at);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	namer_be_patient(n, true);
	namer_rig_frame(&rig, f, at += 8);
	ck_assert(!is_asked(now_ns));
	namer_rig_frame(&rig, f, at += 8);
	ck_assert(!is_asked(now_ns + GATHER_NS / 2));
	const uint32_t serial = n->parser.serial;
	ck_assert(is_asked(now_ns + GATHER_NS));
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(n->parser.serial, serial + 1);

	now_ns = clock_ns(CLOCK_MONOTONIC);
	namer_rig_frame(&rig, f, at += 8); /* waits for another second */
	ck_assert(!is_asked(now_ns));
	namer_be_patient(n, false);
	ck_assert(is_asked(now_ns));
	ck_assert(namer_rig_run(&rig));

	namer_be_patient(n, true); /* a backlog does not wait */
	for (uint32_t i = 0; i < GATHER_FRAMES_MAX + 1; i++)
		namer_rig_frame(&rig, f, at += 8);
	ck_assert(is_asked(clock_ns(CLOCK_MONOTONIC)));
	ck_assert(namer_rig_run(&rig));

	namer_rig_frame(&rig, f, at += 8);
	ck_assert(!is_asked(clock_ns(CLOCK_MONOTONIC)));
	namer_rig_frame(&rig, namer_rig_file(&rig, FILE_ELF, namer_rig_self()),
		16);                             /* nor does a new file */
	ck_assert_int_eq(namer_ask_again(n), 0); /* nor the end */
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(frames_waiting(n), 0);
}

/* Its debug file is opened, and joined, in steps. */
TEST(a_new_file_and_its_debug_file_are_not_delayed)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "part");
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && objcopy --only-keep-debug part part.debug &&"
				" objcopy --strip-debug --remove-section .note.gnu.build-id part &&"
				" objcopy --add-gnu-debuglink=part.debug part",
			rig.dir),
		0);
	namer_be_patient(n, true);
	const struct frame *frame =
		namer_rig_frame(&rig, namer_rig_file(&rig, FILE_ELF, path), namer_rig_landmark());
	for (int i = 0; i < 3000 && frame->state == FRAME_ASKED; i++) {
		(void)is_asked(now_ns);
		usleep(5000);
	}
	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_ptr_nonnull(frame->place[0].source);
}

TEST(frames_of_several_files_are_gathered_and_served_one_file_after_another)
{
	static const char *names[] = {"a", "b", "c"};
	struct file *file[3];
	uint32_t n_served = 0;

	for (int i = 0; i < 3; i++) {
		file[i] = namer_rig_file(
			&rig, FILE_ELF, namer_rig_copy(&rig, namer_rig_self(), names[i]));
		namer_rig_name(&rig, file[i], namer_rig_landmark());
	}
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	namer_be_patient(n, true);
	for (uint64_t i = 0; i < 3; i++)
		namer_rig_frame(&rig, file[i], namer_rig_landmark() + 2);
	ck_assert(!is_asked(now_ns));
	const uint32_t n_before = rig.n_named;
	for (int i = 0; i < 3000 && rig.n_named < n_before + 3; i++) {
		n_served += is_asked(now_ns + GATHER_NS);
		usleep(10000);
	}
	ck_assert_uint_eq(rig.n_named, n_before + 3);
	ck_assert_uint_gt(n_served, 0);
}

/* --- whose turn it is ------------------------------------------------------------------------- */

/* What each had of the parser's time is even, to the length of one question. */
TEST(many_slow_files_of_one_user_delay_another_by_few)
{
	enum { N_SLOW = 20, N_FILES = 5 };
	struct frame *f[N_FILES];
	struct naming_user *mallory = naming_user_get(&n->users, MALLORY),
			   *victor = naming_user_get(&n->users, VICTOR);
	uint64_t longest_ns = 0;

	as(MALLORY);
	for (int i = 0; i < N_SLOW; i++)
		namer_rig_frame(&rig, trapped(geteuid(), "slow", i), 0x10);
	while (rig.n_named == 0)
		namer_rig_step(&rig, 10);
	as(VICTOR);
	for (int i = 0; i < N_FILES; i++) {
		f[i] = namer_rig_frame(&rig, trapped(geteuid(), "quick", i), 0x10);
	}
	uint64_t mallory_ns = mallory->parse_ns, victor_ns = victor->parse_ns;
	for (bool all = false; !all;) {
		uint64_t before_ns = mallory->parse_ns;
		namer_rig_step(&rig, 10);
		if (mallory->parse_ns - before_ns > longest_ns)
			longest_ns = mallory->parse_ns - before_ns;
		all = true;
		for (int i = 0; i < N_FILES; i++)
			all &= f[i]->state != FRAME_ASKED;
	}
	ck_assert_uint_le(mallory->parse_ns - mallory_ns,
		victor->parse_ns - victor_ns + (N_FILES + 2) * longest_ns);
}

static void spend(uid_t uid)
{
	struct naming_user *u = naming_user_get(&n->users, uid);

	u->budget_ns = -1000000000;
	u->budget_at_ns = clock_ns(CLOCK_MONOTONIC) + 3600000000000u;
}

TEST(user_whose_time_is_used_up_waits_until_some_is_back)
{
	as(MALLORY);
	spend(MALLORY);
	struct frame *waits = ask_honest(geteuid(), "mallorys");
	as(VICTOR);
	struct frame *f = ask_honest(geteuid(), "victors");
	while (f->state == FRAME_ASKED)
		namer_rig_step(&rig, 10);
	namer_rig_is_honest(f);
	ck_assert_int_eq(waits->state, FRAME_ASKED);
	ck_assert(!namer_idle(n));
	ck_assert_uint_eq(namer_deadline_ns(n), n->now_ns + NAMER_BUDGET_SHARE * 1000000000ull);
	naming_user_get(&n->users, MALLORY)->budget_ns = NAMER_BUDGET_NS;
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(waits);
}

TEST(what_was_used_up_comes_back_with_time)
{
	struct naming_user *u = naming_user_get(&n->users, MALLORY),
			   *other = naming_user_get(&n->users, VICTOR);

	naming_user_pay_parse(&n->users, u, 1, (uint64_t)NAMER_BUDGET_NS + 1, n->now_ns);
	ck_assert_int_eq(u->budget_ns, -1);
	ck_assert(naming_user_is_before(other, u, n->now_ns));
	ck_assert(!naming_user_is_before(u, other, n->now_ns));
	n->now_ns += NAMER_BUDGET_SHARE;
	u->parse_ns = 0;
	other->parse_ns = 1;
	ck_assert(naming_user_is_before(u, other, n->now_ns));
	n->now_ns += 1000000000000000u;
	naming_user_pay_parse(&n->users, u, 1, 0, n->now_ns);
	ck_assert_int_eq(u->budget_ns, NAMER_BUDGET_NS);
}

/* A hundredth of a CPU: a request that took 20 ms is followed by two seconds' rest, and one that took much more by
 * NAMER_REST_NS_MAX. */
TEST(files_are_named_at_a_pace)
{
	struct naming_user *u = naming_user_get(&n->users, VICTOR);

	namer_pace(n, 0.01);
	as(VICTOR);
	struct frame *first = ask_honest(geteuid(), "first");
	while (first->state == FRAME_ASKED)
		namer_rig_step(&rig, 10);
	ck_assert_uint_gt(n->users.rests_until_ns, 0);
	n->users.rests_until_ns = 0;
	naming_user_pay_parse(&n->users, u, 1, 20000000, n->now_ns);
	ck_assert_uint_eq(n->users.rests_until_ns, n->now_ns + 2000000000u);
	struct frame *f = ask_honest(geteuid(), "waits");
	for (int i = 0; i < 5; i++)
		namer_rig_step(&rig, 10);
	ck_assert_int_eq(f->state, FRAME_ASKED);
	ck_assert_uint_eq(namer_deadline_ns(n), n->users.rests_until_ns);
	naming_user_pay_parse(&n->users, u, 1, 20000000000u, n->now_ns);
	ck_assert_uint_eq(n->users.rests_until_ns, n->now_ns + NAMER_REST_NS_MAX);
	ck_assert(!namer_idle(n));
	namer_pace(n, 0);
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(f);
}

TEST(files_with_most_samples_are_named_first_at_a_pace)
{
	as(VICTOR);
	namer_pace(n, 0.5);
	n->users.rests_until_ns = UINT64_MAX;
	struct frame *seldom = ask_honest(geteuid(), "seldom");
	struct frame *often = ask_honest(geteuid(), "often");
	ck_assert_int_eq(namer_name(n, often, VICTOR), 0);
	for (int i = 0; i < 20 && n->users.n_queued[QUEUED_NAME] < 2; i++)
		namer_rig_step(&rig, 10);
	n->users.rests_until_ns = 0;
	ck_assert_ptr_eq(queue_next(n)->slot->file, often->file);
	namer_pace(n, 0);
	ck_assert_ptr_eq(queue_next(n)->slot->file, seldom->file);
	ck_assert(namer_rig_run(&rig));
}

TEST(what_users_other_than_root_took_of_the_parser_is_known)
{
	naming_user_pay_parse(&n->users, naming_user_get(&n->users, 0), 1, 100, n->now_ns);
	ck_assert_uint_eq(namer_users_ns(n), 0);
	naming_user_pay_parse(&n->users, naming_user_get(&n->users, 1000), 1, 20, n->now_ns);
	naming_user_pay_parse(&n->users, naming_user_get(&n->users, (uid_t)-1), 1, 3, n->now_ns);
	ck_assert_uint_eq(namer_users_ns(n), 23);
}

TEST(frame_that_waits_for_one_user_is_named_in_the_turn_of_another)
{
	as(MALLORY);
	spend(MALLORY);
	struct file *shared = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "shared");
	struct frame *waits = namer_rig_frame(&rig, shared, namer_rig_landmark() + 1);
	struct frame *wanted = namer_rig_frame(&rig, shared, namer_rig_landmark());
	for (int i = 0; i < 20; i++)
		namer_rig_step(&rig, 10);
	ck_assert_int_eq(wanted->state, FRAME_ASKED);
	ck_assert_int_eq(namer_hurry(n, wanted, MALLORY), 0);
	ck_assert_uint_eq(n->queues.n_entries, 2);
	ck_assert_int_eq(namer_hurry(n, wanted, VICTOR), 0);
	ck_assert_int_eq(namer_hurry(n, wanted, VICTOR), 0);
	ck_assert_uint_eq(n->queues.n_entries, 3);
	ck_assert_uint_eq(namer_waiting(n), 2);
	while (wanted->state == FRAME_ASKED)
		namer_rig_step(&rig, 10);
	namer_rig_is_honest(wanted);
	ck_assert_int_eq(waits->state, FRAME_ASKED);
	naming_user_get(&n->users, MALLORY)->budget_ns = NAMER_BUDGET_NS;
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(waits);
	ck_assert_uint_eq(n->queues.n_entries, 0);
	ck_assert_uint_eq(rig.n_named, 2);
	ck_assert_int_eq(namer_hurry(n, wanted, MALLORY), 0);
	ck_assert_uint_eq(n->queues.n_entries, 0);
}

TEST(file_that_waits_to_be_opened_for_one_user_is_opened_in_the_turn_of_another)
{
	struct file *shared = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "shared");
	struct naming_user *u = naming_user_get(&n->users, MALLORY);

	as(MALLORY);
	account_charge(&u->opens, 1, clock_ns(CLOCK_MONOTONIC));
	struct frame *f = namer_rig_frame(&rig, shared, namer_rig_landmark());
	while (n->opener.state != WORKER_IDLE || n->parser.state != WORKER_IDLE ||
		n->queues.changed)
		namer_rig_step(&rig, 10);
	ck_assert_int_eq(f->state, FRAME_ASKED);
	ck_assert_uint_eq(namer_deadline_ns(n), u->opens.until_ns);
	ck_assert_int_eq(namer_open(n, shared, VICTOR), 0);
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(f);
}

TEST(descriptors_that_wait_for_one_user_make_room_for_another)
{
	struct frame *f[NAMER_FILES_OPEN_MAX];

	as(MALLORY);
	spend(MALLORY);
	char original[128], name[32];
	snprintf(original, sizeof(original), "%s", namer_rig_copy(&rig, "/bin/true", "original"));
	for (uint32_t i = 0; i < NAMER_FILES_OPEN_MAX; i++) {
		snprintf(name, sizeof(name), "mallorys-%u", i);
		ck_assert_int_eq(link(original, namer_rig_path(&rig, name)), 0);
		struct file *file = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, name));
		ck_assert_int_eq(namer_open(n, file, MALLORY), 0);
		f[i] = namer_rig_frame(&rig, file, 0x1000);
	}
	while (n->slots.n_fds < NAMER_FILES_OPEN_MAX)
		namer_rig_step(&rig, 10);
	as(VICTOR);
	struct frame *victors = ask_honest(geteuid(), "victors");
	for (int i = 0; i < 3000 && victors->state == FRAME_ASKED; i++)
		namer_rig_step(&rig, 10);
	namer_rig_is_honest(victors);
	naming_user_get(&n->users, MALLORY)->budget_ns = NAMER_BUDGET_NS;
	ck_assert(namer_rig_run(&rig));
	for (uint32_t i = 0; i < NAMER_FILES_OPEN_MAX; i++)
		ck_assert_int_ne(f[i]->state, FRAME_ASKED);
}

/* As of the kernel, whose file is all users'. */
TEST(frame_that_two_users_take_from_each_other_is_waited_for_once)
{
	struct file *file = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	as(MALLORY);
	struct frame *frame = namer_rig_frame(&rig, file, namer_rig_landmark());
	naming_user_get(&n->users, MALLORY)->parse_ns = NAMER_CHARGE_MIN_NS;
	ck_assert_int_eq(namer_hurry(n, frame, VICTOR), 0);
	naming_user_get(&n->users, VICTOR)->parse_ns = 2 * NAMER_CHARGE_MIN_NS;
	ck_assert_int_eq(namer_hurry(n, frame, MALLORY), 0);
	ck_assert_uint_eq(n->queues.n_entries, 3);
	ck_assert_uint_eq(namer_waiting(n), 1);
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(frame);
	ck_assert_uint_eq(namer_waiting(n), 0);
	ck_assert_uint_eq(n->queues.n_entries, 0);
	ck_assert(namer_idle(n));
}

TEST(long_names_of_one_user_leave_room_for_those_of_another)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	as(MALLORY);
	naming_user_get(&n->users, MALLORY)->string_bytes = NAMER_STRINGS_BYTES_MAX;
	struct frame *frame = namer_rig_name(&rig, f, namer_rig_landmark());
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	as(VICTOR);
	namer_rig_is_honest(namer_rig_name(&rig, f, namer_rig_landmark() + 1));
	ck_assert_uint_gt(naming_user_find(&n->users, VICTOR)->string_bytes, 0);
	namer_sweep_names(n);
	ck_assert_uint_eq(naming_user_find(&n->users, MALLORY)->string_bytes, 0);
	ck_assert_uint_eq(naming_user_find(&n->users, VICTOR)->string_bytes, n->strings.bytes);
}

/* A parser that gets no CPU time is not over it; but it is not waited for without end. */
TEST(parser_that_gets_little_of_the_machine_has_some_longer)
{
	while (n->parser.state != WORKER_IDLE)
		namer_rig_step(&rig, 10);
	kill(n->parser.pid, SIGSTOP);
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	struct frame *f = ask_honest(geteuid(), "victors");
	while (n->parser.restarts == 0)
		namer_rig_step(&rig, 10);
	uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	ck_assert_uint_ge(took_ns, NAMER_WALL_TIMES * SPIN_NS);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FRAME_UNNAMED);
}

/* Mallory keeps all harts busy: what could run does not hang. */
TEST(worker_that_could_run_is_told_from_one_that_sleeps)
{
	struct worker w = {.pid = fork()};

	if (w.pid == 0)
		for (;;)
			continue;
	for (int i = 0; i < 1000 && !worker_is_runnable(&w); i++)
		usleep(1000);
	ck_assert(worker_is_runnable(&w));
	kill(w.pid, SIGSTOP);
	for (int i = 0; i < 1000 && worker_is_runnable(&w); i++)
		usleep(1000);
	ck_assert(!worker_is_runnable(&w));
	kill(w.pid, SIGKILL);
	waitpid(w.pid, NULL, 0);
	ck_assert(!worker_is_runnable(&w));
	ck_assert(!worker_is_runnable(&(struct worker){.pid = 0}));
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* Queue a stack of a 32-bit program: all of these go to the parser. */
static int unwind(uid_t uid, pid_t pid, const char *text, size_t n_stack)
{
	static uint8_t stack[65536];
	static uint64_t regs[9];
	static struct map map = {.start = 0x1000, .end = 0x2000};
	struct space space = {
		.n_users = 1, .map = &map, .n_maps = 1, .generation = 1000 + (uint64_t)pid};
	struct unwind_job job = {.space = &space,
		.pid = pid,
		.uid = uid,
		.regs_abi = 1,
		.regs_mask = 0x1ff,
		.regs = regs,
		.stack = stack,
		.n_stack = n_stack,
		.ticket = (void *)(uintptr_t)uid};

	memcpy(stack, text, 8);
	return namer_unwind(n, &job);
}

TEST(stacks_of_many_processes_that_end_the_parser_cost_their_user_all_stacks)
{
	enum { N_PROCESSES = NAMER_STACKS_USER_MAX + 4 };

	for (pid_t pid = 1; pid <= N_PROCESSES; pid++)
		ck_assert_int_eq(unwind(MALLORY, pid, "CRASHME!", 64), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, N_PROCESSES);
	ck_assert_uint_eq(status().parser.restarts, NAMER_STACKS_USER_MAX);
	ck_assert(account_is_refused(&naming_user_find(&n->users, MALLORY)->stacks, n->now_ns));
	ck_assert_str_eq(status().refused[0].what, "stacks");
	/* not even queued with what it holds */
	ck_assert_int_eq(unwind(MALLORY, 100, "harmless", 64), 0);
	ck_assert_uint_eq(naming_user_find(&n->users, MALLORY)->job_bytes, sizeof(struct job));
	/* of another user a process of the same number is another one */
	ck_assert_int_eq(unwind(VICTOR, 1, "harmless", 64), 0);
	ck_assert_uint_gt(naming_user_find(&n->users, VICTOR)->job_bytes, sizeof(struct job));
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(status().parser.restarts, NAMER_STACKS_USER_MAX);
	forgive();
	ck_assert_int_eq(unwind(MALLORY, 101, "harmless", 64), 0);
	ck_assert_uint_gt(naming_user_find(&n->users, MALLORY)->job_bytes, sizeof(struct job));
	ck_assert(namer_rig_run(&rig));
}

TEST(stack_that_a_poisoned_parser_dies_over_is_tried_in_the_next)
{
	if (skip_but_root("stack_that_a_poisoned_parser_dies_over_is_tried_in_the_next"))
		return;
	as(MALLORY);
	namer_rig_name(
		&rig, namer_rig_file_of(&rig, MALLORY, namer_rig_self(), NULL, "mallorys"), 0x10);
	ck_assert_int_eq(unwind(VICTOR, 1, "CRASHME!", 64), 0);
	ck_assert(namer_rig_run(&rig));
	/* once beside Mallory's file, once alone */
	ck_assert_uint_eq(status().parser.restarts, 2);
	ck_assert_uint_eq(status().n_deaths, 1);
	ck_assert_uint_eq(naming_user_find(&n->users, VICTOR)->stacks.deaths, 1);
}

TEST(stacks_of_one_user_leave_room_for_those_of_another)
{
	uint32_t taken = 0;

	while (unwind(MALLORY, 1, "harmless", 65536) == 0)
		taken++;
	ck_assert_uint_le(taken, NAMER_UNWIND_BYTES_MAX / 65536 / 2);
	for (uint32_t i = 0; i < taken / 4; i++)
		ck_assert_int_eq(unwind(VICTOR, 2, "harmless", 65536), 0);
	ck_assert_uint_le(n->unwinding.job_bytes, NAMER_UNWIND_BYTES_MAX);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(n->unwinding.job_bytes, 0);
	ck_assert_uint_eq(naming_user_find(&n->users, MALLORY)->job_bytes, 0);
}

static bool has_result_of(uid_t uid)
{
	for (uint32_t i = 0; i < NAMER_RIG_RESULTS_MAX; i++)
		if (rig.result[i].ticket == (void *)(uintptr_t)uid)
			return true;
	return false;
}

/* By time: the other's first question may take as long as many of the first user's. */
TEST(stacks_of_users_are_unwound_in_turns)
{
	uint64_t longest_ns = NAMER_CHARGE_MIN_NS;

	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(unwind(MALLORY, 1, "harmless", 64), 0);
	ck_assert_int_eq(unwind(VICTOR, 2, "harmless", 64), 0);
	const struct naming_user *mallory = naming_user_find(&n->users, MALLORY),
				 *victor = naming_user_find(&n->users, VICTOR);
	uint64_t mallory_ns = mallory->parse_ns, victor_ns = victor->parse_ns;
	while (!has_result_of(VICTOR)) {
		uint64_t before_ns = mallory->parse_ns;
		namer_rig_step(&rig, 10);
		if (mallory->parse_ns - before_ns > longest_ns)
			longest_ns = mallory->parse_ns - before_ns;
	}
	ck_assert_uint_le(
		mallory->parse_ns - mallory_ns, victor->parse_ns - victor_ns + 3 * longest_ns);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 61);
}
