// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function that only its module can call is entered as often as its calls run, and the callers
// count that already. So it needs no counter for its entries: the table charges their meaning to
// the counters of its callers. Straight-line code then costs nothing at all, and elsewhere the most
// expensive counter disappears.
//
//      caller:  count(b) = c1 - c2          callee:  count(entry) = count(b) + count(d)
//               b: … call callee …                   count(then)  = c3
//               d: … call callee …                   count(else)  = c1 - c2 + … - c3
//
// That holds while each call is reached as often as its block's count says. An earlier call that
// does not return (an exception, a longjmp) would make the callee's counts wrong, and not only by
// one path, as the caller's. So nothing is derived from a function that may be left midway. A
// recursive function counts its own entries.

#include "callers.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <algorithm>

using namespace llvm;

namespace mperf
{

namespace
{

// Limit of the counters from which entries are computed. Each repeats the function's terms in the
// table: for SQLite, 64 make the table 12 % larger, and save 0.07 % of the instructions.
constexpr size_t ENTRY_TERMS_MAX = 8;

// Functions that end the program. Other functions that never return may continue elsewhere. So may
// abort, in a handler of its signal, and a program's own __assert_fail, as in test frameworks.
bool ends_program(const Function *callee)
{
	static constexpr const char *NAMES[] = {"exit", "_exit", "_Exit", "quick_exit",
		"__stack_chk_fail", "_ZSt9terminatev", "__clang_call_terminate"};
	if (!callee)
		return false;
	return callee->isIntrinsic() || is_contained(NAMES, callee->getName());
}

} // namespace

// May control not return from this call?
bool Callers::may_leave(const CallBase &call) const
{
	const Function *callee = call.getCalledFunction();
	if (isa<IntrinsicInst>(call) || call.isInlineAsm())
		return !isGuaranteedToTransferExecutionToSuccessor(&call);
	if (callee && callee->hasExactDefinition())
		return leaving.count(callee) != 0;
	return !call.doesNotThrow();
}

// A call at its block's end has nothing after it whose count could be wrong.
bool Callers::is_left_midway(const Function &function) const
{
	for (const BasicBlock &block : function) {
		for (const Instruction &instruction : block) {
			const auto *call = dyn_cast<CallInst>(&instruction);
			if (call && !call->isMustTailCall() &&
				!isa<UnreachableInst>(call->getNextNode()) && may_leave(*call))
				return true;
		}
	}
	return false;
}

bool Callers::leaves(const Function &function) const
{
	for (const BasicBlock &block : function) {
		if (isa<ResumeInst>(block.getTerminator()))
			return true;
		for (const Instruction &instruction : block) {
			const auto *call = dyn_cast<CallBase>(&instruction);
			if (!call)
				continue;
			if (call->doesNotReturn() ? !ends_program(call->getCalledFunction())
						  : isa<CallInst>(call) && may_leave(*call))
				return true;
		}
	}
	return false;
}

void Callers::find_leaving(ArrayRef<Function *> known)
{
	std::vector<const Function *> changed;
	for (const Function *function : known) {
		if (leaves(*function)) {
			leaving.insert(function);
			changed.push_back(function);
		}
	}
	while (!changed.empty()) {
		const Function *function = changed.back();
		changed.pop_back();
		for (const Use &use : function->uses()) {
			const auto *call = dyn_cast<CallInst>(use.getUser());
			if (call && call->isCallee(&use) && function->hasExactDefinition() &&
				leaving.insert(call->getFunction()).second)
				changed.push_back(call->getFunction());
		}
	}
}

void Callers::find_local(ArrayRef<Function *> counted)
{
	const DenseSet<const Function *> known(counted.begin(), counted.end());
	for (const Function *function : counted) {
		if (!function->hasLocalLinkage() || function->use_empty())
			continue;
		const bool all = all_of(function->uses(), [&](const Use &use) {
			const auto *call = dyn_cast<CallBase>(use.getUser());
			return call && call->isCallee(&use) && known.count(call->getFunction());
		});
		if (all)
			local[function] = Calls();
	}
}

// Local functions that probably have counters, or call functions that do. Straight-line code has
// none if its callers show how often it runs.
void Callers::find_trusted(bool telling)
{
	std::vector<const Function *> wanting;
	for (const auto &[function, calls] : local) {
		if (!telling || function->size() > 1)
			wanting.push_back(function);
	}
	while (!wanting.empty()) {
		const Function *function = wanting.back();
		wanting.pop_back();
		if (!local.count(function) || !trusted.insert(function).second)
			continue;
		for (const User *user : function->users())
			wanting.push_back(cast<CallBase>(user)->getFunction());
	}
}

Callers::Callers(
	Module &module, ArrayRef<Function *> known, ArrayRef<Function *> counted, bool telling)
{
	find_local(counted);
	find_trusted(telling);
	find_leaving(known);
	const DenseSet<const Function *> wanted(counted.begin(), counted.end());
	DenseSet<const Function *> placed;
	CallGraph graph(module);
	for (auto group = scc_begin(&graph); !group.isAtEnd(); ++group) {
		for (const CallGraphNode *node : *group) {
			Function *function = node->getFunction();
			if (function && wanted.count(function) && placed.insert(function).second)
				in_order.push_back(function);
		}
	}
	// Functions that only call each other.
	for (Function *function : counted) {
		if (placed.insert(function).second)
			in_order.push_back(function);
	}
	std::reverse(in_order.begin(), in_order.end());
}

void Callers::add_calls(const CallBase &call, const Sum &times)
{
	const auto callee = local.find(call.getCalledFunction());
	if (callee == local.end() || callee->second.sum.size() > ENTRY_TERMS_MAX)
		return;
	callee->second.told++;
	add_sum(callee->second.sum, times);
}

const Sum *Callers::entries_of(const Function &function) const
{
	const auto calls = local.find(&function);
	const bool is_told = calls != local.end() && function.hasNUses(calls->second.told) &&
			     calls->second.sum.size() <= ENTRY_TERMS_MAX;
	return is_told ? &calls->second.sum : nullptr;
}

} // namespace mperf
