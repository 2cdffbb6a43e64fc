/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copies of functions, by the suffixes that gcc and clang give them.
 */
#include <string.h>

#include "daemon/compare/gather_private.h"

size_t gather_name_length(const char *name)
{
	static const char *const suffixes[] = {
		".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias"};
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		const char *found = strstr(name, suffixes[i]);
		if (found && found > name && (size_t)(found - name) < n)
			n = (size_t)(found - name);
	}
	return n;
}
