// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that modules of one executable or library share (the bias, the object, the functions
// that register it) is in each of them, and the linker keeps one: they are linkonce_odr and hidden,
// each in its own comdat group. Counters and the row of mperf_modules belong to the module; the
// linker puts them side by side and defines symbols for their bounds.

#include "emit.h"
#include "gs_base.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr char COUNTERS_SECTION[] = "mperf_counters";
constexpr char MODULES_SECTION[] = "mperf_modules";
constexpr char CHOICES_SECTION[] = "mperf_choices";
// The first constructor, since the program's own may already count.
constexpr int PRIORITY = 1;

Type *word(Module &module)
{
	return Type::getInt64Ty(module.getContext());
}

Type *half_word(Module &module)
{
	return Type::getInt32Ty(module.getContext());
}

PointerType *pointer(Module &module)
{
	return PointerType::get(module.getContext(), 0);
}

Constant *number(Module &module, uint32_t value)
{
	return ConstantInt::get(half_word(module), value);
}

// A function in every module, of which the linker keeps one.
void make_common(GlobalObject &object)
{
	Module &module = *object.getParent();
	object.setLinkage(GlobalValue::LinkOnceODRLinkage);
	object.setVisibility(GlobalValue::HiddenVisibility);
	if (Triple(module.getTargetTriple()).supportsCOMDAT())
		object.setComdat(module.getOrInsertComdat(object.getName()));
}

Constant *linker_symbol(Module &module, StringRef name)
{
	if (GlobalVariable *there = module.getGlobalVariable(name, true))
		return there;
	auto *symbol = new GlobalVariable(module, Type::getInt8Ty(module.getContext()), false,
		GlobalValue::ExternalLinkage, nullptr, name);
	symbol->setVisibility(GlobalValue::HiddenVisibility);
	return symbol;
}

// The start ("start") or end ("stop") of a section.
Constant *edge(Module &module, const char *side, const char *section)
{
	return linker_symbol(module, (Twine("__") + side + "_" + section).str());
}

} // namespace

Emitter::Emitter(Module &module, const Options &options)
    : module(module), has_segment(options.segment && gs_base_is_free(module)),
      has_dynamic_tls(options.dynamic_tls)
{
	counters = new GlobalVariable(module, word(module), false, GlobalValue::ExternalLinkage,
		nullptr, "__mperf_counters_of_module");
}

Constant *Emitter::counter_address(uint32_t counter)
{
	Constant *distance[] = {ConstantInt::get(word(module), counter)};
	Constant *location = ConstantExpr::getGetElementPtr(word(module), counters, distance);
	return GlobalAlias::create(word(module), 0, GlobalValue::PrivateLinkage,
		"mperf.counter." + Twine(counter), location, &module);
}

GlobalVariable *Emitter::bias()
{
	if (GlobalVariable *there = module.getGlobalVariable("__mperf_bias"))
		return there;
	auto *bias = new GlobalVariable(module, word(module), false, GlobalValue::ExternalLinkage,
		Constant::getNullValue(word(module)), "__mperf_bias", nullptr,
		has_dynamic_tls ? GlobalValue::GeneralDynamicTLSModel
				: GlobalValue::InitialExecTLSModel);
	make_common(*bias);
	return bias;
}

Function *Emitter::make_function(StringRef name, FunctionType *type)
{
	auto *function = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
	make_common(*function);
	function->setDoesNotThrow();
	// The frame is on the stack while signal handlers and the runtime walk the stack.
	if (module.getUwtable() != UWTableKind::None)
		function->setUWTableKind(module.getUwtable());
	function->addFnAttr(Attribute::NoInline);
	function->addFnAttr(Attribute::Cold);
	BasicBlock::Create(module.getContext(), "", function);
	return function;
}

// struct mperf_object
GlobalVariable *Emitter::object()
{
	if (GlobalVariable *there = module.getGlobalVariable("__mperf_object"))
		return there;
	GlobalVariable *thread_bias = bias();
	Function *where =
		make_function("__mperf_bias_address", FunctionType::get(pointer(module), false));
	IRBuilder<> builder(&where->front());
	builder.CreateRet(builder.CreateThreadLocalAddress(thread_bias));

	PointerType *address = pointer(module);
	Constant *null = ConstantPointerNull::get(address);
	Constant *members[] = {number(module, MPERF_ABI_VERSION), number(module, 0),
		edge(module, "start", MODULES_SECTION), edge(module, "stop", MODULES_SECTION),
		edge(module, "start", COUNTERS_SECTION), edge(module, "stop", COUNTERS_SECTION),
		where, linker_symbol(module, "__ehdr_start"), null};
	Constant *value = ConstantStruct::getAnon(members);
	auto *object = new GlobalVariable(module, value->getType(), false,
		GlobalValue::ExternalLinkage, value, "__mperf_object");
	object->setAlignment(Align(8));
	make_common(*object);
	return object;
}

// In LLVM 16 an x86 callee restores the result register.
bool Emitter::preserves_most() const
{
	const Triple triple(module.getTargetTriple());
	return LLVM_VERSION_MAJOR >= 17 &&
	       (triple.getArch() == Triple::x86_64 || triple.getArch() == Triple::aarch64);
}

// A wrapper in the module around each runtime function, so that counted code need not save its
// registers for rare calls.
Function *Emitter::rare_function(StringRef name, StringRef outside, FunctionType *type)
{
	// The linker keeps one of each calling convention, if compilers are mixed.
	const std::string full_name = (name + (preserves_most() ? "_most" : "")).str();
	if (Function *there = module.getFunction(full_name))
		return there;
	Function *function = make_function(full_name, type);
	if (preserves_most()) {
		function->setCallingConv(CallingConv::PreserveMost);
		function->addFnAttr("stackrealign"); // see call_rarely()
	}
	SmallVector<Value *, 2> arguments;
	for (Argument &argument : function->args())
		arguments.push_back(&argument);
	SmallVector<Type *, 2> types(type->params());
	if (arguments.empty()) { // only the module knows the object
		arguments.push_back(object());
		types.push_back(pointer(module));
	}
	IRBuilder<> builder(&function->front());
	FunctionType *of_runtime = FunctionType::get(type->getReturnType(), types, false);
	Value *given =
		builder.CreateCall(module.getOrInsertFunction(outside, of_runtime), arguments);
	if (type->getReturnType()->isVoidTy())
		builder.CreateRetVoid();
	else
		builder.CreateRet(given);
	return function;
}

// On x86, if it pays, we write a call as inline assembly, which the compiler does not treat as a
// call; its long clobber list makes compiling slower. A function without other calls on its path
// then needs no frame for this call, and keeps the stack unchanged, aligned or not (the callee
// aligns it). The function gets no red zone, since the call would overwrite it. Moving the stack
// pointer around the call instead would make the unwinder miss the return address, since no CFI
// describes the move.
static InlineAsm *assembly_call(FunctionType *type, bool has_wide_vectors)
{
	std::string constraints = type->getReturnType()->isVoidTy() ? "" : "={ax},";
	const char *const in[] = {"{di},", "{si},"};
	const unsigned n = type->getNumParams() - 1; // the callee is the last
	for (unsigned i = 0; i < n; i++)
		constraints += in[i];
	constraints += "i,~{r11},~{dirflag},~{fpsr},~{flags},~{memory}";
	for (unsigned i = 0; i < (has_wide_vectors ? 32 : 16); i++)
		constraints += ",~{xmm" + std::to_string(i) + "}";
	for (unsigned i = 1; has_wide_vectors && i < 8; i++)
		constraints += ",~{k" + std::to_string(i) + "}";
	const unsigned callee = n + !type->getReturnType()->isVoidTy();
	const std::string text = "callq ${" + std::to_string(callee) + ":P}";
	return InlineAsm::get(type, text, constraints, true);
}

// AVX-512 registers: a CPU selected by name may have them.
static bool may_have_wide_vectors(const Function &function)
{
	const StringRef cpu = function.getFnAttribute("target-cpu").getValueAsString();
	const StringRef features = function.getFnAttribute("target-features").getValueAsString();
	return !(cpu.empty() || cpu == "x86-64") || features.contains("+avx512");
}

// Calls for which a function needs a frame; a tail call needs none.
static bool needs_frame(const Instruction &instruction)
{
	const auto *call = dyn_cast<CallBase>(&instruction);
	if (!call || call->isInlineAsm() || (isa<IntrinsicInst>(call) && !isa<MemIntrinsic>(call)))
		return false;
	const auto *plain = dyn_cast<CallInst>(call);
	return !plain || !plain->isTailCall() || !isa<ReturnInst>(plain->getNextNode());
}

// Calls that we add do not change the answer, so a function is examined once, however many loops it
// has.
bool Emitter::is_frameless(const Function &function)
{
	if (looked_through != &function)
		has_frame = any_of(function,
			[](const BasicBlock &block) { return any_of(block, needs_frame); });
	looked_through = &function;
	return !has_frame;
}

// Can control pass through the function without such calls? Then that path need not save registers.
static bool has_path_without_frame(const Function &function)
{
	SmallPtrSet<const BasicBlock *, 16> seen = {&function.getEntryBlock()};
	SmallVector<const BasicBlock *, 16> open = {&function.getEntryBlock()};
	while (!open.empty()) {
		const BasicBlock *block = open.pop_back_val();
		if (any_of(*block, needs_frame))
			continue;
		if (isa<ReturnInst>(block->getTerminator()))
			return true;
		for (const BasicBlock *next : successors(block))
			if (seen.insert(next).second)
				open.push_back(next);
	}
	return false;
}

CallInst *Emitter::call_rarely(IRBuilder<> &builder, const Function &in, Function *callee,
	ArrayRef<Value *> arguments, bool is_frameless)
{
	CallInst *call;
	const bool is_near = module.getCodeModel().value_or(CodeModel::Small) != CodeModel::Large;
	if (is_frameless && preserves_most() && is_near &&
		Triple(module.getTargetTriple()).getArch() == Triple::x86_64) {
		SmallVector<Value *, 3> all(arguments);
		all.push_back(callee);
		SmallVector<Type *, 3> types;
		for (const Value *argument : all)
			types.push_back(argument->getType());
		FunctionType *type = FunctionType::get(callee->getReturnType(), types, false);
		call = builder.CreateCall(
			type, assembly_call(type, may_have_wide_vectors(in)), all);
		call->setDoesNotThrow();
		call->getFunction()->addFnAttr(Attribute::NoRedZone);
	} else {
		call = builder.CreateCall(callee, arguments);
		call->setCallingConv(callee->getCallingConv());
	}
	// No line; the verifier requires a location.
	if (in.getSubprogram())
		call->setDebugLoc(
			DebugLoc(DILocation::get(in.getContext(), 0, 0, in.getSubprogram())));
	return call;
}

Value *Emitter::call_enter(IRBuilder<> &builder, const Function &in)
{
	FunctionType *type = FunctionType::get(word(module), false);
	return call_rarely(builder, in,
		rare_function("__mperf_enter", "__mperf_thread_enter", type), {},
		has_path_without_frame(in));
}

Value *Emitter::call_loop_begin(
	IRBuilder<> &builder, const Function &in, Value *words, bool published)
{
	FunctionType *type =
		FunctionType::get(word(module), {pointer(module), half_word(module)}, false);
	return call_rarely(builder, in, rare_function("__mperf_begin", "__mperf_loop_begin", type),
		{words, number(module, published)}, is_frameless(in));
}

void Emitter::call_loop_end(IRBuilder<> &builder, const Function &in, Value *words, Value *since)
{
	FunctionType *type = FunctionType::get(
		Type::getVoidTy(module.getContext()), {pointer(module), word(module)}, false);
	call_rarely(builder, in, rare_function("__mperf_end", "__mperf_loop_end", type),
		{words, since}, is_frameless(in));
}

Value *Emitter::call_draw(IRBuilder<> &builder, const Function &in, Value *words, Value *one_in)
{
	FunctionType *type =
		FunctionType::get(half_word(module), {pointer(module), half_word(module)}, false);
	return call_rarely(builder, in, rare_function("__mperf_draw", "__mperf_turn_draw", type),
		{words, one_in}, is_frameless(in));
}

Constant *Emitter::add_choice(ArrayRef<std::string> names)
{
	std::string list;
	for (const std::string &name : names)
		list += name + '\0';
	Constant *bytes = ConstantDataArray::getString(module.getContext(), list, true);
	auto *text = new GlobalVariable(
		module, bytes->getType(), true, GlobalValue::PrivateLinkage, bytes, "mperf.names");
	text->setAlignment(Align(1));
	Constant *members[] = {number(module, -1), number(module, 0), text}; // each entry
	Constant *value = ConstantStruct::getAnon(members);
	auto *choice = new GlobalVariable(module, value->getType(), false,
		GlobalValue::PrivateLinkage, value, "mperf.choice");
	choice->setSection(CHOICES_SECTION);
	choice->setAlignment(Align(8));
	has_choices = true;
	return choice;
}

void Emitter::add_registration(StringRef what, ArrayRef<Constant *> arguments)
{
	Type *none = Type::getVoidTy(module.getContext());
	SmallVector<Type *, 2> types(arguments.size(), pointer(module));
	const SmallVector<Value *, 2> values(arguments.begin(), arguments.end());
	for (const char *does : {"register", "unregister"}) {
		const bool begins = StringRef(does) == "register";
		Function *function = make_function(("__mperf_" + Twine(does) + "_" + what).str(),
			FunctionType::get(none, false));
		IRBuilder<> builder(&function->front());
		builder.CreateCall(
			module.getOrInsertFunction(("__mperf_" + what + "_" + does).str(),
				FunctionType::get(none, types, false)),
			values);
		builder.CreateRetVoid();
		Constant *group = function->hasComdat() ? function : nullptr;
		if (begins)
			appendToGlobalCtors(module, function, PRIORITY, group);
		else
			appendToGlobalDtors(module, function, PRIORITY, group);
	}
}

void Emitter::finish(const Table &table, uint32_t flags)
{
	const uint32_t n = table.n_counters();
	Type *array = ArrayType::get(word(module), n);
	auto *words = new GlobalVariable(module, array, false, GlobalValue::PrivateLinkage,
		Constant::getNullValue(array), "mperf.counters");
	// Only in this form does it become a section without bytes in the file (NOBITS), as with
	// #pragma clang section. Source: LLVM 16 and 19, TargetLoweringObjectFileImpl.cpp,
	// selectExplicitSectionGlobal().
	words->addAttribute("bss-section", COUNTERS_SECTION);
	words->setAlignment(Align(8));
	counters->replaceAllUsesWith(words);
	counters->eraseFromParent();
	if (n == 0) {
		words->eraseFromParent();
		return;
	}

	const std::string encoded = table.encode();
	Constant *bytes = ConstantDataArray::getString(module.getContext(), encoded, false);
	auto *text = new GlobalVariable(
		module, bytes->getType(), true, GlobalValue::PrivateLinkage, bytes, "mperf.table");
	text->setAlignment(Align(1));

	const auto wide = [&](uint64_t value) { return ConstantInt::get(word(module), value); };
	Constant *members[] = {number(module, MPERF_ABI_VERSION), number(module, flags), words,
		wide(n), text, wide(encoded.size())};
	Constant *value = ConstantStruct::getAnon(members);
	auto *row = new GlobalVariable(module, value->getType(), false, GlobalValue::PrivateLinkage,
		value, "mperf.module");
	row->setSection(MODULES_SECTION);
	row->setAlignment(Align(8));
	appendToUsed(module, {row});
	add_registration("object", {object()});
	if (has_choices)
		add_registration("choices", {edge(module, "start", CHOICES_SECTION),
						    edge(module, "stop", CHOICES_SECTION)});
}

} // namespace mperf
