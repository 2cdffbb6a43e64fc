// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A roofline has rows of loops, for which most of what is outside of them need not be counted. An
// operation on floats outside of a loop is: if a loop calls it, its time is the loop's, too.
//
// Operations are read off types: which of them are FLOPs, and how many, is what the reader finds
// out, if there are any.
//
// Even an untimed entry into a nest costs a few instructions, which is much where nests are short.

#include "wanted.h"
#include "meaning.h"
#include "scopes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace mperf
{

namespace
{

bool is_float_or_vector(const Type *type)
{
	return type->isFPOrFPVectorTy() || type->isVectorTy();
}

bool has_floats_or_vectors(const CallBase &call)
{
	return is_float_or_vector(call.getType()) || any_of(call.args(), [](const Use &use) {
		return is_float_or_vector(use->getType());
	});
}

// Vector loads and stores alone do not count, since compilers use them to move structures.
bool is_operation(const Instruction &instruction)
{
	if (isa<BinaryOperator>(instruction))
		return is_float_or_vector(instruction.getType());
	if (const auto *update = dyn_cast<AtomicRMWInst>(&instruction))
		return AtomicRMWInst::isFPOperation(update->getOperation());
	const auto *call = dyn_cast<CallBase>(&instruction);
	if (!call || isa<MemIntrinsic>(call))
		return false;
	const Function *callee = call->getCalledFunction();
	return callee && callee->isDeclaration() && has_floats_or_vectors(*call);
}

// Loads and stores included: a loop that only copies floats has a bandwidth.
bool has_value_to_time(const Instruction &instruction)
{
	if (isa<MemIntrinsic>(instruction) || is_float_or_vector(instruction.getType()))
		return true;
	return any_of(instruction.operands(),
		[](const Use &use) { return is_float_or_vector(use->getType()); });
}

bool has_operations(const BasicBlock &block)
{
	return any_of(block, is_operation);
}

} // namespace

bool is_wanted(const Function &function)
{
	if (any_of(function, has_operations))
		return true;
	SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 8> backedges;
	FindFunctionBackedges(function, backedges);
	return !backedges.empty();
}

Blocks drop_outside_loops(Function &function, const LoopInfo &loops, const Scopes &scopes,
	Table &table, Meaning &meaning)
{
	const uint32_t whole = scopes.of_function();
	const auto is_of_whole = [&](uint32_t number) {
		const Scope &scope = table.scope(number);
		return number == whole ||
		       (scope.kind == MPERF_SCOPE_CALLEE && scope.parent == whole + 1);
	};
	const auto is_outside = [&](const BasicBlock &block) { return !loops.getLoopFor(&block); };
	if (any_of(function, [&](const BasicBlock &block) {
		    return is_outside(block) && has_operations(block);
	    }))
		return {};
	Blocks dropped;
	for (const BasicBlock &block : function) {
		Terms &terms = meaning.terms[&block];
		for (auto term = terms.begin(); term != terms.end();)
			term = is_of_whole(term->first.first) ? terms.erase(term) : std::next(term);
		if (!is_outside(block))
			continue;
		meaning.quantities[&block].clear();
		if (terms.empty())
			dropped.insert(&block);
	}
	return dropped;
}

bool is_timed(const Loop &loop)
{
	return any_of(loop.blocks(),
		[](const BasicBlock *block) { return any_of(*block, has_value_to_time); });
}

} // namespace mperf
