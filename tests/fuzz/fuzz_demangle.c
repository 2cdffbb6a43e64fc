/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a mangled name. */

#include <stdlib.h>
#include <string.h>

#include "daemon/namer/demangle.h"

/* A hostile Rust name in Punycode may leak one buffer: see demangle.c. It is the parser's, whose
 * memory is limited. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:print_ident\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char readable[DEMANGLED_BYTES];
	char *mangled = malloc(size + 1);

	if (!mangled)
		return 0;
	if (size)
		memcpy(mangled, data, size);
	mangled[size] = '\0';
	if (demangle(mangled, readable) == 0 && strlen(readable) > IMAGE_NAME_BYTES_MAX)
		abort();
	free(mangled);
	return 0;
}
