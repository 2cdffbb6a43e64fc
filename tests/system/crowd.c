/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A process with thousands of children that only wait: when a byte comes in, it starts them, and says their pids; at
 * the end of the input, or with us, they are gone.
 *
 *      crowd N
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const pid_t self = getpid();
	char byte;
	if (argc < 2 || read(STDIN_FILENO, &byte, 1) != 1)
		return 2;
	for (long n = atol(argv[1]); n > 0; n--) {
		const pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid > 0) {
			printf("%d\n", (int)pid);
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == self)
			pause();
		_exit(0);
	}
	puts("all");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
