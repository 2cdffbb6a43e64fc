/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* many_names N: the first thread changes its name N times, while two others run; then it runs as "last-name" until it
 * is killed.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static atomic_bool done;

static void *work(void *nothing)
{
	while (!done)
		;
	return nothing;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	char name[16];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 0); i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
	}
	done = true;
	prctl(PR_SET_NAME, "last-name");
	for (;;)
		;
}
