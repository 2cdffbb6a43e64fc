/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What one user's files and stacks do to the workers is charged to that user, and to nobody else.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/daemon/naming/naming_rig.inc"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static bool is_refused(uid_t uid)
{
	const struct naming_user *u = naming_user_find(&n->users, uid);

	return u && account_is_refused(&u->files, n->now_ns);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

/* --- who is charged --------------------------------------------------------------------------- */

TEST(user_whose_files_end_the_parser_loses_names_and_nobody_else)
{
	enum { N_BAD = NAMER_DEATHS_USER_MAX + 4 };
	struct frame *bad[N_BAD];

	if (skip_but_root("user_whose_files_end_the_parser_loses_names_and_nobody_else"))
		return;
	as(MALLORY);
	for (int i = 0; i < N_BAD; i++)
		bad[i] = namer_rig_frame(&rig, trapped(MALLORY, "crash", i), 0x1000);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(status().parser.restarts, NAMER_DEATHS_USER_MAX);
	ck_assert_uint_eq(status().n_deaths, NAMER_DEATHS_USER_MAX);
	ck_assert_uint_eq(status().n_refused, 1);
	ck_assert_uint_eq(status().refused[0].uid, MALLORY);
	struct frame *own = ask_honest(MALLORY, "mallorys");
	as(VICTOR);
	struct frame *victors = ask_honest(VICTOR, "victors");
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(victors);
	ck_assert_int_eq(own->state, FRAME_ASKED);

	/* it is over after a while, and the files that were charged are not tried again */
	forgive();
	for (int i = 0; i < 2000 && own->state == FRAME_ASKED; i++) {
		namer_rig_step(&rig, 10);
		forgive();
	}
	namer_rig_is_honest(own);
	while (!namer_idle(n))
		namer_rig_step(&rig, 10);
	uint32_t unnamed = 0;
	for (int i = 0; i < N_BAD; i++)
		unnamed += bad[i]->state == FRAME_UNNAMED;
	ck_assert_uint_ge(unnamed, NAMER_DEATHS_USER_MAX + 1);
	ck_assert_uint_eq(status().n_deaths, unnamed);
}

TEST(who_runs_another_users_broken_library_is_not_charged_for_it)
{
	if (skip_but_root("who_runs_another_users_broken_library_is_not_charged_for_it"))
		return;
	as(VICTOR);
	for (uint32_t i = 0; i < NAMER_DEATHS_USER_MAX; i++)
		namer_rig_frame(&rig, trapped(MALLORY, "crash", (int)i), 0x1000);
	ck_assert(namer_rig_run(&rig));
	ck_assert(is_refused(MALLORY));
	ck_assert(!is_refused(VICTOR));
	struct frame *f = ask_honest(VICTOR, "victors");
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(f);
}

TEST(file_that_others_can_write_to_is_charged_to_who_runs_it)
{
	if (skip_but_root("file_that_others_can_write_to_is_charged_to_who_runs_it"))
		return;
	as(MALLORY);
	for (uint32_t i = 0; i < NAMER_DEATHS_USER_MAX; i++) {
		struct file *f = trapped(VICTOR, "crash", (int)i);
		ck_assert_int_eq(chmod(f->path, i % 2 ? 0775 : 0757), 0);
		namer_rig_frame(&rig, f, 0x1000);
	}
	ck_assert(namer_rig_run(&rig));
	ck_assert(is_refused(MALLORY));
	ck_assert(!is_refused(VICTOR));
}

TEST(files_of_root_are_charged_to_nobody)
{
	if (skip_but_root("files_of_root_are_charged_to_nobody"))
		return;
	as(MALLORY);
	for (uint32_t i = 0; i < NAMER_DEATHS_USER_MAX + 1; i++)
		namer_rig_frame(&rig, trapped(0, "crash", (int)i), 0x1000);
	struct frame *f = ask_honest(0, "roots");
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(f);
	ck_assert_uint_eq(status().n_refused, 0);
	ck_assert_uint_eq(status().n_deaths, NAMER_DEATHS_USER_MAX + 1);
}

TEST(file_that_ended_the_parser_is_known_by_any_name_until_it_is_changed)
{
	char other[128];
	struct file *bad = trapped(geteuid(), "crash", 0);

	namer_rig_name(&rig, bad, 0x1000);
	ck_assert_int_eq(bad->state, FILE_CRASHED);
	snprintf(other, sizeof(other), "%s", namer_rig_path(&rig, "other"));
	ck_assert_int_eq(link(bad->path, other), 0);
	struct file *again = namer_rig_file(&rig, FILE_ELF, other);
	ck_assert_int_eq(namer_rig_name(&rig, again, 0x1000)->state, FRAME_UNNAMED);
	ck_assert_int_eq(again->state, FILE_CRASHED);
	ck_assert_uint_eq(status().parser.restarts, 1);
	ck_assert_uint_eq(status().n_faulty, 1);

	ck_assert_int_eq(namer_rig_shell("cp '%s' '%s'", namer_rig_self(), other), 0);
	snprintf(other, sizeof(other), "%s", bad->path);
	struct file *mended = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "./other"));
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, mended, namer_rig_landmark())),
		"namer_rig_honest_function");
}

TEST(file_that_makes_the_parser_die_over_the_next_one_costs_the_next_one_nothing)
{
	if (skip_but_root(
		    "file_that_makes_the_parser_die_over_the_next_one_costs_the_next_one_nothing"))
		return;
	as(MALLORY);
	struct file *poison = trapped(MALLORY, "poison", 0);
	for (uint64_t i = 0; i < 2 * NAMER_DEATHS_USER_MAX; i++) {
		char name[32];
		as(MALLORY);
		namer_rig_name(&rig, poison, 0x1000 + 16 * i);
		as(VICTOR);
		snprintf(name, sizeof(name), "victors-%u", (unsigned)i);
		struct frame *f = ask_honest(VICTOR, name);
		ck_assert(namer_rig_run(&rig));
		namer_rig_is_honest(f);
	}
	ck_assert_uint_ge(status().parser.restarts, 2 * NAMER_DEATHS_USER_MAX - 1);
	ck_assert(!is_refused(VICTOR));
}

TEST(file_that_ends_the_parser_with_its_debug_file_is_named_without)
{
	struct file *f = namer_rig_file_of(&rig, geteuid(), namer_rig_self(), NULL, "stripped");

	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && objcopy --only-keep-debug stripped stripped.debug &&"
				" objcopy --add-section .mperf.test.crash=/etc/hostname"
				" stripped.debug && objcopy --strip-debug stripped &&"
				" objcopy --remove-section .note.gnu.build-id stripped &&"
				" objcopy --add-gnu-debuglink=stripped.debug stripped",
			rig.dir),
		0);
	struct frame *frame = namer_rig_name(&rig, f, namer_rig_landmark());
	namer_rig_is_honest(frame);
	ck_assert_ptr_null(frame->place[0].source);
	ck_assert_int_eq(f->state, FILE_READY);
	ck_assert_uint_eq(status().n_deaths, 1);
	ck_assert_uint_eq(status().parser.restarts, 1);
}

TEST(accounts_double_and_are_forgiven)
{
	struct account a = {0};
	uint64_t now = 1000000000000u;

	for (uint32_t i = 1; i < 4; i++)
		account_charge(&a, 4, now);
	ck_assert(!account_is_refused(&a, now));
	account_charge(&a, 4, now);
	ck_assert_uint_eq(a.until_ns, now + NAMER_REFUSED_NS);
	account_charge(&a, 4, now);
	ck_assert_uint_eq(a.until_ns, now + 2 * NAMER_REFUSED_NS);
	for (int i = 0; i < 100; i++)
		account_charge(&a, 4, now);
	ck_assert_uint_eq(a.until_ns, now + NAMER_REFUSED_MAX_NS);

	a = (struct account){.deaths = 4, .since_ns = now};
	account_charge(&a, 4, now + 2 * NAMER_FORGIVEN_NS);
	ck_assert_uint_eq(a.deaths, 3);
	ck_assert(!account_is_refused(&a, now + 2 * NAMER_FORGIVEN_NS));
}

TEST(more_users_than_are_remembered_are_served_all_the_same)
{
	struct naming_user *first = naming_user_get(&n->users, 1);

	account_charge(&first->files, 1, n->now_ns);
	for (uid_t uid = 2; uid < 3 * NAMER_USERS_MAX; uid++)
		ck_assert_uint_eq(naming_user_get(&n->users, uid)->uid, uid);
	ck_assert_uint_eq(n->users.n_users, NAMER_USERS_MAX);
	ck_assert_ptr_eq(
		naming_user_find(&n->users, 1), first); /* it owes something: forgotten last */
	ck_assert_ptr_eq(naming_user_get(&n->users, (uid_t)-1), n->users.user[0]);
	for (uint32_t i = 1; i < n->users.n_users; i++)
		n->users.user[i]->n_queued[QUEUED_WISH]++;
	ck_assert_ptr_eq(naming_user_get(&n->users, 100000), n->users.user[0]);
	for (uint32_t i = 1; i < n->users.n_users; i++)
		n->users.user[i]->n_queued[QUEUED_WISH]--;
}

/* --- users by themselves ---------------------------------------------------------------------- */

TEST(users_are_served_by_what_they_used_and_may_use)
{
	struct graves graves = {.n = 0};
	struct naming_users s = {.n_users = 0};
	bool passed[NAMER_USERS_MAX] = {false};

	ck_assert_int_eq(naming_users_begin(&s, &graves), 0);
	struct naming_user *a = naming_user_get(&s, MALLORY), *b = naming_user_get(&s, VICTOR);
	ck_assert_ptr_null(naming_users_next(&s, QUEUED_STACK, NULL, 0));
	naming_user_queued(&s, a, QUEUED_STACK);
	naming_user_queued(&s, b, QUEUED_STACK);
	naming_user_pay_parse(&s, a, 2 * NAMER_CHARGE_MIN_NS, 0, 0);
	naming_user_pay_parse(&s, b, 0, 0, 0);
	ck_assert_ptr_eq(naming_users_next(&s, QUEUED_STACK, NULL, 0), b);
	passed[b->index] = true;
	ck_assert_ptr_eq(naming_users_next(&s, QUEUED_STACK, passed, 0), a);
	ck_assert_ptr_null(naming_users_next(&s, QUEUED_NAME, NULL, 0));

	/* over its budget, b waits, unless budgets do not count any more */
	naming_user_pay_parse(&s, b, 0, (uint64_t)NAMER_BUDGET_NS + 1, 0);
	ck_assert_ptr_eq(naming_users_next(&s, QUEUED_STACK, NULL, 0), a);
	naming_users_unlimit(&s);
	b->parse_ns = 0;
	ck_assert_ptr_eq(naming_users_next(&s, QUEUED_STACK, NULL, 0), b);

	/* an opener that hangs on b's files keeps b from the next, as a refusal does */
	naming_user_queued(&s, b, QUEUED_OPEN);
	ck_assert_ptr_eq(naming_users_next(&s, QUEUED_OPEN, NULL, 0), b);
	while (graves.n < NAMER_STUCK_USER_MAX)
		graves.worker[graves.n++].uid = VICTOR;
	ck_assert_ptr_null(naming_users_next(&s, QUEUED_OPEN, NULL, 0));
	naming_user_dequeued(&s, b, QUEUED_OPEN);
	ck_assert_uint_eq(naming_users_queued(&s, QUEUED_OPEN), 0);
	naming_users_clear(&s);
}
