// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks and values have their names from the module's text. Release builds of clang drop the names
// of values; -fno-discard-value-names keeps them.

#include "remarks.h"
#include "counts.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace mperf
{

namespace
{

using Remark = OptimizationRemarkAnalysis;

constexpr char PASS[] = "mperf";

std::string name_of(const BasicBlock *block)
{
	if (!block)
		return "outside";
	std::string name;
	raw_string_ostream stream(name);
	block->printAsOperand(stream, false);
	return stream.str();
}

// A block, or the edge between two.
std::string position_of(const BasicBlock *from, const BasicBlock *to, bool within)
{
	return within ? "block " + name_of(from) : "edge " + name_of(from) + " -> " + name_of(to);
}

std::string amount_of(const Hoist &hoist)
{
	std::string text;
	raw_string_ostream stream(text);
	if (hoist.induction)
		hoist.induction->printAsOperand(stream << "distance of ", false);
	else
		hoist.amount->print(stream);
	return stream.str();
}

Remark remark_at(StringRef name, const BasicBlock *block)
{
	return Remark(PASS, name, block->getTerminator()->getDebugLoc(), block);
}

} // namespace

void remark_tree(Function &function, const Flow &flow)
{
	OptimizationRemarkEmitter emitter(&function);
	if (!emitter.allowExtraAnalysis(PASS))
		return;
	for (const Edge &edge : flow.edges) {
		emitter.emit([&] {
			return remark_at("SpanningTree", edge.from ? edge.from : edge.to)
			       << position_of(edge.from, edge.to, edge.within) << ", weight "
			       << ore::NV("Weight", edge.weight)
			       << (edge.in_mst         ? ": in the minimum spanning tree"
					  : edge.known ? ": known from the callers"
						       : ": outside, to be counted");
		});
	}
}

void remark_hoist(Function &function, const Hoist &hoist)
{
	OptimizationRemarkEmitter emitter(&function);
	if (!emitter.allowExtraAnalysis(PASS))
		return;
	emitter.emit([&] {
		return Remark(PASS, "Hoist", hoist.loop->getStartLoc(), hoist.loop->getHeader())
		       << "loop " << name_of(hoist.loop->getHeader()) << ": iterations known in "
		       << (hoist.induction ? "its exits"
					   : "block " + name_of(hoist.insertion_point))
		       << ": " << ore::NV("Amount", amount_of(hoist));
	});
}

void remark_counters(Function &function, const Counts &counts)
{
	OptimizationRemarkEmitter emitter(&function);
	if (!emitter.allowExtraAnalysis(PASS))
		return;
	for (const Update &update : counts.updates) {
		emitter.emit([&] {
			return remark_at("Counter", update.from)
			       << "counter " << ore::NV("Counter", update.counter) << ": "
			       << position_of(update.from, update.to, update.within)
			       << (update.hoist ? ", hoisted" : "");
		});
	}
}

void remark_reached(const Function &function, const Function &resolver)
{
	OptimizationRemarkEmitter emitter(&function);
	if (!emitter.allowExtraAnalysis(PASS))
		return;
	emitter.emit([&] {
		return remark_at("NotCounted", &function.getEntryBlock())
		       << "function " << function.getName() << " is not counted: the resolver "
		       << resolver.getName() << " calls it, before there are threads";
	});
}

void remark_unseen(const CallBase &call)
{
	OptimizationRemarkEmitter emitter(call.getFunction());
	if (!emitter.allowExtraAnalysis(PASS))
		return;
	emitter.emit([&] {
		const Function *callee =
			cast<Function>(call.getCalledOperand()->stripPointerCasts());
		return Remark(PASS, "NotSeen", call.getDebugLoc(), call.getParent())
		       << "call of " << callee->getName() << ", which is not seen";
	});
}

} // namespace mperf
