/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Demangling: C++ and Rust names in readable form */

#include "daemon/namer/image.h"

/* Size of the longest result with its NUL. */
#define DEMANGLED_BYTES (IMAGE_NAME_BYTES_MAX + 1)

enum {
	DEMANGLE_PLAIN = 1, /* not mangled, or not understood: show the raw name */
};

/* Without parameters and return types: "ns::f<int>", "core::fmt::write". Suffixes of clones are
 * kept as " [clone .cold]", of versions and PLT entries as they are; LLVM's ".llvm.123" is dropped.
 * Longer results are cut and end in "…". 0 or DEMANGLE_PLAIN, with ret untouched. */
int demangle(const char *mangled, char ret_readable[DEMANGLED_BYTES]);
