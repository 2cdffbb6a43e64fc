/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/recording.c: its windows and its ends. The file is included, since what
 * happens when a window is full, or the disc, is decided in its static functions; those parts run
 * on a session made by hand, the rest on this machine's own kernel.
 */

#include "daemon/session/walk.h"

/* a walk made by hand has no station that could be asked */
static void check_owners_of(struct walk *w)
{
	if (w->inner)
		walk_check_owners(w);
}

#define walk_check_owners check_owners_of
#include "daemon/session/recording.c"
#include "daemon/session/recording_new.c"
#undef walk_check_owners

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct walk walk;
static struct recording *g;

/* --- by hand ---------------------------------------------------------------------------------- */

static void setup(void)
{
	stored_begin_clock(&s);
	s.sampler.lost = s.lost;
	s.sampler.machine.n_harts = STORED_HARTS;
	walk = (struct walk){.sampler = &s.sampler};
	g = calloc(1, sizeof(*g));
	ck_assert_ptr_nonnull(g);
	g->walk = &walk;
	g->segment = s.segment;
	g->targets.all = true;
	g->n_harts = STORED_HARTS;
	g->own = g->mine = calloc(STORED_HARTS, sizeof(*g->mine));
	g->lost = calloc(STORED_HARTS, sizeof(*g->lost));
	g->lost_then = calloc(STORED_HARTS, sizeof(*g->lost_then));
	ck_assert(g->own && g->lost && g->lost_then);
	g->window_ns = SECOND;
	g->window.start_ns = 10 * SECOND;
	g->tap.cut_ns = 11 * SECOND;
}

static void teardown(void)
{
	window_clear(&g->writing);
	window_clear(&g->window);
	stack_tree_clear(&g->stacks);
	free(g->lost);
	free(g->lost_then);
	free(g->mine);
	free(g);
	stored_end(&s);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

/* The tables as they are by now, which the walk would own. */
static void take_it(const struct attribution *a)
{
	walk.tasks = s.tasks;
	walk.files = s.files;
	take(g, a);
}

static struct attribution attribution(struct task *task, uint64_t time_ns)
{
	return (struct attribution){
		.task = task, .time_ns = time_ns, .hart = 1, .count = 1, .weight_ns = 7};
}

/* As if WINDOW_ROWS_MAX different things had run. */
static void fill_window(void)
{
	g->window.n_rows = WINDOW_ROWS_MAX;
}

TEST(a_full_window_is_stored_early_and_the_sample_is_kept)
{
	struct task *task = stored_task(&s, 10, 10, "prog");
	struct attribution a = attribution(task, 10 * SECOND + 5);

	take_it(&a);
	fill_window();
	a = attribution(stored_task(&s, 11, 11, "other"), 10 * SECOND + 7);
	take_it(&a);
	ck_assert_int_eq(g->trouble, 0);
	ck_assert_uint_eq(g->n_samples, 2);
	ck_assert_uint_eq(g->window.start_ns, 10 * SECOND + 7);
	ck_assert_uint_eq(g->window.n_samples, 1);
	/* a sample that waited for its stack does not make a window that ends before it began */
	fill_window();
	a = attribution(task, 10 * SECOND);
	take_it(&a);
	ck_assert_uint_eq(g->window.start_ns, 10 * SECOND + 7);
	ck_assert_uint_eq(g->n_samples, 3);
}

TEST(what_is_anothers_when_it_is_written_is_left_out)
{
	struct task *mine = stored_task(&s, 10, 10, "mine"), *was = stored_task(&s, 11, 11, "was");

	g->targets.only_uid = true;
	g->targets.uid = mine->uid = was->uid = 1000;
	g->targets.gid = mine->gid = was->gid = 50;
	struct attribution a = attribution(mine, 10 * SECOND + 5),
			   b = attribution(was, 10 * SECOND);
	take_it(&a);
	take_it(&b);
	b.task = stored_task(&s, 12, 12, "group");
	b.task->uid = 1000;
	b.task->gid = 51;
	take_it(&b);
	ck_assert_uint_eq(g->n_samples, 2);
	was->uid = 0; /* by a call, and the window is still in hand */
	ck_assert_int_eq(flush(g, 11 * SECOND), 0);
	ck_assert_int_eq(stored_number(g->segment->db, "SELECT count(*) FROM sample"), 1);
	ck_assert_int_eq(stored_number(g->segment->db, "SELECT count(*) FROM task"), 1);
	ck_assert_str_eq(stored_string(g->segment->db, "SELECT comm FROM task"), "mine");
	/* one that is in the file already is not reported again */
	mine->uid = 0;
	task_set_comm(mine, "secret");
	ck_assert_int_eq(flush(g, 12 * SECOND), 0);
	ck_assert_str_eq(stored_string(g->segment->db, "SELECT comm FROM task"), "mine");
}

/* A database that may not grow: to SQLite's users a disc that is full. */
static void fill_disc(void)
{
	sqlite3_exec(g->segment->db, "PRAGMA max_page_count=1", NULL, NULL, NULL);
}

static void empty_disc(void)
{
	sqlite3_exec(g->segment->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL);
}

/* A sample whose name takes some pages. */
static void take_long_name(struct task *task)
{
	static char name[20000];

	memset(name, 'n', sizeof(name) - 1);
	struct frame *frame = stored_function(&s, "/bin/prog", name);
	struct attribution a = attribution(task, 10 * SECOND + 5);
	a.frame = &frame;
	a.n_frames = 1;
	take_it(&a);
	ck_assert_uint_eq(g->n_samples, 1);
}

TEST(a_window_that_finds_no_space_is_counted_so_and_ends_the_recording)
{
	take_long_name(stored_task(&s, 10, 10, "prog"));
	fill_window();
	struct attribution a = attribution(stored_task(&s, 11, 11, "other"), 10 * SECOND + 7);
	fill_disc();
	take_it(&a);
	empty_disc();
	take_it(&a); /* also when there is room again: the session has a hole by now */
	ck_assert_int_eq(g->trouble, RECORDING_LOST_STORE);
	ck_assert_uint_eq(g->own[1][LOSS_STORE], 3);
	ck_assert_uint_eq(g->own[1][LOSS_MEMORY], 0);
	ck_assert_uint_eq(g->n_samples, 3); /* taken in, and counted among the lost */
	ck_assert_int_eq(recording_dispatch(g, 10 * SECOND + 8), RECORDING_LOST_STORE);
}

TEST(a_window_is_stored_when_it_is_cut)
{
	struct task *task = stored_task(&s, 10, 10, "prog");
	for (int i = 0; i < 5; i++) {
		struct attribution a = attribution(task, (10 + (uint64_t)i) * SECOND + 5);
		take_it(&a);
		ck_assert_int_eq(cut(g, (11 + (uint64_t)i) * SECOND), 0);
		ck_assert_uint_eq(g->tap.cut_ns, (12 + (uint64_t)i) * SECOND);
		ck_assert_uint_eq(g->n_stored, (uint64_t)i + 1);
		ck_assert_uint_eq(g->window.n_samples, 0);
	}
	ck_assert_int_eq(segment_seal(g->segment, 16 * SECOND), 0);
	s.segment = NULL;
	sqlite3 *db;
	struct segment_error error;
	ck_assert_int_eq(segment_open(s.path, &db, &error), 0);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM window"), 5);
	ck_assert_int_eq(
		stored_number(db, "SELECT max(end_ns - start_ns) FROM window"), (int64_t)SECOND);
	sqlite3_close(db);
}

TEST(what_was_given_up_meanwhile_is_in_the_file_once)
{
	static const char *const said[] = {"", "first", "first", "second", ""};
	hart_set_add(&s.sampler.seen, 0);
	for (uint64_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		recording_note(g, said[i]);
		ck_assert_int_eq(cut(g, (11 + i) * SECOND), 0);
	}
	ck_assert_int_eq(segment_seal(g->segment, 16 * SECOND), 0);
	s.segment = NULL;
	sqlite3 *db;
	struct segment_error error;
	ck_assert_int_eq(segment_open(s.path, &db, &error), 0);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM meta WHERE key LIKE 'note:%'"), 2);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM meta WHERE key IN "
					   "('note:0:0:first', 'note:0:0:second')"),
		2);
	sqlite3_close(db);
}

/* A window of more rows than one turn writes, each of a task of its own; it is cut. */
static void cut_large_window(void)
{
	uint64_t start_ns = g->window.start_ns, n_stored = g->n_stored;
	for (pid_t pid = 10; pid < 10 + RECORDING_STEP_ROWS; pid++) {
		struct attribution a = attribution(stored_task(&s, pid, pid, "prog"), start_ns + 5);
		take_it(&a);
	}
	ck_assert_int_eq(cut(g, start_ns + SECOND), 0);
	ck_assert(recording_is_writing(g));
	ck_assert_uint_eq(g->n_stored, n_stored);
	ck_assert_uint_eq(recording_deadline_ns(g), 0);
}

/* What is taken meanwhile is in the next window. */
static void take_another(void)
{
	struct attribution a = attribution(stored_task(&s, 9, 9, "next"), 11 * SECOND + 5);
	take_it(&a);
}

TEST(a_large_window_is_stored_in_several_turns)
{
	cut_large_window();
	take_another();
	for (int turns = 0; recording_is_writing(g); turns++) {
		uint64_t n_run = g->segment->n_run;
		ck_assert_int_lt(turns, 10);
		ck_assert_int_eq(recording_dispatch(g, 11 * SECOND), 0);
		ck_assert_uint_le(g->segment->n_run - n_run, RECORDING_STEP_ROWS + 10);
	}
	ck_assert_uint_eq(g->n_stored, RECORDING_STEP_ROWS);
	ck_assert_uint_eq(g->window.n_samples, 1);
	ck_assert_int_eq(cut(g, 12 * SECOND), 0);
	ck_assert(!recording_is_writing(g));
	ck_assert_uint_eq(g->n_stored, RECORDING_STEP_ROWS + 1);
	ck_assert_int_eq(
		stored_number(g->segment->db, "SELECT sum(count) FROM sample WHERE window = 1"),
		RECORDING_STEP_ROWS);
	ck_assert_int_eq(
		stored_number(g->segment->db, "SELECT sum(count) FROM sample WHERE window = 2"), 1);
	ck_assert_int_eq(stored_number(g->segment->db, "SELECT count(*) FROM task"),
		RECORDING_STEP_ROWS + 1);
}

TEST(a_window_that_is_being_written_is_finished_before_the_next_and_before_an_update)
{
	cut_large_window();
	take_another();
	ck_assert_int_eq(cut(g, 12 * SECOND), 0);
	ck_assert_uint_ge(g->n_stored, RECORDING_STEP_ROWS);
	cut_large_window();
	ck_assert_int_eq(update(g), 0);
	ck_assert(!recording_is_writing(g));
	ck_assert_uint_eq(g->n_stored, 2 * RECORDING_STEP_ROWS + 1);
}

TEST(a_disc_that_is_full_halfway_loses_both_windows_and_none_of_the_counts)
{
	cut_large_window();
	take_another();
	fill_disc();
	int r = 0;
	while (r == 0 && recording_is_writing(g))
		r = recording_dispatch(g, 11 * SECOND);
	empty_disc();
	ck_assert_int_eq(r, RECORDING_LOST_STORE);
	ck_assert_uint_eq(g->n_stored, 0);
	ck_assert_uint_eq(g->own[1][LOSS_STORE], RECORDING_STEP_ROWS + 1);
	ck_assert_int_eq(stored_number(g->segment->db, "SELECT count(*) FROM sample"), 0);
}

TEST(a_window_that_was_stored_early_is_not_cut_again)
{
	g->window.start_ns = 11 * SECOND + 3;
	ck_assert_int_eq(cut(g, 11 * SECOND), 0);
	ck_assert_uint_eq(g->window.start_ns, 11 * SECOND + 3);
	ck_assert_uint_eq(g->tap.cut_ns, 12 * SECOND + 3);
}

TEST(a_window_that_is_cut_and_finds_no_space_is_counted_by_hart)
{
	take_long_name(stored_task(&s, 10, 10, "prog"));
	fill_disc();
	int r = cut(g, 12 * SECOND);
	empty_disc();
	ck_assert_int_eq(r, 0); /* the daemon goes on */
	ck_assert_int_eq(g->trouble, RECORDING_LOST_STORE);
	ck_assert_uint_eq(g->own[1][LOSS_STORE], 1);
	ck_assert_uint_eq(g->n_stored, 0);
	ck_assert_uint_eq(g->window.n_samples, 0);
}

TEST(what_the_store_says_no_to_does_not_end_the_daemon)
{
	struct namer idle = {.frames.n_waiting = 0};
	walk.namer = &idle;
	/* whatever it is: no file, no rights, a disc that breaks */
	static const int outcomes[] = {SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, SEGMENT_HELD,
		SEGMENT_CORRUPT, -EIO, -EACCES, -ENOENT};
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
		struct recording_state state;
		store_failed(g, outcomes[i]);
		ck_assert_int_eq(cut(g, 12 * SECOND), 0);
		ck_assert_int_eq(recording_dispatch(g, 12 * SECOND), RECORDING_LOST_STORE);
		recording_state(g, &state);
		ck_assert_int_eq(state.outcome, outcomes[i]);
		g->trouble = 0;
	}
	store_failed(g, -ENOMEM);
	ck_assert_int_eq(cut(g, 12 * SECOND), 0); /* the walk goes on to its end */
	ck_assert_int_eq(recording_dispatch(g, 12 * SECOND), -ENOMEM);
}

TEST(what_is_in_hand_when_it_is_freed_is_counted_lost)
{
	uint64_t lost[STORED_HARTS][N_LOSSES] = {{0}};
	struct recording *freed = calloc(1, sizeof(*freed));
	ck_assert_ptr_nonnull(freed);
	*freed = (struct recording){.walk = &walk, .n_harts = STORED_HARTS, .own = lost};
	struct attribution a = attribution(stored_task(&s, 10, 10, "prog"), 10 * SECOND + 5);
	a.count = 3;
	ck_assert_int_eq(window_add(&freed->window, &freed->stacks, &a), 0);
	lose_windows(freed);
	ck_assert_uint_eq(lost[1][LOSS_STORE], 3);
	lose_windows(freed);
	ck_assert_uint_eq(lost[1][LOSS_STORE], 3);
	stack_tree_clear(&freed->stacks);
	free(freed);
}

TEST(a_recording_of_some_does_not_tell_what_others_lost)
{
	g->shared = true;
	g->targets = (struct targets){.pid = {10}, .n_pids = 1, .since_ns = 10 * SECOND};
	s.lost[1][LOSS_ARGV] = 1000;
	s.lost[1][LOSS_STACK_TRUNCATED] = 200;
	s.lost[1][LOSS_RING] = 7; /* whose they were nobody knows */
	struct attribution a = attribution(stored_task(&s, 10, 10, "prog"), 10 * SECOND + 5);
	a.truncated = true;
	take_it(&a);
	a = attribution(stored_task(&s, 11, 11, "other"), 10 * SECOND + 6);
	a.truncated = true;
	take_it(&a);
	recording_sum_losses(g);
	ck_assert_uint_eq(g->lost[1][LOSS_ARGV], 0);
	ck_assert_uint_eq(g->lost[1][LOSS_STACK_TRUNCATED], 1);
	ck_assert_uint_eq(g->lost[1][LOSS_RING], 7);
	g->targets = (struct targets){.all = true};
	recording_sum_losses(g);
	ck_assert_uint_eq(g->lost[1][LOSS_ARGV], 1000);
}

TEST(what_the_walk_loses_after_the_end_is_not_told)
{
	uint64_t recorded[STORED_HARTS][N_LOSSES] = {{0}};
	g->shared = true;
	g->recorded = recorded;
	s.lost[1][LOSS_RING] = 7;
	ck_assert_int_eq(cut(g, 12 * SECOND), 0);
	ck_assert_uint_eq(recorded[1][LOSS_RING], 7);
	s.lost[1][LOSS_RING] = 9;
	recording_sum_losses(g);
	g->finish_ns = 13 * SECOND;
	s.lost[1][LOSS_RING] = 50;
	ck_assert_int_eq(flush_or_lose(g, 13 * SECOND), 0);
	ck_assert_uint_eq(recorded[1][LOSS_RING], 9);
}

TEST(frames_of_the_kernel_become_one_without_an_address)
{
	struct frame *user = stored_function(&s, "/bin/prog", "work");
	struct file_key key = {.kind = FILE_KERNEL, .path = "[kernel]"};
	struct file *kernel;
	struct frame *inner_frame, *outer_frame, *hidden, *seen[STACK_FRAMES_MAX];
	ck_assert_int_eq(file_get(&s.files, &key, &kernel), 0);
	ck_assert_int_eq(frame_get(&s.files, kernel, 0x100, &inner_frame), 0);
	ck_assert_int_eq(frame_get(&s.files, kernel, 0x200, &outer_frame), 0);
	ck_assert_int_eq(frame_get(&s.files, kernel, 0, &hidden), 0);
	g->hidden = hidden;
	struct frame *stack[] = {inner_frame, outer_frame, user};
	struct attribution a = {.frame = stack, .n_frames = 3};
	recording_choose_frames(g, &a, seen);
	ck_assert_uint_eq(a.n_frames, 2);
	ck_assert_ptr_eq(a.frame[0], hidden);
	ck_assert_ptr_eq(a.frame[1], user);
}

/* --- names ------------------------------------------------------------------------------------ */

static struct namer busy;

/* A recording that was told to finish at 20 s, and has two frames that are still to be named. */
static void end_with_names_to_come(struct frame *asked[2])
{
	struct task *task = stored_task(&s, 10, 10, "prog");

	for (uint64_t i = 0; i < 2; i++) {
		struct attribution a = attribution(task, 10 * SECOND + 5);
		asked[i] = stored_frame(&s, FILE_ELF, "/bin/prog", 0x1000 * (i + 1));
		asked[i]->state = FRAME_ASKED;
		a.frame = &asked[i];
		a.n_frames = 1;
		take_it(&a);
	}
	ck_assert_int_eq(cut(g, 11 * SECOND), 0);
	busy = (struct namer){.frames.n_waiting = 5}; /* three are others' */
	walk.namer = &busy;
	g->shared = true;
	g->stall_ns = 25 * SECOND;
	g->finish_ns = (20 + 120) * SECOND;
	g->stalled_ns = (20 + 25) * SECOND;
	g->has_callers = true;
	ck_assert(waits_for_names(g, 20 * SECOND));
}

TEST(names_that_come_are_waited_for)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	/* the kernel's symbols take the parser 24 s, in which it names nothing */
	ck_assert(waits_for_names(g, 44 * SECOND));
	asked[0]->state = FRAME_UNNAMED; /* that is an answer too */
	ck_assert(waits_for_names(g, 44 * SECOND + 1));
	ck_assert_uint_eq(recording_deadline_ns(g), 69 * SECOND + 1);
	busy.frames.n_named++; /* another's, before ours in the queue */
	ck_assert(waits_for_names(g, 68 * SECOND));
	ck_assert(waits_for_names(g, 92 * SECOND));
	asked[1]->state = FRAME_NAMED;
	ck_assert(!waits_for_names(g, 92 * SECOND + 1));
}

TEST(names_that_come_no_more_are_not_waited_for)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	ck_assert(waits_for_names(g, 45 * SECOND - 1));
	ck_assert(!waits_for_names(g, 45 * SECOND));
}

TEST(more_frames_to_be_named_are_no_names)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	busy.frames.n_waiting += 1000; /* the walk is shared, and goes on */
	ck_assert(waits_for_names(g, 30 * SECOND));
	busy.frames.n_waiting -= 100;
	ck_assert(!waits_for_names(g, 46 * SECOND));
}

TEST(names_are_not_waited_for_beyond_the_limit)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	for (uint64_t at = 21; at < 140; at++) {
		busy.frames.n_named++;
		ck_assert(waits_for_names(g, at * SECOND));
	}
	busy.frames.n_named++;
	ck_assert_uint_eq(recording_deadline_ns(g), 140 * SECOND);
	ck_assert(!waits_for_names(g, 140 * SECOND));
}

TEST(names_of_others_alone_are_not_waited_for)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	asked[0]->state = asked[1]->state = FRAME_NAMED;
	ck_assert(!waits_for_names(g, 21 * SECOND));
}

/* Of generated code that nothing describes; others keep the namer busy, and get their names. */
TEST(names_that_may_come_late_are_not_waited_for)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	asked[0]->asker = FRAME_LATE;
	busy.frames.n_named++;
	ck_assert(waits_for_names(g, 21 * SECOND));
	asked[1]->asker = FRAME_LATE;
	busy.frames.n_named++;
	ck_assert(!waits_for_names(g, 22 * SECOND));
}

TEST(an_idle_namer_is_not_waited_for)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	busy.frames.n_waiting = 0;
	ck_assert(!waits_for_names(g, 21 * SECOND));
}

/* Nothing else wakes the recording then. */
TEST(names_that_came_while_a_window_was_written_are_acted_on_at_once)
{
	struct frame *asked[2];

	end_with_names_to_come(asked);
	ck_assert_uint_eq(recording_deadline_ns(g), 45 * SECOND);
	busy.frames.n_waiting = 0;
	ck_assert_uint_eq(recording_deadline_ns(g), 0);
}

/* --- targets ---------------------------------------------------------------------------------- */

static struct recording watched;
static struct event_error error;

static void *thread_main(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	struct timespec long_enough = {.tv_nsec = 200000000};
	nanosleep(&long_enough, NULL);
	return NULL;
}

TEST(a_thread_that_leads_no_process_is_no_target, .bare = true)
{
	volatile pid_t tid = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, thread_main, (void *)&tid), 0);
	while (!tid)
		usleep(1000);
	pid_t pid = tid;
	char said[64];
	watched.targets.pid[0] = pid;
	watched.targets.n_pids = 1;
	int r = watch_targets(&watched, &error);
	pthread_join(thread, NULL);
	snprintf(said, sizeof(said), "there is no process with pid %d", (int)pid);
	ck_assert_int_eq(r, RECORDING_GONE);
	ck_assert_str_eq(error.text, said);
}

TEST(pids_of_nobody_are_no_targets, .bare = true)
{
	static const pid_t nobody[] = {0x7fffffff, 0, -1};

	for (size_t i = 0; i < sizeof(nobody) / sizeof(*nobody); i++) {
		watched.targets.pid[0] = nobody[i];
		watched.targets.n_pids = 1;
		ck_assert_int_eq(watch_targets(&watched, &error), RECORDING_GONE);
	}
	ck_assert_uint_eq(watched.n_pidfds, 0);
}

TEST(a_target_that_lives_is_watched, .bare = true)
{
	pid_t pid = getpid();

	watched.targets.pid[0] = pid;
	watched.targets.n_pids = 1;
	ck_assert_int_eq(watch_targets(&watched, &error), 0);
	ck_assert_uint_eq(watched.n_pidfds, 1);
	ck_assert(!recording_targets_gone(&watched));
	close(watched.pidfd[0]);
}
