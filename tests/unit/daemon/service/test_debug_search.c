/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/service/debug_search.c: what the process that fetches is asked for, and when again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/debuginfod/server.h"
#include "daemon/service/debug_search.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#define MINUTE (60 * SECOND)
#define DAY (24 * 60 * MINUTE)

static struct namer_rig rig;
static struct debug_search search;
static struct conf conf;
static char news[512];
static int listening, fetcher; /* the end of the process that fetches; -1: not connected */
static uint64_t now_ns;

static void listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	unlink(path);
	ck_assert_int_eq(bind(listening, (const struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listening, 1), 0);
}

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){.binary = namer_rig_worker(true)});
	conf_defaults(&conf);
	snprintf(conf.debuginfod, sizeof(conf.debuginfod), "http://127.0.0.1:1");
	snprintf(conf.debuginfod_socket, sizeof(conf.debuginfod_socket), "%s/socket", rig.dir);
	snprintf(conf.debuginfod_cache, sizeof(conf.debuginfod_cache), "%s/cache", rig.dir);
	listen_at(conf.debuginfod_socket);
	debug_search_begin(&search);
	fetcher = -1;
	now_ns = DAY;
}

static void teardown(void)
{
	debug_search_end(&search);
	close(listening);
	if (fetcher >= 0)
		close(fetcher);
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

/* A program of that user without symbols, with a build id of its own, which is asked for a name so often, in vain. */
static struct file *unnamed(const char *name, uid_t account, uint32_t n_samples)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), name);

	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && objcopy --dump-section .note.gnu.build-id=id %s && "
				"printf %s | dd of=id bs=1 seek=20 conv=notrunc status=none && "
				"objcopy --update-section .note.gnu.build-id=id --strip-all "
				"--remove-section .gnu_debuglink %s",
			rig.dir, name, name, name),
		0);
	struct file *file = namer_rig_file(&rig, FILE_ELF, path);
	file->account = account;
	struct frame *frame = namer_rig_name(&rig, file, namer_rig_landmark());
	ck_assert_int_ne(frame->state, FRAME_NAMED);
	for (uint32_t i = 0; i < n_samples; i++)
		ck_assert_int_eq(namer_name(rig.namer, frame, rig.uid), 0);
	return file;
}

static void tend(uint64_t after_ns)
{
	now_ns += after_ns;
	ck_assert_int_eq(
		debug_search_tend(&search, &conf, rig.namer, now_ns, news, sizeof(news)), 0);
	if (fetcher >= 0 && search.fd < 0) { /* nobody asks: it ends */
		close(fetcher);
		fetcher = -1;
	}
	if (fetcher < 0)
		fetcher = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Is it asked for now? */
static bool asks_for(const struct file *file)
{
	uint8_t build_id[64];

	tend(11 * SECOND);
	const ssize_t n = fetcher < 0 ? -1 : recv(fetcher, build_id, sizeof(build_id), 0);
	return n == file->n_build_id && memcmp(build_id, file->build_id, (size_t)n) == 0;
}

static bool asks_for_nothing(void)
{
	tend(11 * SECOND);
	return !search.waits;
}

static void answer(uint8_t byte)
{
	ck_assert_int_eq(send(fetcher, &byte, 1, 0), 1);
	tend(SECOND);
	ck_assert(!search.waits);
}

TEST(what_no_server_has_is_asked_for_again_after_a_day)
{
	struct file *file = unnamed("a", 0, 4);

	ck_assert(asks_for(file));
	answer(DEBUGINFOD_ANSWER_NONE);
	ck_assert(asks_for_nothing());
	now_ns += DAY / 2;
	ck_assert(asks_for_nothing());
	now_ns += DAY / 2;
	ck_assert(asks_for(file));
	ck_assert_str_eq(news, "");
}

TEST(what_is_sampled_seldom_is_not_asked_for)
{
	(void)unnamed("a", 0, 1);
	ck_assert(asks_for_nothing());
}

TEST(what_could_not_be_fetched_waits_longer_each_time_and_holds_up_nothing)
{
	struct file *hot = unnamed("a", 0, 9), *other = unnamed("b", 0, 4);

	ck_assert(asks_for(hot));
	answer(DEBUGINFOD_ANSWER_LATER);
	ck_assert(asks_for(other));
	answer(DEBUGINFOD_ANSWER_NONE);
	ck_assert(asks_for_nothing());
	now_ns += 10 * MINUTE;
	ck_assert(asks_for(hot));
	answer(DEBUGINFOD_ANSWER_LATER);
	now_ns += 11 * MINUTE;
	ck_assert(asks_for_nothing());
	now_ns += 9 * MINUTE;
	ck_assert(asks_for(hot));
}

TEST(users_take_turns)
{
	struct file *hot = unnamed("a", 1000, 90), *warm = unnamed("b", 1000, 80),
		    *cold = unnamed("c", 1001, 4);

	ck_assert(asks_for(hot));
	answer(DEBUGINFOD_ANSWER_NONE);
	ck_assert(asks_for(cold));
	answer(DEBUGINFOD_ANSWER_NONE);
	ck_assert(asks_for(warm));
}

TEST(who_does_not_answer_is_away)
{
	struct file *file = unnamed("a", 0, 4);

	ck_assert(asks_for(file));
	tend(5 * MINUTE);
	ck_assert(search.waits && !*news);
	tend(2 * MINUTE);
	ck_assert(!search.waits && search.fd < 0);
	ck_assert_ptr_nonnull(strstr(news, "nothing answers"));
	tend(2 * MINUTE);
	ck_assert_str_eq(news, ""); /* said once */
	now_ns += 10 * MINUTE;
	ck_assert(asks_for(file));
}

TEST(who_can_ask_no_server_is_left_alone_for_ten_minutes)
{
	struct file *file = unnamed("a", 0, 4);

	ck_assert(asks_for(file));
	const uint8_t over = DEBUGINFOD_ANSWER_OVER;
	ck_assert_int_eq(send(fetcher, &over, 1, 0), 1);
	tend(SECOND);
	ck_assert_ptr_nonnull(strstr(news, "journalctl"));
	ck_assert(asks_for_nothing());
	ck_assert_str_eq(news, "");
	now_ns += 10 * MINUTE;
	ck_assert(asks_for(file));
}

TEST(answer_that_is_none_changes_nothing)
{
	struct file *file = unnamed("a", 0, 4);

	ck_assert(asks_for(file));
	answer(200);
	ck_assert(asks_for_nothing());
	now_ns += 10 * MINUTE;
	ck_assert(asks_for(file));
}

TEST(what_was_fetched_names)
{
	struct file *file = unnamed("a", 0, 4);
	struct frame *frame = namer_rig_frame(&rig, file, namer_rig_landmark());
	char id[41] = "";

	for (uint8_t i = 0; i < file->n_build_id; i++)
		snprintf(id + 2 * i, 3, "%02x", file->build_id[i]);
	ck_assert_int_eq(namer_rig_shell("cd '%s' && mkdir -p cache/%s && objcopy "
					 "--update-section .note.gnu.build-id=id %s "
					 "cache/%s/debuginfo",
				 rig.dir, id, namer_rig_self(), id),
		0);
	ck_assert(asks_for(file));
	answer(DEBUGINFOD_ANSWER_HAVE);
	ck_assert(namer_rig_run(&rig));
	namer_rig_is_honest(frame);
	ck_assert(asks_for_nothing());
}
