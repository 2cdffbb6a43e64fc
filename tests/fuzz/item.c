/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "tests/fuzz/item.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void item_die(const char *what)
{
	printf("whole_namer: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void read_part(struct part *p, const char *dir, const char *name)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(p->name, sizeof(p->name), "%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > PART_BYTES_MAX)
		item_die(path);
	p->n = (size_t)st.st_size;
	p->data = malloc(p->n ?: 1);
	if (!p->data || read(fd, p->data, p->n) != (ssize_t)p->n)
		item_die(path);
	close(fd);
}

void item_read(struct item *item, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		item_die(dir);
	*item = (struct item){.n_parts = 1};
	read_part(&item->part[0], dir, "main");
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, "main") != 0 &&
			item->n_parts < PARTS_MAX)
			read_part(&item->part[item->n_parts++], dir, e->d_name);
	closedir(d);
}

size_t items_read(struct item *items, size_t room, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];
	size_t n = 0;

	while (d && n < room && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			item_read(&items[n++], path);
		}
	if (d)
		closedir(d);
	return n;
}

void item_write(const struct item *item, const char *dir)
{
	char path[4096 + 64];

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		item_die(dir);
	for (size_t i = 0; i < item->n_parts; i++) {
		const struct part *p = &item->part[i];
		snprintf(path, sizeof(path), "%s/%s", dir, p->name);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, p->data, p->n) != (ssize_t)p->n)
			item_die(path);
		close(fd);
	}
}
