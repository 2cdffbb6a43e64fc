/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program whose system calls pass a long classic BPF filter, which has no name in the kernel
 *
 *      filtered MS   makes such calls for so long. Exit status 77: the kernel does not take the filter.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char *argv[])
{
	static struct sock_filter filter[BPF_MAXINSNS];
	const struct sock_fprog program = {BPF_MAXINSNS, filter};
	const double end = now() + (argc > 1 ? atof(argv[1]) : 500) * 1e-3;

	for (int i = 0; i < BPF_MAXINSNS - 1; i++)
		filter[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 3);
	filter[BPF_MAXINSNS - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	while (now() < end)
		for (int i = 0; i < 100; i++)
			syscall(SYS_getppid);
	return 0;
}
