/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/pinner*.c and pin_*.c: what is pinned, what takes whose place, and what a child leaves
 * when it is killed or its disc fails. */

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "tests/unit/daemon/jobs/pinner_rig.inc"
#include "tests/unit/faulty_disc.h"
#include "tests/unit/test.h"

/* Of reads that fail: fewer than it takes to read a pin back. */
#ifdef __SANITIZE_ADDRESS__
#define STEP 9
#else
#define STEP 3
#endif

EACH_TEST(.begin = begin, .end = end, .seconds = 300);

static void open_again(void)
{
	struct store_error error;
	p = pinner_free(p);
	s = store_free(s);
	ck_assert_int_eq(store_open(folder, &s, &error), 0);
	const struct pinner_options o = {.store = s, .tasks = &tasks, .say = say};
	ck_assert_int_eq(pinner_new(&o, &p), 0);
	p->limits = (struct pin_limits){ROOMY, ROOMY, ROOMY};
}

static size_t n_of_folder(void)
{
	char command[256];
	unsigned n = 0;
	snprintf(command, sizeof(command), "ls -A %s/pinned | wc -l", folder);
	FILE *f = popen(command, "r");
	ck_assert(f && fscanf(f, "%u", &n) == 1);
	pclose(f);
	return n;
}

TEST(jobs_that_have_ended_are_pinned)
{
	uint64_t id;
	const struct pin_report *r = asked("branch=main", 0, &id);
	ck_assert_msg(r->outcome == PIN_WELL, "%s", r->text);
	ck_assert_uint_eq(r->n_jobs, RUNS);
	ck_assert_uint_eq(s->n_pins, RUNS);
	for (int i = 0; i < RUNS; i++) {
		ck_assert_int_eq(r->job[i].state, PIN_MADE);
		ck_assert_str_eq(r->job[i].name, s->pin[i].name);
		ck_assert_str_eq(s->pin[i].labels, labels_of(i + 1));
	}
	pinner_forget(p, id);
	r = asked("branch=main", 0, &id);
	ck_assert(r->n_jobs == RUNS && r->job[0].state == PIN_KNOWN);
}

TEST(a_child_that_is_killed_leaves_pins_that_are_listed_or_none)
{
	uint64_t id;
	size_t n_pins = 0, n_named = 0;
	bool killed = true;
	for (int n = 0; killed; n += STEP) {
		faulty_disc_kill_child(n);
		const struct pin_report *r = asked("branch=main", 0, &id);
		faulty_disc_work();
		killed = r->outcome == PIN_FAILED;
		n_pins = s->n_pins;
		ck_assert_msg(n_of_folder() == n_pins, "killed in read %d: %zu files, %zu pins", n,
			n_of_folder(), n_pins);
		/* what is there has been said, and no more */
		n_named = 0;
		for (uint32_t i = 0; i < r->n_jobs; i++)
			n_named += store_pin_find(s, r->job[i].name) < s->n_pins;
		ck_assert_uint_eq(n_named, r->n_jobs);
		ck_assert_uint_eq(n_named, n_pins);
		open_again();
		ck_assert_uint_eq(s->n_pins, n_pins);
		while (s->n_pins > 0)
			ck_assert_int_eq(store_pin_remove(s, 0), 0);
	}
	ck_assert_uint_eq(n_pins, RUNS);
}

TEST(a_disc_that_fails_while_jobs_are_pinned_costs_no_pin_that_was_made)
{
	uint64_t id;
	size_t n_well = 0, n_made = 0;
	/* reading back one pin takes some twenty reads; when it has been well for longer, no child reads as often */
	for (int n = 0; n_well < 60 / STEP; n += STEP) {
		faulty_disc_fail(n, 1, SQLITE_IOERR_READ);
		const struct pin_report *r = asked("branch=main", 0, &id);
		faulty_disc_work();
		n_well = r->outcome == PIN_WELL ? n_well + 1 : 0;
		const size_t n_pinned = r->n_jobs;
		n_made += r->outcome == PIN_FAILED ? n_pinned : 0;
		ck_assert(r->outcome == PIN_WELL || r->outcome == PIN_FAILED);
		ck_assert_msg(r->outcome == PIN_FAILED || n_pinned == RUNS, "%zu in read %d",
			n_pinned, n);
		s->again_ns = 0;
		ck_assert_int_eq(store_measure(s), 0);
		ck_assert_uint_eq(s->n_corrupt, 0);
		ck_assert_uint_eq(s->n_pins, n_pinned);
		ck_assert_uint_eq(n_of_folder(), n_pinned);
		while (s->n_pins > 0)
			ck_assert_int_eq(store_pin_remove(s, 0), 0);
		pinner_forget(p, id);
	}
	ck_assert_uint_gt(n_made, 5); /* those before one that failed stay */
}

static void do_(const char *command)
{
	ck_assert_msg(setenv("store", folder, 1) == 0 && setenv("made", made.folder, 1) == 0 &&
			      system(command) == 0,
		"%s", command);
}

/* The store, on a disc of its own that only this process sees. False: none may be mounted. */
static bool move_to_small_disc(void)
{
	char command[256], name[STORE_NAME_BYTES];
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	p = pinner_free(p);
	s = store_free(s);
	do_("mv $store/window/* $made/moved && rm -r $store && mkdir $store");
	if (mount("tmpfs", folder, "tmpfs", 0, "size=8m") < 0)
		return false;
	store_name(name, TIER_WINDOW, (int64_t)made.realtime_ns, STORED_BOOT, 1);
	snprintf(command, sizeof(command), "mkdir $store/window && mv $made/moved $store/%s", name);
	do_(command);
	struct store_error error;
	ck_assert_int_eq(store_open(folder, &s, &error), 0);
	const struct pinner_options o = {.store = s, .tasks = &tasks, .say = say};
	ck_assert_int_eq(pinner_new(&o, &p), 0);
	return true;
}

TEST(two_requests_together_leave_min_free)
{
	uint64_t id;
	struct statvfs fs;
	if (!move_to_small_disc()) {
		printf("SKIP two_requests_together_leave_min_free: may not mount a tmpfs\n");
		return;
	}
	p->limits = (struct pin_limits){ROOMY, ROOMY, ROOMY, 0};
	ck_assert_int_eq(asked("run=1", 0, &id)->outcome, PIN_WELL);
	ck_assert_int_eq(statvfs(folder, &fs), 0);
	/* for one and a half, as the keeper saw it a moment ago */
	const uint64_t left = fs.f_bavail * fs.f_frsize, room = s->pin[0].bytes * 3 / 2;
	p->limits = (struct pin_limits){ROOMY, ROOMY, room, left - room};
	ck_assert_int_eq(asked("run=2", 0, &id)->outcome, PIN_WELL);
	const struct pin_report *r = asked("run=3", 0, &id);
	ck_assert_msg(r->outcome == PIN_FULL, "%d %s", r->outcome, r->text);
	ck_assert_ptr_nonnull(strstr(r->text, "left above min-free"));
	ck_assert_int_eq(statvfs(folder, &fs), 0);
	ck_assert_uint_ge(fs.f_bavail * fs.f_frsize, left - room);
	p = pinner_free(p);
	s = store_free(s);
	ck_assert_int_eq(umount(folder), 0);
}

/* As if all were pinned before their jobs ended: they are pinned again. */
static void age_pins(void)
{
	for (size_t i = 0; i < s->n_pins; i++)
		s->pin[i].pinned_ns = 1;
}

TEST(a_new_pin_takes_the_place_of_those_of_its_user_and_job_alone)
{
	uint64_t id;
	struct pin_ask ask = ask_for("branch=main", 0);
	ask.all_users = true;
	for (int again = 0; again < 2; again++, age_pins()) {
		ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
		turn();
		const struct pin_report *r = pinner_report(p, id);
		ck_assert(r && r->outcome == PIN_WELL && r->n_jobs == RUNS + 1);
		ck_assert_uint_eq(s->n_pins, RUNS + 1);
		pinner_forget(p, id);
	}
	/* another user's pin of the same job */
	ask.by = 1002;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	turn();
	ck_assert_uint_eq(s->n_pins, 2 * (RUNS + 1));
}

TEST(what_is_kept_until_it_is_unpinned_is_not_replaced_by_what_goes)
{
	uint64_t id;
	ck_assert_int_eq(asked("run=1", 2, &id)->job[0].state, PIN_MADE);
	/* known, but it goes with the next runs */
	ck_assert_int_eq(asked("run=1", 0, &id)->job[0].state, PIN_MADE);
	ck_assert(s->n_pins == 1 && s->pin[0].keep == 0);
	ck_assert_int_eq(asked("run=1", 2, &id)->job[0].state, PIN_KNOWN);
	age_pins();
	ck_assert_int_eq(asked("run=1", 2, &id)->job[0].state, PIN_MADE);
	ck_assert_uint_eq(s->n_pins, 2);
}

TEST(of_a_group_the_latest_are_pinned_and_kept)
{
	uint64_t id;
	const struct pin_report *r = asked("branch=main", 2, &id);
	ck_assert(r->outcome == PIN_WELL && r->n_jobs == 2 && s->n_pins == 2);
	ck_assert_str_eq(s->pin[0].labels, labels_of(2));
	/* no more are pinned than are kept */
	while (s->n_pins > 0)
		ck_assert_int_eq(store_pin_remove(s, 0), 0);
	struct pin_ask ask = ask_for("branch=main", 1);
	ask.last = 2;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	turn();
	ck_assert(pinner_report(p, id)->n_jobs == 1 && s->n_pins == 1);
	/* one that runs is the latest */
	run_job(4, 1000);
	while (s->n_pins > 0)
		ck_assert_int_eq(store_pin_remove(s, 0), 0);
	r = asked("branch=main", 2, &id);
	ck_assert(r->n_jobs == 2 && r->job[0].state == PIN_RUNS && s->n_pins == 1);
	ck_assert_str_eq(s->pin[0].labels, labels_of(3));
}

TEST(a_request_that_nobody_waits_for_any_more_ends_well)
{
	uint64_t id;
	struct pollfd fd;
	const struct pin_ask ask = ask_for("branch=main", 0);
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	pinner_forget(p, id);
	ck_assert(!pinner_has(p, id) && n_others() == 0);
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	ck_assert_uint_eq(pinner_fds(p, &fd, 1), 1);
	/* unpinning does not stop it either */
	pinner_forget(p, id);
	(void)unpin(1000, "branch=main");
	turn();
	ck_assert(s->n_pins == RUNS && n_others() == 0 && n_said == 0);
	/* nor one of a rule */
	pinner_set_rules(p, "branch=main,keep=9");
	task_end(&tasks, run_job(1, 1001), now_ns);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert_int_eq(pinner_dispatch(p, now_ns, true), 0);
	ck_assert_uint_eq(pinner_fds(p, &fd, 1), 1);
	ck_assert_uint_eq(unpin(1001, "branch=main"), 0);
	turn();
	ck_assert(s->n_pins == RUNS + 1 && n_others() == 0);
}

TEST(without_room_nothing_is_written_and_it_is_said_why)
{
	uint64_t id;
	p->limits = (struct pin_limits){ROOMY, STORE_PIN_BYTES_MIN - 1, ROOMY, 0};
	const struct pin_report *r = asked("run=1", 0, &id);
	ck_assert(r->outcome == PIN_FULL && s->n_pins == 0 && n_of_folder() == 0);
	ck_assert_ptr_nonnull(strstr(r->text, "user 1000 has 38 KB left of 38 KB"));
	/* the first has just room, and the second has none */
	p->limits = (struct pin_limits){STORE_PIN_BYTES_MIN, ROOMY, ROOMY, 0};
	r = asked("branch=main", 0, &id);
	ck_assert(r->outcome == PIN_FULL && r->n_jobs == 1 && s->n_pins == 1 && n_of_folder() == 1);
	ck_assert_ptr_nonnull(strstr(r->text, "run=2 is not pinned: 0 KB are left of 39 KB"));
	ck_assert_uint_le(s->pin[0].bytes, STORE_PIN_BYTES_MIN + TRAILER_BYTES);
}

/* The same jobs an hour later, after another boot. */
static void add_boot(void)
{
	char name[STORE_NAME_BYTES], path[300], command[700];
	sqlite3 *db;
	const uint64_t hour = 3600 * SECOND;
	store_name(name, TIER_WINDOW, (int64_t)(made.realtime_ns + hour), "22222222", 1);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(command, sizeof(command), "cp %s %s", made.path, path);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_exec(db,
			"UPDATE window SET realtime_ns = realtime_ns + 3600000000000; "
			"UPDATE meta SET value = value + 3600000000000 WHERE key = 'realtime_ns'; "
			"UPDATE meta SET value = '22222222' || substr(value, 9) WHERE key = "
			"'boot_id'",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(path), 0);
	open_again();
	ck_assert_uint_eq(s->n_files, 2);
}

TEST(labels_of_an_earlier_boot_are_another_run)
{
	uint64_t id;
	add_boot();
	const struct pin_report *r = asked("run=1", 0, &id);
	ck_assert_msg(r->outcome == PIN_WELL && r->n_jobs == 1, "%s", r->text);
	const struct store_pin *pin = &s->pin[0];
	ck_assert_int_eq(pin->start_ns, (int64_t)(made.realtime_ns + 3610 * SECOND));
	ck_assert_int_eq(pin->end_ns, (int64_t)(made.realtime_ns + 3620 * SECOND));
	ck_assert_ptr_nonnull(strstr(pin->name, "-22222222"));
}

/* As if that file was on a bad sector: ELOOP. */
static void break_file(size_t i, bool broken)
{
	char path[300], moved[310];
	snprintf(path, sizeof(path), "%s/%s", folder, s->file[i].name);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	if (broken)
		ck_assert(rename(path, moved) == 0 && symlink(path, path) == 0);
	else
		ck_assert(unlink(path) == 0 && rename(moved, path) == 0);
}

TEST(a_file_that_cannot_be_read_fails_the_jobs_of_its_time_alone)
{
	uint64_t id;
	add_boot();
	break_file(0, true);
	const struct pin_report *r = asked("run=1", 0, &id);
	ck_assert_msg(r->outcome == PIN_WELL && s->n_pins == 1, "%s", r->text);
	break_file(0, false);
	ck_assert_int_eq(store_pin_remove(s, 0), 0);
	break_file(1, true);
	/* it begins half a minute after the job ended in the other file: that may go on in it */
	s->file[1].start_ns = (int64_t)(made.realtime_ns + 50 * SECOND);
	r = asked("run=1", 0, &id);
	ck_assert(r->outcome == PIN_FAILED && s->n_pins == 0);
	ck_assert_ptr_nonnull(
		strstr(r->text, "that may hold some of its samples cannot be read now"));
	/* what no file has may be in that one */
	r = asked("run=9", 0, &id);
	ck_assert_int_eq(r->outcome, PIN_FAILED);
	ck_assert_ptr_nonnull(strstr(r->text, "a file of the store cannot be read now"));
	break_file(1, false);
	ck_assert_int_eq(asked("run=9", 0, &id)->outcome, PIN_NONE);
}
