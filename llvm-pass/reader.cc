// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// We count the program's text at the end of optimisation: an operation on a vector is one per lane,
// a fused multiply-add two, a comparison, a conversion, a negation none. What becomes no machine
// code (phis, casts of pointers, addresses that fold into accesses) is not counted as an
// instruction; the target's cost model decides that. What the code generator merges is counted once
// (merging.h).

#include "reader.h"
#include "lowered.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

// Whole values are loaded or stored: elements need not fill bytes.
static void add_plain_access(
	BlockMix &into, bool is_store, const Type *type, const Value *pointer, TypeSize bytes)
{
	const uint32_t variant = bytes.isScalable() ? MPERF_SCALABLE : 0;
	const uint64_t n = bytes.getKnownMinValue();
	into.mix.add(is_store ? MPERF_METRIC_STORES : MPERF_METRIC_LOADS, 1);
	into.mix.add(is_store ? MPERF_METRIC_BYTES_STORED : MPERF_METRIC_BYTES_LOADED, n, variant);
	if (is_local(pointer))
		into.mix.add(is_store ? MPERF_METRIC_STACK_BYTES_STORED
				      : MPERF_METRIC_STACK_BYTES_LOADED,
			n, variant);
	add_lanes(into, extent_of(type));
}

static bool is_float_atomic(AtomicRMWInst::BinOp operation)
{
	return AtomicRMWInst::isFPOperation(operation);
}

static void read_atomic_update(BlockMix &into, AtomicRMWInst &update, TypeSize bytes)
{
	const Type *type = update.getType();
	const Value *pointer = update.getPointerOperand();
	add_plain_access(into, false, type, pointer, bytes);
	add_plain_access(into, true, type, pointer, bytes);
	if (update.getOperation() != AtomicRMWInst::Xchg)
		add_operations(into,
			is_float_atomic(update.getOperation()) ? float_metric(type)
							       : (uint32_t)MPERF_METRIC_INT_OPS,
			1, extent_of(type));
}

// A failed exchange writes nothing, so it has as many writes as successes; but x86 then writes the
// old value. Source: Intel 64 Software Developer's Manual, volume 2A, CMPXCHG: "the destination
// operand receives a write cycle without regard to the result of the comparison".
static void read_atomic_exchange(BlockMix &into, AtomicCmpXchgInst &exchange, TypeSize bytes)
{
	const Type *type = exchange.getCompareOperand()->getType();
	add_plain_access(into, false, type, exchange.getPointerOperand(), bytes);
	if (Triple(exchange.getModule()->getTargetTriple()).isX86()) {
		add_plain_access(into, true, type, exchange.getPointerOperand(), bytes);
		return;
	}
	Quantity *success =
		find_quantity(into, Unit::VALUE, &exchange, nullptr, *exchange.getNextNode());
	success->mix.add(MPERF_METRIC_STORES, 1);
	success->mix.add(MPERF_METRIC_BYTES_STORED, bytes.getKnownMinValue());
	if (is_local(exchange.getPointerOperand()))
		success->mix.add(MPERF_METRIC_STACK_BYTES_STORED, bytes.getKnownMinValue());
}

void MixReader::read_memory(Instruction &instruction)
{
	const auto bytes = [&](const Type *type) {
		return layout.getTypeStoreSize(const_cast<Type *>(type));
	};
	if (auto *load = dyn_cast<LoadInst>(&instruction)) {
		const auto narrow = narrowed_bytes(*load);
		add_plain_access(*into, false, load->getType(), load->getPointerOperand(),
			narrow ? TypeSize::getFixed(*narrow) : bytes(load->getType()));
	} else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
		const Type *type = store->getValueOperand()->getType();
		add_plain_access(*into, true, type, store->getPointerOperand(), bytes(type));
	} else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction)) {
		read_atomic_update(*into, *update, bytes(update->getType()));
	} else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
		read_atomic_exchange(
			*into, *exchange, bytes(exchange->getCompareOperand()->getType()));
	}
}

static bool is_branch(const Instruction &instruction)
{
	if (const auto *branch = dyn_cast<BranchInst>(&instruction))
		return branch->isConditional();
	if (const auto *choice = dyn_cast<SwitchInst>(&instruction))
		return choice->getNumCases() > 0;
	return isa<IndirectBrInst>(instruction);
}

// A jump between blocks that the code generator joins, such as those split at calls.
static bool joins_blocks(const Instruction &instruction)
{
	const BasicBlock *next = isa<BranchInst>(instruction)
					 ? instruction.getParent()->getSingleSuccessor()
					 : nullptr;
	return next && next->getSinglePredecessor();
}

static bool is_code(const Instruction &instruction, const TargetTransformInfo &target)
{
	if (isa<PHINode>(instruction) || instruction.isDebugOrPseudoInst() ||
		isa<UnreachableInst>(instruction) || joins_blocks(instruction))
		return false;
	if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
		return true;
	const InstructionCost cost =
		target.getInstructionCost(&instruction, TargetTransformInfo::TCK_SizeAndLatency);
	return !cost.isValid() || cost != TargetTransformInfo::TCC_Free;
}

void MixReader::read(Instruction &instruction, Form form)
{
	if (form == Form::REPEATED)
		return;
	if (is_code(instruction, target))
		into->mix.add(MPERF_METRIC_INSTRUCTIONS, 1);
	if (is_branch(instruction))
		into->mix.add(MPERF_METRIC_BRANCHES, 1);
	if (auto *call = dyn_cast<CallBase>(&instruction))
		return read_call(*call);
	if (!isa<BinaryOperator>(instruction))
		return read_memory(instruction);

	const Type *type = instruction.getType();
	if (type->getScalarType()->isIntegerTy(1))
		return; // masks and booleans
	Extent extent = form == Form::SCALAR ? Extent() : extent_of(type);
	if (extent.vector && tail && extent.issued == tail_lanes)
		extent.quantity = tail;
	add_operations(*into,
		type->isFPOrFPVectorTy() ? float_metric(type) : (uint32_t)MPERF_METRIC_INT_OPS, 1,
		extent);
}

// By name, since LLVM 16 does not have it.
constexpr char VECTOR_LENGTH[] = "llvm.experimental.get.vector.length.";

// The number of active lanes in an iteration of a vectorised loop, or null.
static Value *tail_of(Instruction &instruction, uint64_t &ret_lanes)
{
	Value *source = &instruction;
	if (auto *phi = dyn_cast<PHINode>(&instruction))
		source = phi->getIncomingValue(phi->getNumIncomingValues() - 1);
	auto *call = dyn_cast<IntrinsicInst>(source);
	if (call && call->getIntrinsicID() == Intrinsic::get_active_lane_mask)
		ret_lanes = extent_of(call->getType()).issued;
	else if (call == &instruction &&
		 call->getCalledFunction()->getName().starts_with(VECTOR_LENGTH))
		ret_lanes = cast<ConstantInt>(call->getArgOperand(1))->getZExtValue();
	else
		return nullptr;
	return &instruction;
}

// If a loop's last iteration uses a mask or a length (no remainder follows), arithmetic is not
// masked, and works on lanes whose results are unused.
void MixReader::find_tail(BasicBlock &block)
{
	tail = nullptr;
	for (Instruction &instruction : block) {
		const Value *value = tail_of(instruction, tail_lanes);
		if (!value)
			continue;
		Instruction &at = isa<PHINode>(instruction) ? *block.getFirstNonPHI()
							    : *instruction.getNextNode();
		tail = find_quantity(*into,
			value->getType()->isVectorTy() ? Unit::LANES : Unit::VALUE, &instruction,
			nullptr, at);
		return;
	}
}

BlockMix MixReader::read(BasicBlock &block)
{
	BlockMix mix;
	into = &mix;
	find_tail(block);
	// The code generator joins a block to its only predecessor, if it is that block's only
	// successor.
	if (!merging || !last || block.getSinglePredecessor() != last ||
		!last->getSingleSuccessor())
		merging.emplace(!block.getParent()->hasOptNone());
	last = &block;
	for (Instruction &instruction : block)
		read(instruction, merging->add(instruction));
	mix.quantities.remove_if([](const Quantity &q) { return q.mix.terms.empty(); });
	into = nullptr;
	return mix;
}

} // namespace mperf
