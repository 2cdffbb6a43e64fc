/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Call trees in the terminal: hotspots --tree, --callers, --callees. Returns the exit status. */

#include "client/options/options.h"

int hotspots_tree(const struct options *o);
