/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names of functions, of which two runs have the same if it is the same function: without the suffixes that gcc and
 * clang give to copies; code without a symbol with the build of its file, since another build has other functions at
 * the same addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/compare/gather_private.h"

#define BUILD_DIGITS 8 /* shown of a build id */

/* Find where in name a copy's suffix begins. A suffix that ends with a dot has a number or a hash after it; after
 * one without a dot, the name ends or another suffix follows. "main.coldStart" has none. NULL: there is none. */
static const char *find_suffix(const char *name, const char *suffix)
{
	const size_t n = strlen(suffix);
	const char *found = strstr(name, suffix);
	while (found && suffix[n - 1] != '.' && found[n] != '\0' && found[n] != '.')
		found = strstr(found + 1, suffix);
	return found;
}

size_t gather_name_length(const char *name)
{
	static const char *const suffixes[] = {
		".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias"};
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		const char *found = find_suffix(name, suffixes[i]);
		if (found && found > name && (size_t)(found - name) < n)
			n = (size_t)(found - name);
	}
	return n;
}

int gather_function_text(struct text_table *texts, const char *name, const char *build,
	bool candidate, uint32_t *ret_id)
{
	_cleanup_(freep) char *made = NULL;
	int n = 0;
	if (name && build && *build)
		n = asprintf(&made, "%s (%.*s)", name, BUILD_DIGITS, build);
	else if (name && build) /* nothing says whether both sides ran the same */
		n = asprintf(&made, "%s (%s)", name, candidate ? "candidate" : "baseline");
	else if (name)
		n = asprintf(&made, "%.*s", (int)gather_name_length(name), name);
	if (n < 0) {
		made = NULL;
		return -ENOMEM;
	}
	return text_get(texts, made, ret_id);
}
