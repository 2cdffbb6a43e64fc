/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the tests of the namer share. Workers are the real program; where a test needs one that
 * misbehaves on its socket, this binary itself is started in its place, and plays.
 */
#include "tests/unit/namer_rig.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/message.h"

#define RUN_SECONDS_MAX 30

/* --- workers ---------------------------------------------------------------------------------- */

const char *namer_rig_self(void)
{
	static char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(n, 0);
	self[n] = 0;
	return self;
}

const char *namer_rig_worker(bool tests)
{
	static char path[2][PATH_MAX + 64];
	const char *given = getenv(tests ? "MPERF_TEST_NAMER" : "MPERF_NAMER");

	if (given)
		return given;
	const char *self = namer_rig_self();
	snprintf(path[tests], sizeof(path[tests]), "%.*s/../../%smperf-namer",
		(int)(strrchr(self, '/') - self), self, tests ? "test-namer/" : "");
	ck_assert_msg(access(path[tests], X_OK) == 0, "%s was not built", path[tests]);
	return path[tests];
}

static void play_hello(uint32_t role, uint32_t version)
{
	struct message_hello m = {
		.head = {.magic = MESSAGE_MAGIC, .type = MESSAGE_HELLO, .bytes = sizeof(m)},
		.role = role,
		.version = version,
	};
	struct iovec iov = {&m, sizeof(m)};

	message_send(3, &iov, 1, -1);
}

static void play_answer(
	const struct message *question, enum message_type type, void *answer, size_t bytes, int fd)
{
	struct iovec iov = {answer, bytes};
	struct message head = {.magic = MESSAGE_MAGIC,
		.type = type,
		.serial = question->serial,
		.bytes = (uint32_t)bytes};

	memcpy(answer, &head, sizeof(head));
	message_send(3, &iov, 1, fd);
}

/* It names nothing before it has one more split unit: a file that is there, for what that is worth. */
static void play_greedy(const struct message *question, struct message_named named)
{
	struct {
		struct message_named m;
		char path[16];
	} answer = {.m = named, .path = "/etc/hostname"};

	answer.m.state = STATE_READY;
	answer.m.wants_split = 1;
	answer.m.n_split = (uint32_t)strlen(answer.path);
	play_answer(question, MESSAGE_NAMED, &answer, sizeof(answer.m) + answer.m.n_split, -1);
}

/* A parser that takes all, and fails at one thing. */
static void play_parser(const char *as, const uint8_t *bytes)
{
	struct message_done done = {.error = strcmp(as, "full") == 0 ? -ENFILE : 0};
	struct message_unwound unwound = {.outcome = UNWINDING_NO_SPACE};
	struct message_loaded loaded = {.state = STATE_READY, .has_symbols = 1};
	struct message_named named = {.state = STATE_FORGOTTEN, .last = 1};
	struct message head;

	memcpy(&head, bytes, sizeof(head));
	switch (head.type) {
	case MESSAGE_UNWIND:
		play_answer(&head, MESSAGE_UNWOUND, &unwound, sizeof(unwound), -1);
		break;
	case MESSAGE_LOAD:
		memcpy(&loaded.file, bytes + offsetof(struct message_load, file), 4);
		if (strcmp(as, "loadless") == 0)
			loaded.state = STATE_FORGOTTEN;
		play_answer(&head, MESSAGE_LOADED, &loaded, sizeof(loaded), -1);
		break;
	case MESSAGE_NAME:
		if (strcmp(as, "mortal") == 0)
			kill(getpid(), SIGKILL);
		memcpy(&named.file, bytes + offsetof(struct message_name, file), 4);
		if (strcmp(as, "greedy") == 0)
			play_greedy(&head, named);
		else
			play_answer(&head, MESSAGE_NAMED, &named, sizeof(named), -1);
		break;
	case MESSAGE_FILE:
		memcpy(&loaded.file, bytes + offsetof(struct message_file, file), 4);
		if (((const struct message_file *)(const void *)bytes)->part != PART_MAIN) {
			play_answer(&head, MESSAGE_LOADED, &loaded, sizeof(loaded), -1);
			break;
		}
		play_answer(&head, MESSAGE_DONE, &done, sizeof(done), -1);
		break;
	default:
		play_answer(&head, MESSAGE_DONE, &done, sizeof(done), -1);
	}
}

/* An opener that opens files, and hangs over their debug files. */
static void play_half(const uint8_t *bytes)
{
	struct message_opened opened = {.state = STATE_READY};
	struct message_open m;
	char path[PATH_MAX] = "";

	memcpy(&m, bytes, sizeof(m));
	if (m.part != PART_MAIN)
		return;
	memcpy(path, bytes + sizeof(m), m.n_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	opened.bytes = (uint64_t)lseek(fd, 0, SEEK_END);
	play_answer(&m.head, MESSAGE_OPENED, &opened, sizeof(opened), fd);
	close(fd);
}

static void play(uint32_t role, const char *as)
{
	static uint8_t buffer[MESSAGE_BYTES_MAX];

	play_hello(role, strcmp(as, "stranger") == 0 ? MESSAGE_VERSION + 1 : MESSAGE_VERSION);
	for (;;) {
		int fd = -1;
		if (message_receive(3, buffer, sizeof(buffer), 0, &fd) <= 0)
			_exit(0);
		if (strcmp(as, "garbage") == 0) {
			struct iovec iov = {(void *)"nobody asked for this text", 26};
			message_send(3, &iov, 1, -1);
		} else if (strcmp(as, "half") == 0) {
			play_half(buffer);
		} else if (strcmp(as, "dumb") == 0) {
			struct message m = {.magic = MESSAGE_MAGIC, .type = MESSAGE_NAMED};
			memcpy(&m.serial, buffer + offsetof(struct message, serial), 4);
			m.bytes = sizeof(m);
			struct iovec iov = {&m, sizeof(m)};
			message_send(3, &iov, 1, -1);
		} else if (strcmp(as, "mute") != 0) {
			play_parser(as, buffer);
		}
	}
}

void namer_rig_main(int argc, char **argv)
{
	const char *role = getenv("NAMER_RIG_ROLE"), *as = getenv("NAMER_RIG_PLAY");

	if (argc < 2 || !role || !as || strcmp(argv[0], "mperf-namer") != 0)
		return;
	if (strcmp(argv[1], role) == 0)
		play(strcmp(role, "open") == 0 ? WORKER_OPENER : WORKER_PARSER, as);
	execv(namer_rig_worker(false), argv);
	_exit(127);
}

/* --- the loop --------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_named(void *userdata, struct frame *frame)
{
	struct namer_rig *r = userdata;

	ck_assert_int_gt(frame->state, FRAME_ASKED);
	r->n_named++;
}

static void on_unwound(void *userdata, const struct unwind_result *result)
{
	struct namer_rig *r = userdata;

	if (r->n_results < NAMER_RIG_RESULTS_MAX)
		r->result[r->n_results] = *result;
	r->n_results++;
}

void namer_rig_begin(struct namer_rig *r, const struct namer_options *o)
{
	struct namer_options options = *o;

	*r = (struct namer_rig){.dir = "/tmp/mperf-test-namer-XXXXXX", .uid = geteuid()};
	ck_assert_ptr_nonnull(mkdtemp(r->dir));
	if (!options.binary)
		options.binary = namer_rig_worker(false);
	options.files = &r->files;
	options.named = on_named;
	options.unwound = on_unwound;
	options.userdata = r;
	ck_assert_int_eq(namer_new(&options, &r->namer), 0);
}

void namer_rig_begin_fake(
	struct namer_rig *r, const char *role, const char *as, const struct namer_options *o)
{
	struct namer_options options = *o;

	setenv("NAMER_RIG_ROLE", role, 1);
	setenv("NAMER_RIG_PLAY", as, 1);
	setenv("MPERF_NAMER", namer_rig_worker(false), 1);
	options.binary = namer_rig_self();
	namer_rig_begin(r, &options);
}

void namer_rig_end(struct namer_rig *r)
{
	r->namer = namer_free(r->namer);
	file_table_clear(&r->files);
	namer_rig_shell("rm -rf '%s'", r->dir);
}

void namer_rig_step(struct namer_rig *r, int timeout_ms)
{
	struct pollfd fds[NAMER_FDS_MAX];
	uint64_t now = now_ns(), deadline = namer_deadline_ns(r->namer);

	if (deadline <= now)
		timeout_ms = 0;
	else if (deadline - now < (uint64_t)timeout_ms * 1000000u)
		timeout_ms = (int)((deadline - now) / 1000000u) + 1;
	poll(fds, (nfds_t)namer_fds(r->namer, fds), timeout_ms);
	ck_assert_int_eq(namer_dispatch(r->namer, now_ns()), 0);
}

pid_t namer_rig_one_answer(struct namer_rig *r)
{
	struct pollfd fds[NAMER_FDS_MAX];
	struct namer_status status;

	namer_status(r->namer, &status);
	if (status.parser.pid > 0)
		kill(status.parser.pid, SIGCONT);
	poll(fds, (nfds_t)namer_fds(r->namer, fds), 20);
	if (status.parser.pid > 0)
		kill(status.parser.pid, SIGSTOP);
	return status.parser.pid;
}

double namer_rig_cpu_seconds(const struct namer_rig *r)
{
	struct namer_status status;
	struct timespec own, parser;
	clockid_t clock;

	namer_status(r->namer, &status);
	ck_assert_int_eq(clock_getcpuclockid(status.parser.pid, &clock), 0);
	ck_assert_int_eq(clock_gettime(clock, &parser), 0);
	ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own), 0);
	return (double)(own.tv_sec + parser.tv_sec) + (double)(own.tv_nsec + parser.tv_nsec) / 1e9;
}

bool namer_rig_run(struct namer_rig *r)
{
	uint64_t end = now_ns() + RUN_SECONDS_MAX * 1000000000ull;

	while (!namer_idle(r->namer)) {
		if (now_ns() > end)
			return false;
		namer_rig_step(r, 1000);
	}
	return true;
}

/* --- files and frames ------------------------------------------------------------------------- */

int namer_rig_shell(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

const char *namer_rig_path(struct namer_rig *r, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	return path;
}

const char *namer_rig_copy(struct namer_rig *r, const char *from, const char *name)
{
	const char *path = namer_rig_path(r, name);

	ck_assert_int_eq(namer_rig_shell("cp '%s' '%s'", from, path), 0);
	return path;
}

struct file *namer_rig_file(struct namer_rig *r, enum file_kind kind, const char *path)
{
	struct file_key key = {.kind = kind, .path = path, .pid = getpid()};
	struct file *f;

	ck_assert_int_eq(file_get(&r->files, &key, &f), 0);
	f->pid = getpid();
	return f;
}

struct frame *namer_rig_frame(struct namer_rig *r, struct file *f, uint64_t offset)
{
	struct frame *frame;

	ck_assert_int_eq(frame_get(&r->files, f, offset, &frame), 0);
	ck_assert_int_eq(namer_name(r->namer, frame, r->uid), 0);
	return frame;
}

struct frame *namer_rig_name(struct namer_rig *r, struct file *f, uint64_t offset)
{
	struct frame *frame = namer_rig_frame(r, f, offset);

	ck_assert(namer_rig_run(r));
	return frame;
}

const char *namer_rig_symbol(const struct frame *f)
{
	const char *name = f->n_places ? f->place[f->n_places - 1].function : NULL;

	return name ? name : "";
}

struct file *namer_rig_file_of(
	struct namer_rig *r, uid_t uid, const char *from, const char *section, const char *name)
{
	const char *path = namer_rig_copy(r, from, name);

	if (section)
		ck_assert_int_eq(
			namer_rig_shell("objcopy --add-section .mperf.test.%s=/etc/hostname '%s'",
				section, path),
			0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	ck_assert_int_eq(chown(path, uid, (gid_t)uid), 0);
	return namer_rig_file(r, FILE_ELF, path);
}

static __attribute__((noinline)) int namer_rig_honest_function(volatile int *x)
{
	*x += 1;
	return *x * 2;
}

uint64_t namer_rig_landmark(void)
{
	return namer_rig_find((void *)(uintptr_t)namer_rig_honest_function).offset;
}

struct frame *namer_rig_ask_honest(struct namer_rig *r, uid_t uid, const char *name)
{
	struct file *f = namer_rig_file_of(r, uid, namer_rig_self(), NULL, name);

	return namer_rig_frame(r, f, namer_rig_landmark());
}

void namer_rig_is_honest(const struct frame *f)
{
	ck_assert_int_eq(f->state, FRAME_NAMED);
	ck_assert_str_eq(namer_rig_symbol(f), "namer_rig_honest_function");
}

struct namer_rig_spot namer_rig_find(const void *addr)
{
	struct namer_rig_spot s = {0};
	char line[1024];
	uint64_t file_offset, wanted = (uint64_t)(uintptr_t)addr;
	FILE *maps = fopen("/proc/self/maps", "re");

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		s.path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511[^\n]",
			    &s.start, &s.end, &file_offset, s.path) < 3)
			continue;
		if (wanted < s.start || wanted >= s.end)
			continue;
		s.offset = wanted - s.start + file_offset;
		fclose(maps);
		return s;
	}
	ck_abort_msg("no mapping at %p", addr);
	fclose(maps);
	return s;
}
