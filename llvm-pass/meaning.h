// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Meaning of blocks: the amounts that one run of each block of a function adds, however runs are
// counted

#include "quantity.h"

#include "llvm/ADT/DenseMap.h"

#include <list>
#include <map>

namespace llvm
{
class BasicBlock;
class Function;
class LoopInfo;
class TargetLibraryInfo;
class TargetTransformInfo;
} // namespace llvm

namespace mperf
{

class Scopes;

// Terms that one run of a block adds: factors by (scope, metric key)
using Terms = std::map<std::pair<uint32_t, uint32_t>, int64_t>;

struct Meaning {
	llvm::DenseMap<const llvm::BasicBlock *, Terms> terms;
	llvm::DenseMap<const llvm::BasicBlock *, std::list<Quantity>> quantities;
};

// Reads a function after prepare.h, and sets flags of its scopes in the table. cloned: this is one
// of its two bodies.
Meaning read_meaning(llvm::Function &function, const llvm::LoopInfo &loops, const Scopes &scopes,
	const llvm::TargetTransformInfo &target, const llvm::TargetLibraryInfo &library,
	Table &table, bool cloned);

} // namespace mperf
