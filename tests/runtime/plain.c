/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Programs without a runtime of their own: one that has markers only, and does the same where the
 * runtime is linked and where it is not; and one that opens libraries which bring their own.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/mperf.h"

static int library(const char *path, int n)
{
	for (int i = 0; i < n; i++) {
		void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
		if (!count) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		count();
		dlclose(l);
	}
	return 0;
}

/* Two that do not see one another; the first, which serves both, is closed before the
 * second ends. */
static int both(char **paths)
{
	void *first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
	void *second = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
	void (*one)(void) = first ? (void (*)(void))dlsym(first, "library_count") : NULL;
	void (*other)(void) = second ? (void (*)(void))dlsym(second, "library_count") : NULL;
	if (!one || !other)
		return 1;
	one();
	other();
	dlclose(first);
	other();
	return 0;
}

static int entries(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;
	while (folder && readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* Pages of address space. */
static long pages(void)
{
	long n = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld", &n) != 1)
		exit(1);
	fclose(file);
	return n;
}

static void *counts(void *path)
{
	return library(path, 1) == 0 ? path : NULL;
}

/* Opened again and again, in this thread or each time in a new one: says how many descriptors and
 * pages there are more than after the first time. Ends where only handlers that are still there may
 * be called. */
static int again(char *path, int n, bool in_threads)
{
	int descriptors = 0;
	long mapped = 0;
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		void *done = path;
		if (!in_threads)
			done = counts(path);
		else if (pthread_create(&thread, NULL, counts, path) != 0 ||
			 pthread_join(thread, &done) != 0)
			return 1;
		if (!done)
			return 1;
		if (i == 0) {
			descriptors = entries("/proc/self/fd");
			mapped = pages();
		}
	}
	printf("%d %ld\n", entries("/proc/self/fd") - descriptors, pages() - mapped);
	fflush(stdout);
	quick_exit(0);
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return again(argv[2], atoi(argv[3]), strcmp(argv[4], "threads") == 0);
	if (argc == 4)
		return both(argv + 2);
	if (argc == 3)
		return library(argv[1], atoi(argv[2]));
	for (int i = 0; i < 10; i++) {
		MPERF_REGION("solve");
	}
	return 0;
}
