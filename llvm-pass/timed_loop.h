// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Times outermost loops

#include <cstdint>

namespace llvm
{
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

class Base;
class Emitter;
class Table;

// Common to all timed loops of a function; borrowed.
struct LoopTimer {
	Emitter &emitter;
	Base &base;
	Table &table;
	llvm::LoopInfo &loops;

	// Adds code around a loop that times it for that scope, and its MPERF_TIMED_WORDS to the
	// table. Dominators are then out of date. False: the loop has no preheader or no dedicated
	// exits.
	bool add(llvm::Loop &loop, uint32_t scope) const;
};

} // namespace mperf
