// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Names of targets' intrinsics, and what they say

#include "llvm/ADT/StringRef.h"

namespace mperf
{

enum class Kind {
	OPERATIONS, // arithmetic: `each` in each lane of the result, or of what is reduced
	ACCESS,     // loads or stores
	NONE,       // nothing that is counted: moves, masks, comparisons, conversions, fences
	UNKNOWN     // its loop is flagged
};

struct Known {
	Kind kind;
	unsigned each;
	bool reduces;
};

// The name of an intrinsic of any target, without its types or with them: "llvm.x86.sse.min.ss"
Known known_intrinsic(llvm::StringRef name);

} // namespace mperf
