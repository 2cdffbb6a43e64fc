// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Takes the time of outermost loops

#include <cstdint>

namespace llvm
{
class DominatorTree;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

class Emitter;

class Base;
class Table;

// What all nests of a function have in common; borrowed.
struct NestTimer {
	Emitter &emitter;
	Base &base;
	Table &table;
	llvm::DominatorTree &dominators;
	llvm::LoopInfo &loops;

	// Surrounds a loop by the code that times it for that scope, and adds its MPERF_NEST_WORDS
	// to the table. False: the loop has no preheader or no exits of its own.
	bool add(llvm::Loop &loop, uint32_t scope) const;
};

} // namespace mperf
