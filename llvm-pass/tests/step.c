/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *      step PROGRAM FUNCTION...
 *
 * Runs a program, and its functions at these addresses (hexadecimal; not position-independent) one
 * instruction at a time. Prints how often each of their instructions ran, one line "address count"
 * for each of the code between the first function and CODE_BYTES behind it. So the processor says
 * what ran, without counters of its own.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_BYTES (64u << 10) /* kernels of one file have a few thousand */
#define TRAP 0xcc              /* int3 */

static uint64_t first = UINT64_MAX;
static uint64_t counts[CODE_BYTES];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long ask(int request, pid_t pid, uint64_t address, void *data)
{
	errno = 0;
	const long answer = ptrace(request, pid, (void *)address, data);
	if (answer == -1 && errno != 0)
		fail("ptrace");
	return answer;
}

static pid_t start(char *program)
{
	const pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		ask(PTRACE_TRACEME, 0, 0, NULL);
		execl(program, program, (char *)NULL);
		fail(program);
	}
	return pid;
}

static int is_stopped(pid_t pid, int *ret_status)
{
	return waitpid(pid, ret_status, 0) == pid && WIFSTOPPED(*ret_status);
}

/* Puts a trap at the address; returns the word that was there. */
static long arm(pid_t pid, uint64_t address)
{
	const long word = ask(PTRACE_PEEKTEXT, pid, address, NULL);
	ask(PTRACE_POKETEXT, pid, address, (void *)((word & ~0xffl) | TRAP));
	return word;
}

/* From behind the trap at its begin until it returns. */
static void step_through(pid_t pid, struct user_regs_struct *at)
{
	const uint64_t until = ask(PTRACE_PEEKDATA, pid, at->rsp, NULL);
	at->rip--;
	ask(PTRACE_SETREGS, pid, 0, at);
	for (int status; at->rip != until; ask(PTRACE_GETREGS, pid, 0, at)) {
		if (at->rip - first < CODE_BYTES)
			counts[at->rip - first]++;
		ask(PTRACE_SINGLESTEP, pid, 0, NULL);
		if (!is_stopped(pid, &status))
			exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const pid_t pid = start(argv[1]);
	int status;
	if (!is_stopped(pid, &status))
		return 1;
	long *words = calloc(argc, sizeof(*words));
	if (!words)
		fail("calloc");
	for (int i = 2; i < argc; i++) {
		const uint64_t address = strtoull(argv[i], NULL, 16);
		words[i] = arm(pid, address);
		first = address < first ? address : first;
	}
	for (ask(PTRACE_CONT, pid, 0, NULL); is_stopped(pid, &status);
		ask(PTRACE_CONT, pid, 0, NULL)) {
		struct user_regs_struct at;
		ask(PTRACE_GETREGS, pid, 0, &at);
		int i = argc - 1;
		while (i >= 2 && strtoull(argv[i], NULL, 16) != at.rip - 1)
			i--;
		if (i < 2)
			return 1;
		ask(PTRACE_POKETEXT, pid, at.rip - 1, (void *)words[i]);
		step_through(pid, &at);
		arm(pid, strtoull(argv[i], NULL, 16));
	}
	for (uint64_t i = 0; i < CODE_BYTES; i++) {
		if (counts[i])
			printf("%lx %lu\n", first + i, counts[i]);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
