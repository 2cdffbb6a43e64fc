// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Decisions of the pass, as analysis remarks of the pass "mperf"
//
// Show them with -Rpass-analysis=mperf in clang, with -pass-remarks-analysis=mperf in opt. If no
// remarks are requested they cost nothing.

namespace llvm
{
class CallBase;
class Function;
} // namespace llvm

namespace mperf
{

struct Counts;
class Flow;
struct Hoist;

// Each edge of the flow graph, and whether it is in the minimum spanning tree.
void remark_tree(llvm::Function &function, const Flow &flow);

// How the iterations of a loop are counted outside it.
void remark_hoist(llvm::Function &function, const Hoist &hoist);

// Each counter, and where it is updated.
void remark_counters(llvm::Function &function, const Counts &counts);

// A function that is not counted, since a resolver of an indirect function calls it.
void remark_reached(const llvm::Function &function, const llvm::Function &resolver);

// A call of a function that is not seen, by its name.
void remark_unseen(const llvm::CallBase &call);

} // namespace mperf
