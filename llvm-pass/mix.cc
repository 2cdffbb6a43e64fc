// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counted is what the program's text says, at the end of optimisation: an operation on a vector is
// one for each of its lanes, a fused multiply-add two, a comparison, a conversion, a negation none.
// Fixed and scalable vectors are kept apart, since only the running program knows vscale. What
// becomes no machine code (phis, casts of pointers, addresses that fold into accesses) is no
// instruction; the target's cost model decides that.

#include "mix.h"
#include "lowered.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

Extent extent_of(const Type *type)
{
	Extent all;
	if (const auto *vector = dyn_cast<VectorType>(type)) {
		all.vector = true;
		all.scalable = isa<ScalableVectorType>(vector);
		all.issued = all.active = vector->getElementCount().getKnownMinValue();
	}
	return all;
}

uint32_t float_metric(const Type *type)
{
	const Type *element = type->getScalarType();
	if (element->isHalfTy() || element->isBFloatTy())
		return MPERF_METRIC_FP16_OPS;
	if (element->isFloatTy())
		return MPERF_METRIC_FP32_OPS;
	return element->isDoubleTy() ? MPERF_METRIC_FP64_OPS : MPERF_METRIC_FP_WIDE_OPS;
}

bool is_local(const Value *pointer)
{
	return isa<AllocaInst>(getUnderlyingObject(pointer));
}

Quantity *find_quantity(BlockMix &into, Unit unit, Value *value, Value *length, Instruction &at)
{
	for (Quantity &quantity : into.quantities) {
		if (quantity.unit == unit && quantity.value == value && quantity.length == length)
			return &quantity;
	}
	into.quantities.push_back({unit, value, length, &at, {}});
	return &into.quantities.back();
}

// The lanes that a constant mask has; false where it is no constant.
static bool constant_lanes(const Value *mask, uint64_t lanes, bool scalable, uint64_t &ret_active)
{
	const auto *constant = dyn_cast<Constant>(mask);
	if (!constant)
		return false;
	if (constant->isNullValue()) {
		ret_active = 0;
		return true;
	}
	const Constant *splat = constant->getSplatValue();
	if (splat && splat->isOneValue()) {
		ret_active = lanes;
		return true;
	}
	if (scalable)
		return false;
	ret_active = 0;
	for (uint64_t lane = 0; lane < lanes; lane++) {
		const Constant *bit = constant->getAggregateElement(lane);
		if (!bit)
			return false;
		ret_active += bit->isOneValue();
	}
	return true;
}

Extent masked(BlockMix &into, Extent all, Value *mask, Value *length, Instruction &at)
{
	uint64_t active = 0;
	if (!mask || constant_lanes(mask, all.issued, all.scalable, active)) {
		if (length && (!mask || active == all.issued)) {
			all.quantity = find_quantity(into, Unit::VALUE, length, nullptr, at);
			return all;
		}
		if (!length || active == 0) {
			all.active = mask ? active : all.issued;
			return all;
		}
	}
	all.quantity = find_quantity(into, Unit::LANES, mask, length, at);
	return all;
}

static void add_lanes(BlockMix &into, const Extent &extent)
{
	if (!extent.vector)
		return;
	const uint32_t variant = extent.scalable ? MPERF_SCALABLE : 0;
	into.mix.add(MPERF_METRIC_LANES_ISSUED, extent.issued, variant);
	if (extent.quantity)
		extent.quantity->mix.add(MPERF_METRIC_LANES_ACTIVE, 1);
	else
		into.mix.add(MPERF_METRIC_LANES_ACTIVE, extent.active, variant);
}

// Adds `each` for each active lane.
static void add_by_lane(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent)
{
	if (extent.quantity)
		extent.quantity->mix.add(metric, each);
	else
		into.mix.add(metric, each * extent.active, extent.scalable ? MPERF_SCALABLE : 0);
}

void add_operations(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent)
{
	add_by_lane(into, metric, each, extent);
	add_lanes(into, extent);
}

void add_access(BlockMix &into, bool is_store, uint64_t element_bytes, const Extent &extent,
	const Value *pointer)
{
	into.mix.add(is_store ? MPERF_METRIC_STORES : MPERF_METRIC_LOADS, 1);
	add_by_lane(into, is_store ? MPERF_METRIC_BYTES_STORED : MPERF_METRIC_BYTES_LOADED,
		element_bytes, extent);
	if (pointer && is_local(pointer))
		add_by_lane(into,
			is_store ? MPERF_METRIC_STACK_BYTES_STORED
				 : MPERF_METRIC_STACK_BYTES_LOADED,
			element_bytes, extent);
	add_lanes(into, extent);
}

// A whole value is loaded or stored: elements need not fill bytes.
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

// One that fails writes nothing, so what it wrote is as often as it said so; but x86 writes what
// was there. Source: Intel 64 Software Developer's Manual, volume 2A, CMPXCHG: "the destination
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

static bool is_code(const Instruction &instruction, const TargetTransformInfo &target)
{
	if (isa<PHINode>(instruction) || instruction.isDebugOrPseudoInst() ||
		isa<UnreachableInst>(instruction))
		return false;
	if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
		return true;
	const InstructionCost cost =
		target.getInstructionCost(&instruction, TargetTransformInfo::TCK_SizeAndLatency);
	return !cost.isValid() || cost != TargetTransformInfo::TCC_Free;
}

void MixReader::read(Instruction &instruction)
{
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
		return; // masks and truth values
	Extent extent = extent_of(type);
	if (extent.vector && tail && extent.issued == tail_lanes)
		extent.quantity = tail;
	add_operations(*into,
		type->isFPOrFPVectorTy() ? float_metric(type) : (uint32_t)MPERF_METRIC_INT_OPS, 1,
		extent);
}

// By name, since LLVM 16 has none.
constexpr char VECTOR_LENGTH[] = "llvm.experimental.get.vector.length.";

// The value by which a vectorised loop knows how many lanes of a round are meant, or null.
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

// Where a loop's last round is a mask or a length (no remainder follows), arithmetic is not masked,
// and works on lanes that nobody asked for.
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
	for (Instruction &instruction : block)
		read(instruction);
	mix.quantities.remove_if([](const Quantity &q) { return q.mix.terms.empty(); });
	into = nullptr;
	return mix;
}

} // namespace mperf
