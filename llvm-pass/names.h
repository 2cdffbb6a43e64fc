// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Names of targets' intrinsics, and their meaning

#include "llvm/ADT/StringRef.h"

namespace mperf
{

enum class Kind {
	OPERATIONS, // arithmetic: `each` operations in each lane of the result, or of the reduced
		    // vector
	ACCESS,     // loads or stores
	NONE,       // not counted: moves, masks, comparisons, conversions, fences
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
