/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Pins of a store: what is found when it is opened, what goes when there is one more, what room they have, and
 * which answer a query. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/pin.h"
#include "daemon/store/rollup/extract.h"
#include "daemon/store/store_private.h"
#include "proto/base/memory.h"
#include "tests/unit/faulty_disc.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MAIN "{\"branch\":\"main\"}"
#define MANY (1u << 30)
#ifdef __SANITIZE_ADDRESS__
#define STEP 4 /* of reads that fail, which the plain run tries one by one */
#else
#define STEP 1
#endif

static struct stored made;
static struct store *s;
static struct store_error error;
static char folder[160];
static int64_t pinned_s;    /* when the next is pinned */
static uint32_t pinned_uid; /* and whose job it says that it is */

static void begin(void)
{
	stored_begin_clock(&made);
	made.realtime_ns = 277777ull * 3600 * SECOND;
	for (int run = 1; run <= 4; run++) {
		char labels[64];
		struct task *task = stored_task(&made, 100 * run, 100 * run, "prog");
		snprintf(labels, sizeof(labels), "{\"branch\":\"main\",\"run\":\"%d\"}", run);
		task->uid = 1000;
		stored_label(&made, task, labels);
		stored_add(&made, &(struct stored_sample){.task = task, .count = (uint64_t)run});
		ck_assert_int_eq(stored_flush(&made, (uint64_t)run * 10 * SECOND,
					 (uint64_t)(run + 1) * 10 * SECOND),
			0);
	}
	stored_seal(&made);
	snprintf(folder, sizeof(folder), "%s/store", made.folder);
	pinned_s = 3600;
	pinned_uid = 1000;
	ck_assert_int_eq(store_open(folder, &s, &error), 0);
}

static void end(void)
{
	s = store_free(s);
	stored_end(&made);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

static void open_again(void)
{
	s = store_free(s);
	ck_assert_int_eq(store_open(folder, &s, &error), 0);
}

/* Pin a run; returns its index. */
static size_t pin(int run, uint32_t by, const char *group, uint32_t keep)
{
	char labels[64], name[STORE_NAME_BYTES], path[300];
	snprintf(labels, sizeof(labels), "{\"branch\":\"main\",\"run\":\"%d\"}", run);
	const struct extract_note note[] = {
		{"pinned_uid", NULL, pinned_uid},
		{"pinned_labels", labels, 0},
		{"pinned_by", NULL, by},
		{"pinned_group", group, 0},
		{"pinned_keep", NULL, keep},
		{"pinned_ns", NULL, (int64_t)made.realtime_ns + pinned_s * (int64_t)SECOND},
	};
	const char *const source[] = {made.path};
	const struct extract e = {.uid = 1000,
		.labels = labels,
		.source = source,
		.n_sources = 1,
		.bytes_max = MANY,
		.note = note,
		.n_notes = 6};
	ck_assert_int_eq(store_pin_name(s, (int64_t)made.realtime_ns + run, STORED_BOOT, name), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int r = extract_write(&e, path, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(store_pin_note(s, name), 0);
	return store_pin_find(s, name);
}

static bool exists(const char *name)
{
	struct stat st;
	return fstatat(s->fd, name, &st, 0) == 0;
}

TEST(pins_are_found_when_a_store_is_opened)
{
	pin(2, 1000, MAIN, 0);
	pin(1, 1001, MAIN, 7);
	open_again();
	ck_assert_uint_eq(s->n_pins, 2);
	const struct store_pin *p = &s->pin[0];
	ck_assert_str_eq(p->labels, "{\"branch\":\"main\",\"run\":\"1\"}");
	ck_assert_str_eq(p->group, MAIN);
	ck_assert_uint_eq(p->by, 1001);
	ck_assert_uint_eq(p->uid, 1000);
	ck_assert_uint_eq(p->keep, 7);
	ck_assert_int_eq(p->start_ns, (int64_t)(made.realtime_ns + 10 * SECOND));
	ck_assert_int_eq(p->end_ns, (int64_t)(made.realtime_ns + 20 * SECOND));
	/* that of a sample is of the least size: its pages, and its seal */
	ck_assert_uint_eq(p->bytes, STORE_PIN_BYTES_MIN + TRAILER_BYTES);
	ck_assert_uint_eq(s->pin[1].by, 1000);
}

TEST(pins_count_towards_the_budget_and_are_never_removed_for_it)
{
	const struct store_limits limits = {.budget_bytes = 1000, .keep_ns = {1, 1, 1}};
	bool fits = true;
	pin(1, 1000, MAIN, 0);
	ck_assert_uint_eq(s->bytes, s->pin[0].bytes);
	ck_assert_uint_eq(store_pins_bytes(s), s->pin[0].bytes);
	ck_assert_int_eq(store_retain(s, &limits, INT64_MAX, 0, NULL, &fits), 0);
	ck_assert(!fits && s->n_pins == 1 && exists(s->pin[0].name));
}

TEST(what_a_killed_child_left_is_removed_and_what_others_put_there_is_not)
{
	static const char *const name[] = {"pinned/20261121T140000Z-1f3a9c2b.mprf.new",
		"pinned/20261121T140000Z-1f3a9c2b.mprf.new-journal", "pinned/notes.txt",
		"pinned/notes.new"};
	for (int i = 0; i < 4; i++)
		close(openat(s->fd, name[i], O_CREAT | O_WRONLY, 0600));
	open_again();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(exists(name[i]), i >= 2);
	ck_assert_uint_eq(s->n_pins, 0);
}

TEST(a_pin_without_a_whole_seal_is_set_aside)
{
	char name[STORE_NAME_BYTES], path[300];
	const size_t at = pin(1, 1000, MAIN, 0);
	memcpy(name, s->pin[at].name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	struct stat st;
	ck_assert(stat(path, &st) == 0 && truncate(path, st.st_size - 5) == 0);
	open_again();
	ck_assert_uint_eq(s->n_pins, 0);
	ck_assert_uint_eq(s->n_corrupt, 1);
	ck_assert(s->n_files == 1 && s->file[0].corrupt && exists(s->file[0].name));
	ck_assert(!exists(name));
}

static const int passing[] = {
	SQLITE_IOERR_READ, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_FULL, SQLITE_CANTOPEN};
#define N_PASSING ((int)(sizeof(passing) / sizeof(*passing)))

TEST(a_disc_that_fails_for_a_moment_costs_no_pin, .times = N_PASSING)
{
	int n_unread = 0;
	pin(1, 1000, MAIN, 0);
	faulty_disc_fail(0, 0, 0);
	open_again();
	const int n_reads = faulty_disc_work();
	for (int n = 0; n < n_reads; n += STEP) {
		faulty_disc_fail(n, 1000, passing[_i]); /* store_open tries twice */
		open_again();
		faulty_disc_work();
		ck_assert_msg(s->n_corrupt == 0, "%d in read %d of %d", passing[_i], n, n_reads);
		n_unread += s->n_pins == 0;
		ck_assert_int_eq(s->pins_unread, s->n_pins == 0);
		s->again_ns = 0;
		ck_assert_int_eq(store_measure(s), 0);
		ck_assert(s->n_pins == 1 && !s->pins_unread);
		ck_assert_uint_eq(s->bytes, s->pin[0].bytes);
	}
	ck_assert_int_gt(n_unread, 5 / STEP);
}

TEST(a_file_that_sqlite_calls_damaged_is_set_aside)
{
	pin(1, 1000, MAIN, 0);
	faulty_disc_fail(3, 1000, SQLITE_CORRUPT); /* after it was opened */
	open_again();
	faulty_disc_work();
	ck_assert(s->n_pins == 0 && s->n_corrupt == 1 && !s->pins_unread);
}

TEST(more_unread_pins_than_one_look_takes_are_found_one_look_after_the_other)
{
	for (int i = 0; i < 5; i++)
		pin(1, 1000, MAIN, 0);
	faulty_disc_fail(0, 1000000, SQLITE_IOERR_READ);
	open_again();
	ck_assert(s->n_pins == 0 && s->pins_unread);
	/* two still fail: the others get their turn */
	ck_assert_int_eq(store_look_for_pins(s, 2), 0);
	faulty_disc_work();
	for (size_t n = 2; n <= 4; n += 2) {
		ck_assert_int_eq(store_look_for_pins(s, 2), 0);
		ck_assert(s->n_pins == (n == 2 ? 2 : 3) && s->pins_unread);
	}
	ck_assert_int_eq(store_look_for_pins(s, 2), 0);
	ck_assert(s->n_pins == 5);
	ck_assert_int_eq(store_look_for_pins(s, 2), 0);
	ck_assert(!s->pins_unread && s->n_corrupt == 0);
}

TEST(a_pin_of_a_newer_mperf_stays_for_that_one)
{
	char name[STORE_NAME_BYTES], path[300];
	const size_t at = pin(1, 1000, MAIN, 0);
	memcpy(name, s->pin[at].name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY);
	const uint8_t version[] = {0, 0, 0x7f, 0};
	/* Source: https://www.sqlite.org/fileformat.html, "User version" */
	ck_assert_int_eq(pwrite(fd, version, sizeof(version), 60), sizeof(version));
	close(fd);
	open_again();
	ck_assert(s->n_pins == 0 && s->n_corrupt == 0 && !s->pins_unread);
	ck_assert(exists(name));
}

TEST(a_pin_whose_times_make_no_sense_is_set_aside)
{
	static const char *const wrong[] = {"realtime_ns = -1", "end_ns = start_ns - realtime_ns"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char path[300], sql[128];
		sqlite3 *db;
		const size_t at = pin(1, 1000, MAIN, 0);
		snprintf(path, sizeof(path), "%s/%s", folder, s->pin[at].name);
		snprintf(sql, sizeof(sql), "UPDATE window SET %s", wrong[i]);
		ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
		ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		ck_assert_int_eq(trailer_write_path(path), 0);
		open_again();
		ck_assert(s->n_pins == 0 && s->n_corrupt == 1);
	}
}

TEST(a_list_that_is_full_takes_no_more)
{
	char name[STORE_NAME_BYTES];
	const size_t at = pin(1, 1000, MAIN, 0);
	memcpy(name, s->pin[at].name, sizeof(name));
	store_pin_drop(s, at);
	struct store_pin *many = calloc(STORE_PINS_MAX, sizeof(*many));
	ck_assert_ptr_nonnull(many);
	free(s->pin);
	s->pin = many;
	s->n_pins = s->size_pins = STORE_PINS_MAX;
	ck_assert_int_eq(store_pin_note(s, name), -ENOSPC);
	ck_assert(s->n_pins == STORE_PINS_MAX && !s->pins_unread && exists(name));
}

TEST(a_segment_that_says_nothing_of_a_job_is_no_pin)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/pinned/20261121T140000Z-1f3a9c2b.mprf", folder);
	ck_assert_int_eq(link(made.path, path), 0);
	open_again();
	ck_assert(s->n_pins == 0 && s->n_corrupt == 1);
}

TEST(names_out_of_the_folder_are_refused)
{
	static const char *const name[] = {"window/20261121T140000Z-1f3a9c2b.mprf",
		"pinned/../lock", "pinned/20261121T140000Z/../x.mprf", "pinned/", "",
		"pinned/20261321T140000Z-1.mprf"};
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		ck_assert_int_eq(store_pin_note(s, name[i]), -EINVAL);
}

TEST(the_oldest_of_a_group_goes_when_there_are_too_many)
{
	for (int run = 1; run <= 3; run++)
		pin(run, 1000, MAIN, 2);
	pin(1, 1001, MAIN, 2);
	pin(1, 1000, "{\"branch\":\"*\"}", 2);
	size_t at = store_pin_surplus(s, 1000, MAIN, 2);
	ck_assert_str_eq(s->pin[at].labels, "{\"branch\":\"main\",\"run\":\"1\"}");
	ck_assert(s->pin[at].by == 1000 && strcmp(s->pin[at].group, MAIN) == 0);
	char name[STORE_NAME_BYTES];
	memcpy(name, s->pin[at].name, sizeof(name));
	ck_assert_int_eq(store_pin_remove(s, at), 0);
	ck_assert(!exists(name));
	ck_assert_uint_eq(store_pin_surplus(s, 1000, MAIN, 2), s->n_pins);
	ck_assert_uint_eq(store_pin_surplus(s, 1000, MAIN, 0), s->n_pins);
	ck_assert_uint_eq(store_pin_surplus(s, 1001, MAIN, 1), s->n_pins);
	pin(2, 1001, MAIN, 1);
	ck_assert_uint_lt(store_pin_surplus(s, 1001, MAIN, 1), s->n_pins);
}

TEST(room_is_what_the_user_all_and_the_disc_have_left)
{
	pin(1, 1000, MAIN, 0);
	const uint64_t one = s->pin[0].bytes;
	struct pin_limits l = {10 * one, 5 * one, MANY};
	struct pin_room room = store_pin_room(s, &l, 1000, MAIN, 0);
	ck_assert(room.bytes == 4 * one && room.limit == PIN_ROOM_USER);
	room = store_pin_room(s, &l, 1001, MAIN, 0);
	ck_assert(room.bytes == 5 * one && room.limit == PIN_ROOM_USER);
	l.all_bytes = 3 * one;
	room = store_pin_room(s, &l, 1001, MAIN, 0);
	ck_assert(room.bytes == 2 * one && room.limit == PIN_ROOM_ALL);
	l.free_bytes = 7;
	room = store_pin_room(s, &l, 1001, MAIN, 0);
	ck_assert(room.bytes == 7 && room.limit == PIN_ROOM_DISC);
	l = (struct pin_limits){one / 2, one / 2, MANY};
	ck_assert_uint_eq(store_pin_room(s, &l, 1000, MAIN, 0).bytes, 0);
	/* the one that goes makes room */
	ck_assert_uint_eq(store_pin_room(s, &l, 1000, MAIN, 1).bytes, one / 2);
}

TEST(all_that_go_make_room)
{
	for (int run = 1; run <= 3; run++)
		pin(run, 1000, MAIN, 0);
	pin(4, 1000, "{\"branch\":\"topic\"}", 0);
	const uint64_t all = store_pins_bytes(s), last = s->pin[3].bytes;
	const struct pin_limits l = {all, all, MANY};
	/* fewer are to be kept than before: of those of the group, all but one less */
	ck_assert_uint_eq(store_pin_room(s, &l, 1000, MAIN, 1).bytes, all - last);
	ck_assert_uint_eq(
		store_pin_room(s, &l, 1000, MAIN, 2).bytes, s->pin[0].bytes + s->pin[1].bytes);
	ck_assert_uint_eq(store_pin_room(s, &l, 1000, MAIN, 3).bytes, s->pin[0].bytes);
	ck_assert_uint_eq(store_pin_room(s, &l, 1000, MAIN, 4).bytes, 0);
	ck_assert_uint_eq(store_pin_room(s, &l, 1001, MAIN, 1).bytes, 0);
}

static const uint32_t *only; /* the asker, of one who sees no other's */

static size_t select_parts(
	const char *label, int64_t since_s, int64_t until_s, struct pin_part part[8])
{
	struct pin_wish wish = {.n = 1};
	struct label_fault fault;
	struct pin_part *found;
	size_t n;
	const int64_t zero = (int64_t)made.realtime_ns;
	ck_assert_int_eq(label_parse(label, &wish.label[0], &fault), 0);
	const struct pin_question q = {.uid = only,
		.wish = &wish,
		.n_wishes = 1,
		.since_ns = since_s ? zero + since_s * (int64_t)SECOND : 0,
		.until_ns = until_s ? zero + until_s * (int64_t)SECOND : 0};
	ck_assert_int_eq(store_pin_select(s, &q, &found, &n), 0);
	ck_assert_uint_lt(n, 8);
	memcpy(part, found, n * sizeof(*found));
	free(found);
	return n;
}

TEST(a_query_reads_the_pins_of_its_labels_and_time)
{
	struct pin_part part[8];
	for (int run = 1; run <= 3; run++)
		pin(run, 1000, MAIN, 0);
	ck_assert_uint_eq(select_parts("branch=main", 0, 0, part), 3);
	ck_assert_uint_eq(select_parts("branch=m*", 0, 0, part), 3);
	ck_assert_uint_eq(select_parts("branch=other", 0, 0, part), 0);
	ck_assert_uint_eq(select_parts("run=2", 0, 0, part), 1);
	ck_assert_int_eq(part[0].since_ns, (int64_t)(made.realtime_ns + 20 * SECOND));
	ck_assert_uint_eq(select_parts("branch=main", 20, 0, part), 2);
	ck_assert_uint_eq(select_parts("branch=main", 0, 30, part), 2);
	/* the job does not say its unit, but its samples may */
	ck_assert_uint_eq(select_parts("unit=ci.service", 0, 0, part), 3);
}

TEST(what_two_pins_have_of_a_job_is_read_once)
{
	struct pin_part part[8];
	pin(1, 1000, MAIN, 0);
	pin(1, 1001, MAIN, 0);
	ck_assert_uint_eq(select_parts("run=1", 0, 0, part), 2);
	ck_assert_uint_eq(part[0].next, 2);
	ck_assert_uint_eq(part[1].next, 0);
	ck_assert_int_eq(part[0].until_ns, part[0].since_ns);
	ck_assert_int_lt(part[1].since_ns, part[1].until_ns);
}

TEST(equal_labels_of_two_users_are_two_jobs)
{
	struct pin_part part[8];
	pin(1, 1000, MAIN, 0);
	pinned_uid = 1001;
	pin(1, 1001, MAIN, 0);
	ck_assert_uint_eq(select_parts("run=1", 0, 0, part), 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(part[i].next, 0);
		ck_assert_int_eq(part[i].until_ns, part[i].pin->end_ns);
	}
}

TEST(of_three_pins_that_begin_alike_the_latest_is_read)
{
	struct pin_part part[8];
	static const int64_t when_s[][3] = {{3, 2, 1}, {1, 2, 3}, {2, 3, 1}, {3, 1, 2}};
	for (size_t i = 0; i < sizeof(when_s) / sizeof(*when_s); i++) {
		for (uint32_t by = 0; by < 3; by++) {
			pinned_s = 3600 + when_s[i][by];
			pin(1, 1000 + by, MAIN, 0);
		}
		ck_assert_uint_eq(select_parts("run=1", 0, 0, part), 3);
		for (int k = 0; k < 3; k++) {
			const struct store_pin *p = part[k].pin;
			const bool is_latest =
				p->pinned_ns == (int64_t)(made.realtime_ns + 3603 * SECOND);
			ck_assert_int_eq(part[k].until_ns - part[k].since_ns,
				is_latest ? p->end_ns - p->start_ns : 0);
		}
		while (s->n_pins > 0)
			ck_assert_int_eq(store_pin_remove(s, 0), 0);
	}
}

TEST(of_two_jobs_that_began_alike_the_one_that_was_pinned_first_goes)
{
	pinned_s = 3602;
	pin(1, 1000, MAIN, 1);
	pinned_s = 3601;
	pin(1, 1000, MAIN, 1);
	for (int i = 0; i < 2; i++, open_again()) {
		size_t at = store_pin_surplus(s, 1000, MAIN, 1);
		ck_assert_int_eq(s->pin[at].pinned_ns, (int64_t)(made.realtime_ns + 3601 * SECOND));
	}
}

TEST(a_job_is_pinned_already_if_a_pin_was_made_after_its_end)
{
	const char *labels = "{\"branch\":\"main\",\"run\":\"1\"}";
	const int64_t made_ns = (int64_t)(made.realtime_ns + 3600 * SECOND);
	pin(1, 1000, MAIN, 0);
	ck_assert_uint_eq(store_pin_of(s, 1000, labels, made_ns), 0);
	ck_assert_uint_eq(store_pin_of(s, 1000, labels, made_ns + 1), s->n_pins);
	ck_assert_uint_eq(store_pin_of(s, 1001, labels, 0), s->n_pins);
	ck_assert_uint_eq(store_pin_of(s, 1000, MAIN, 0), s->n_pins);
}

TEST(of_others_no_pin_is_read_whatever_is_asked_for)
{
	struct pin_part part[8];
	const uint32_t theirs = 1001;
	pin(1, 1000, MAIN, 0);
	pinned_uid = 1001;
	pin(2, 1000, MAIN, 0);
	only = &theirs;
	ck_assert_uint_eq(select_parts("branch=main", 0, 0, part), 1);
	ck_assert_uint_eq(part[0].pin->uid, 1001);
	ck_assert_uint_eq(select_parts("run=1", 0, 0, part), 0);
	ck_assert_uint_eq(select_parts("unit=ci.service", 0, 0, part), 1);
	only = NULL;
	ck_assert_uint_eq(select_parts("branch=main", 0, 0, part), 2);
}

TEST(the_next_older_pin_is_found_though_the_list_changes)
{
	for (int run = 1; run <= 4; run++)
		pin(run, 1000, MAIN, 0);
	struct store_pin at = s->pin[2];
	at.labels = at.group = NULL;
	ck_assert_uint_eq(store_pin_older(s, &at), 1);
	ck_assert_int_eq(store_pin_remove(s, 2), 0);
	ck_assert_uint_eq(store_pin_older(s, &at), 1);
	ck_assert_int_eq(store_pin_remove(s, 1), 0);
	ck_assert_uint_eq(store_pin_older(s, &at), 0);
	ck_assert_int_eq(store_pin_remove(s, 0), 0);
	ck_assert_uint_eq(store_pin_older(s, &at), s->n_pins);
}
