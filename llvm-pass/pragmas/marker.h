// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Markers that pragmas became
//
// handler.cc makes them while the file is read, check.cc looks at where they stand when all of it
// was.

#include "clang/Basic/SourceLocation.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mperf
{

struct Marker {
	bool begins;
	std::string name;
};

// Of the file that is compiled, by where the pragma stands. A compiler compiles one file at a time.
inline llvm::DenseMap<clang::SourceLocation, Marker> &markers()
{
	static llvm::DenseMap<clang::SourceLocation, Marker> all;
	return all;
}

} // namespace mperf
