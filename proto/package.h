/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The Debian package that has the debug symbols of a file */

#include <stddef.h>

#define PACKAGE_NAME_BYTES 128

/* Where dpkg and apt keep what they know. */
struct package_places {
	const char *dpkg; /* /var/lib/dpkg/info: NAME.list has the paths of a package, one a line */
	const char *lists; /* /var/lib/apt/lists: …_Packages, if they are not compressed */
	const char
		*cache; /* /var/cache/apt/pkgcache.bin: the names of all packages that apt knows */
};
extern const struct package_places package_places_debian;

enum package_found { PACKAGE_NONE, PACKAGE_GUESSED, PACKAGE_KNOWN };
/* Find the package that owns the file, and then the one that has its debug symbols. PACKAGE_KNOWN: apt knows it under
 * that name; PACKAGE_GUESSED: it does not, and this is how Debian names such packages; PACKAGE_NONE: no package owns
 * the file. Reads all of dpkg's lists, some 10 MB: not for each row of a table. */
enum package_found package_of_symbols(
	const struct package_places *places, const char *path, char ret_name[PACKAGE_NAME_BYTES]);
/* A remedy for a file without symbols: "`apt install libc6-dbg`". */
void package_remedy(
	const struct package_places *places, const char *path, char *ret_text, size_t size);
