/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names of functions without the suffixes that gcc and clang give to copies.
 */
#include <errno.h>
#include <string.h>

#include "daemon/compare/gather_private.h"

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

int gather_function_text(struct text_table *texts, const char *name, uint32_t *ret_id)
{
	_cleanup_(freep) char *bare = name ? strndup(name, gather_name_length(name)) : NULL;
	if (name && !bare)
		return -ENOMEM;
	return text_get(texts, bare, ret_id);
}
