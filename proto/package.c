/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library that packages build by themselves (libc6, python3.11) has its symbols in NAME-dbg, all others in
 * NAME-dbgsym. Which one exists, apt knows. Source: Debian wiki, "DebugPackage"; man dpkg-query, "FILES".
 */
#include "proto/package.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base/memory.h"

const struct package_places package_places_debian = {
	.dpkg = "/var/lib/dpkg/info",
	.lists = "/var/lib/apt/lists",
	.cache = "/var/cache/apt/pkgcache.bin",
};

DEFINE_CLEANUP(DIR *, closedir)

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), n_end = strlen(end);

	return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* May the byte be part of a package's name? Source: Debian Policy, 5.6.7. */
static bool is_of_name(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c) || strchr("+-.", c);
}

struct word {
	const char *text;
	bool is_line; /* a whole line; else a whole name of a package */
};

static bool is_whole(const char *bytes, size_t n, size_t at, const struct word *w)
{
	const size_t end = at + strlen(w->text);
	const char before = at > 0 ? bytes[at - 1] : '\n', after = end < n ? bytes[end] : '\n';

	if (w->is_line)
		return before == '\n' && after == '\n';
	return (!before || !is_of_name(before)) && (!after || !is_of_name(after));
}

static bool bytes_have(const char *bytes, size_t n, const struct word *w)
{
	const char *at = bytes, *end = bytes + n;

	while ((at = memmem(at, (size_t)(end - at), w->text, strlen(w->text)))) {
		if (is_whole(bytes, n, (size_t)(at - bytes), w))
			return true;
		at++;
	}
	return false;
}

static bool file_has(int folder, const char *name, const struct word *w)
{
	_cleanup_(closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat s;

	if (fd < 0 || fstat(fd, &s) < 0 || !S_ISREG(s.st_mode) || s.st_size <= 0)
		return false;
	char *bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	const bool has = bytes_have(bytes, (size_t)s.st_size, w);
	munmap(bytes, (size_t)s.st_size);
	return has;
}

/* The first file of that folder with that ending that has the word: its name. */
static bool folder_has(
	const char *folder, const char *ending, const struct word *w, char ret_name[NAME_MAX + 1])
{
	_cleanup_(closedirp) DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (ends_with(e->d_name, ending) && file_has(dirfd(d), e->d_name, w)) {
			snprintf(ret_name, NAME_MAX + 1, "%s", e->d_name);
			return true;
		}
	return false;
}

/* The package's name, from "libc6:amd64.list". Where /lib is a link to /usr/lib, dpkg may know the file as /lib/…. */
static bool find_owner(const char *dpkg, const char *path, char ret_name[NAME_MAX + 1])
{
	const bool in_usr = strncmp(path, "/usr/", 5) == 0;
	const struct word whole = {path, true}, moved = {in_usr ? path + 4 : path, true};

	if (path[0] != '/' || strchr(path, '\n'))
		return false;
	if (!folder_has(dpkg, ".list", &whole, ret_name) &&
		(!in_usr || !folder_has(dpkg, ".list", &moved, ret_name)))
		return false;
	ret_name[strlen(ret_name) - strlen(".list")] = '\0';
	ret_name[strcspn(ret_name, ":")] = '\0';
	return ret_name[0];
}

static bool is_known(const struct package_places *places, const char *name)
{
	const struct word w = {name, false};
	char list[NAME_MAX + 1];

	return file_has(AT_FDCWD, places->cache, &w) ||
	       folder_has(places->lists, "_Packages", &w, list);
}

enum package_found package_of_symbols(
	const struct package_places *places, const char *path, char ret_name[PACKAGE_NAME_BYTES])
{
	static const char *const endings[] = {"-dbg", "-dbgsym"};
	char owner[NAME_MAX + 1];

	if (!find_owner(places->dpkg, path, owner) || strlen(owner) > PACKAGE_NAME_BYTES - 10)
		return PACKAGE_NONE;
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		snprintf(ret_name, PACKAGE_NAME_BYTES, "%.100s%s", owner, endings[i]);
		if (is_known(places, ret_name))
			return PACKAGE_KNOWN;
	}
	if (strcmp(owner, "libc6") != 0)
		return PACKAGE_GUESSED;
	snprintf(ret_name, PACKAGE_NAME_BYTES, "libc6-dbg");
	return PACKAGE_KNOWN; /* in every Debian, also where apt has no lists */
}

void package_remedy(
	const struct package_places *places, const char *path, char *ret_text, size_t size)
{
	char name[PACKAGE_NAME_BYTES];

	switch (package_of_symbols(places, path, name)) {
	case PACKAGE_KNOWN:
		snprintf(ret_text, size, "`apt install %s`", name);
		return;
	case PACKAGE_GUESSED:
		snprintf(ret_text, size,
			"`apt install %s`; -dbgsym packages are in Debian's archive of debug "
			"symbols, "
			"which apt may not have in its sources",
			name);
		return;
	case PACKAGE_NONE:
		snprintf(ret_text, size, "build it without strip, or with -g");
	}
}
