/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program of known depth
 *
 *      depth N          N calls of descend() lie between main() and spin()
 *      depth N CASE     and what CASE says between the last of them and spin()
 *      depth N CASE MS  for that much time of a processor
 *
 * Built with -fomit-frame-pointer it has no frame pointers to follow: only call frame information
 * leads from spin() to _start(), over N + 3 frames of this file. One byte on standard output says
 * that the bottom is reached; then it spins until it is killed, or for a minute.
 */

#define _GNU_SOURCE
#include <alloca.h>
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOT_INLINED
#define NOT_INLINED __attribute__((noinline))
#endif

static volatile unsigned long sink;
static volatile int done; /* never: but a compiler cannot know */

static long limit_ms;

/* End after the time that was asked for. A child does not inherit it. */
static void set_limits(void)
{
	const struct itimerval timer = {.it_value = {limit_ms / 1000, limit_ms % 1000 * 1000}};

	alarm(60);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

/* A call that each turn of spin() makes, besides counting. */
static enum turn { COUNTS, READS_CLOCK, CALLS_LIBRARY } turn;

static NOT_INLINED void spin(void)
{
	struct timespec now;

	if (write(STDOUT_FILENO, "x", 1) != 1)
		_exit(1);
	while (!done) {
		if (turn == READS_CLOCK)
			clock_gettime(CLOCK_MONOTONIC, &now);
		if (turn == CALLS_LIBRARY)
			for (int i = 0; i < 100; i++)
				sink += (unsigned long)toupper('a' + i % 26);
		for (int i = 0; i < 100; i++)
			sink += (unsigned long)i;
	}
}

/* --- cases ------------------------------------------------------------------------------------ */

/* It calls nothing, and so need not keep a frame. */
static NOT_INLINED void leaf(void)
{
	while (!done)
		for (int i = 0; i < 100; i++)
			sink += (unsigned long)i;
}

static void in_leaf(void)
{
	if (write(STDOUT_FILENO, "x", 1) != 1)
		_exit(1);
	leaf();
	sink++;
}

static NOT_INLINED void in_alloca(void)
{
	volatile char *room = alloca(1000 + (size_t)done);

	room[sink % 1000] = 1;
	spin();
	sink += (unsigned long)room[0];
}

/* More than a copy of 16 KiB holds. A copy ends at a page that was never written to, too. */
static NOT_INLINED void in_large(void)
{
	volatile char room[40 << 10];

	for (size_t i = 0; i < sizeof(room); i += 64)
		room[i] = 1;
	spin();
	sink += (unsigned long)room[0];
}

static int compare(const void *a, const void *b)
{
	spin();
	return *(const int *)a - *(const int *)b;
}

static NOT_INLINED void in_qsort(void)
{
	int numbers[] = {2, 1, 3};

	qsort(numbers, 3, sizeof(*numbers), compare);
	sink += (unsigned long)numbers[0];
}

static void handle(int number)
{
	(void)number;
	spin();
	sink++;
}

static NOT_INLINED void in_signal(void)
{
	const struct sigaction action = {.sa_handler = handle};

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink++;
}

static NOT_INLINED void in_altstack(void)
{
	const stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink++;
}

static NOT_INLINED void in_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		set_limits();
		spin();
		_exit(0);
	}
	sink++;
}

/* The call is its last instruction, so that the return address is in another function. */
static NOT_INLINED __attribute__((noreturn)) void never_returns(void)
{
	spin();
	for (;;)
		sink++;
}

static NOT_INLINED __attribute__((noreturn)) void in_end(void)
{
	sink++;
	never_returns();
}

/* Code without call frame information. */
#if defined(__x86_64__)
__asm__(".text\n.type in_bare, @function\nin_bare:\n\tsubq $24, %rsp\n\tcall bare_spin\n\taddq "
	"$24, %rsp\n"
	"\tret\n.size in_bare, .-in_bare\n");
#elif defined(__riscv)
__asm__(".text\n.type in_bare, @function\nin_bare:\n\taddi sp, sp, -32\n\tsd ra, 24(sp)\n\tcall "
	"bare_spin\n"
	"\tld ra, 24(sp)\n\taddi sp, sp, 32\n\tret\n.size in_bare, .-in_bare\n");
#else
__asm__(".text\n.type in_bare, @function\nin_bare:\n\tsub sp, sp, #32\n\tstr x30, [sp, #24]\n\tbl "
	"bare_spin\n"
	"\tldr x30, [sp, #24]\n\tadd sp, sp, #32\n\tret\n.size in_bare, .-in_bare\n");
#endif
void in_bare(void);
void bare_spin(void);
__attribute__((used)) NOT_INLINED void bare_spin(void)
{
	spin();
	sink++;
}

/* --- generated code --------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* sub $24,%rsp; call *%rdi; add $24,%rsp; ret */
static const uint8_t code[] = {0x48, 0x83, 0xec, 24, 0xff, 0xd7, 0x48, 0x83, 0xc4, 24, 0xc3};

/* CFA = rsp + 8; from the fifth byte on + 32; at the last one + 8 again. The address is relative, as perf places it: at the
 * next multiple of eight behind the code. */
static const uint8_t frames[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,
	0x0c, 7, 8, 0x90, 1, 0, 0, 0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff,
	sizeof(code), 0, 0, 0, 0, 0x44, 0x0e, 32, 0x46, 0x0e, 8, 0};

static void put(int fd, const void *bytes, size_t n)
{
	if (write(fd, bytes, n) != (ssize_t)n)
		_exit(3);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Source: tools/perf/Documentation/jitdump-specification.txt */
static void write_dump(const void *at, int is_described)
{
	char path[64];
	const uint32_t pid = (uint32_t)getpid();

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)pid);
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(3);
	const uint32_t head[] = {0x4A695444, 1, 40, 62, 0, pid, 0, 0, 0, 0};
	const struct {
		uint32_t type, bytes;
		uint64_t time_ns, n, n_head, n_mapped;
	} unwinding = {
		4, sizeof(unwinding) + sizeof(frames), now_ns(), sizeof(frames), 0, sizeof(frames)};
	const char name[] = "generated";
	const struct {
		uint32_t type, bytes;
		uint64_t time_ns;
		uint32_t pid, tid;
		uint64_t vma, addr, n, index;
	} load = {0, sizeof(load) + sizeof(name) + sizeof(code), now_ns(), pid, pid, (uintptr_t)at,
		(uintptr_t)at, sizeof(code), 1};
	put(fd, head, sizeof(head));
	if (is_described) {
		put(fd, &unwinding, sizeof(unwinding));
		put(fd, frames, sizeof(frames));
	}
	put(fd, &load, sizeof(load));
	put(fd, name, sizeof(name));
	put(fd, code, sizeof(code));
	close(fd);
}

static NOT_INLINED void in_generated(int is_described)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(void (*callee)(void));

	if (at == MAP_FAILED)
		_exit(3);
	memcpy(at, code, sizeof(code));
	if (mprotect(at, 4096, PROT_READ | PROT_EXEC) < 0)
		_exit(3);
	write_dump(at, is_described);
	memcpy(&run, &at, sizeof(run));
	run(bare_spin);
	sink++;
}
#else
static void in_generated(int is_described)
{
	(void)is_described;
	_exit(77);
}
#endif

static NOT_INLINED void in_jit(void)
{
	in_generated(1);
	sink++;
}

static NOT_INLINED void in_jit_bare(void)
{
	in_generated(0);
	sink++;
}

/* --- depth ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(void);
	enum turn turn;
} cases[] = {
	{"plain", spin, COUNTS},
	{"clock", spin, READS_CLOCK}, /* many samples fall into the vDSO */
	{"plt", spin, CALLS_LIBRARY}, /* … into the PLT, where that is how libraries are called */
	{"leaf", in_leaf, COUNTS},
	{"alloca", in_alloca, COUNTS},
	{"large", in_large, COUNTS},
	{"qsort", in_qsort, COUNTS},
	{"signal", in_signal, COUNTS},
	{"altstack", in_altstack, COUNTS},
	{"vfork", in_vfork, COUNTS},
	{"end", in_end, COUNTS},
	{"bare", in_bare, COUNTS},
	{"jit", in_jit, COUNTS},
	{"jit-bare", in_jit_bare, COUNTS},
};

/* The array makes frames larger than a return address; what follows the call keeps it from being a
 * jump. */
static NOT_INLINED void descend(int depth, void (*run)(void))
{
	volatile char room[40];

	room[depth % 40] = (char)depth;
	if (depth > 1)
		descend(depth - 1, run);
	else
		run();
	sink += (unsigned long)room[depth % 40];
}

int main(int argc, char *argv[])
{
	int depth = argc > 1 ? atoi(argv[1]) : 20;
	const char *name = argc > 2 ? argv[2] : "plain";

	limit_ms = argc > 3 ? atol(argv[3]) : 0;
	set_limits();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(cases[i].name, name)) {
			turn = cases[i].turn;
			descend(depth > 0 ? depth : 1, cases[i].run);
			return 0;
		}
	fprintf(stderr, "depth: there is no case %s\n", name);
	return 2;
}
