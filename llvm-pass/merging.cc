// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vectoriser leaves equal operations in its loops, one for each part of an interleaved loop, and
// operations on vectors whose lanes are all the same: C[j] += a * A[r] * B[j] has a * A[r] in each
// lane. No pass of the optimiser's end removes them, but the code generator does:
//
//      repeated    Its graph of a block has no two equal nodes. Loads are equal too if nothing
//                  writes between them.
//      scalar      An operation on two broadcasts (the same number in all lanes) becomes one on
//                  scalars and a broadcast of its result. Only broadcasts of the same block count:
//                  the graph does not show how a value of another block was made.
//
// Equal operations of different blocks, which a later pass may merge, are not looked for.
//
// Source: LLVM 16 and 19, SelectionDAG.cpp, getNode(), getLoad(); DAGCombiner.cpp,
// scalarizeBinOpOfSplats(); X86ISelLowering.cpp, isExtractVecEltCheap().

#include "merging.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Does it only compute a value from its operands?
bool is_pure(const Instruction &instruction)
{
	if (isa<BinaryOperator, UnaryOperator, CastInst, CmpInst, GetElementPtrInst, SelectInst,
		    InsertElementInst, ExtractElementInst, ShuffleVectorInst>(instruction))
		return true;
	const auto *call = dyn_cast<IntrinsicInst>(&instruction);
	return call && call->doesNotAccessMemory() && !call->mayHaveSideEffects() &&
	       !call->isConvergent() && !call->getType()->isVoidTy();
}

bool is_plain_load(const Instruction &instruction)
{
	const auto *load = dyn_cast<LoadInst>(&instruction);
	return load && load->isSimple();
}

// LLVM's own hashing uses a variable that another version of clang lacks: then the plugin could not
// load to report the wrong version.
uint64_t mixed(uint64_t hash, const void *next)
{
	const uint64_t odd = 0x9e3779b97f4a7c15; // 2^64 over the golden ratio
	hash = (hash ^ reinterpret_cast<uintptr_t>(next)) * odd;
	return hash ^ hash >> 32;
}

// Integers have no cheap way from a vector to a scalar and back.
bool becomes_scalar_on(const Triple &triple, const Type &type)
{
	const Type *element = type.getScalarType();
	if (!element->isFloatTy() && !element->isDoubleTy())
		return false;
	return isa<ScalableVectorType>(type) || triple.getArch() == Triple::x86_64;
}

} // namespace

bool Merging::is_broadcast(const Value *value) const
{
	const auto *constant = dyn_cast<Constant>(value);
	return broadcasts.count(first_of(value)) || (constant && constant->getSplatValue());
}

bool Merging::is_scalar(const Instruction &instruction) const
{
	const unsigned opcode = instruction.getOpcode();
	return instruction.getType()->isVectorTy() &&
	       (opcode == Instruction::FAdd || opcode == Instruction::FSub ||
		       opcode == Instruction::FMul || opcode == Instruction::FDiv) &&
	       is_broadcast(instruction.getOperand(0)) && is_broadcast(instruction.getOperand(1)) &&
	       becomes_scalar_on(
		       Triple(instruction.getModule()->getTargetTriple()), *instruction.getType());
}

const Value *Merging::first_of(const Value *value) const
{
	const auto first = firsts.find(value);
	return first == firsts.end() ? value : first->second;
}

uint64_t Merging::hash_of(const Instruction &instruction) const
{
	uint64_t hash = mixed(instruction.getOpcode(), instruction.getType());
	unsigned n = 0;
	if (instruction.isCommutative()) { // its first two operands
		const Value *one = first_of(instruction.getOperand(0));
		const Value *other = first_of(instruction.getOperand(1));
		hash = mixed(mixed(hash, std::min(one, other)), std::max(one, other));
		n = 2;
	}
	for (; n < instruction.getNumOperands(); n++)
		hash = mixed(hash, first_of(instruction.getOperand(n)));
	return hash >> 1; // the map reserves the two greatest keys
}

bool Merging::are_equal(const Instruction &one, const Instruction &other) const
{
	if (!one.isSameOperationAs(&other))
		return false;
	const auto same = [&](unsigned i, unsigned j) {
		return first_of(one.getOperand(i)) == first_of(other.getOperand(j));
	};
	unsigned n = 0;
	if (one.isCommutative() && same(0, 1) && same(1, 0))
		n = 2;
	for (; n < one.getNumOperands(); n++) {
		if (!same(n, n))
			return false;
	}
	return true;
}

bool Merging::is_repeated(const Instruction &instruction, Known &known)
{
	auto &candidates = known[hash_of(instruction)];
	for (const Instruction *first : candidates) {
		if (!are_equal(*first, instruction))
			continue;
		firsts[&instruction] = first;
		return true;
	}
	candidates.push_back(&instruction);
	return false;
}

Form Merging::add(const Instruction &instruction)
{
	if (!optimised || instruction.isDebugOrPseudoInst())
		return Form::OWN;
	if (instruction.mayWriteToMemory())
		loads.clear();
	const bool pure = is_pure(instruction);
	if ((pure && is_repeated(instruction, values)) ||
		(is_plain_load(instruction) && is_repeated(instruction, loads)))
		return Form::REPEATED;
	if (const auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) {
		if (shuffle->isZeroEltSplat())
			broadcasts.insert(shuffle);
	} else if (is_scalar(instruction)) {
		broadcasts.insert(&instruction);
		return Form::SCALAR;
	}
	return Form::OWN;
}

} // namespace mperf
