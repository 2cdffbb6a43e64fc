; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Whether an exchange took place is no count of its own where control goes another way then, and its
; repetition is what is rare (x86 writes either way). What is used as a value alone is counted as one.
; RUN: opt -passes=mperf -mperf-functions -mperf-nests=false -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-nests=false -mperf-mode=block -S < %s | FileCheck --check-prefix=BLOCK %s
target datalayout = "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"
target triple = "riscv64-unknown-linux-gnu"

; CHECK-LABEL: define void @add(
; CHECK: loop:
; CHECK-NOT: zext
; CHECK-NOT: mperf.counter
; CHECK: br i1 %did, label %end, label %[[AGAIN:.*]]
; CHECK: [[AGAIN]]:
; CHECK-NEXT: add i64 %mperf.sum
; CHECK: br label %loop
; BLOCK-LABEL: define void @add(
; BLOCK: loop:
; BLOCK: zext i1
define void @add(ptr %sum, i32 %by) {
entry:
  %first = load atomic i32, ptr %sum monotonic, align 4
  br label %loop
loop:
  %seen = phi i32 [ %first, %entry ], [ %is, %loop ]
  %next = add i32 %seen, %by
  %pair = cmpxchg weak ptr %sum, i32 %seen, i32 %next seq_cst seq_cst, align 4
  %is = extractvalue { i32, i1 } %pair, 0
  %did = extractvalue { i32, i1 } %pair, 1
  br i1 %did, label %end, label %loop
end:
  ret void
}

; CHECK-LABEL: define i1 @claim(
; CHECK: extractvalue { i32, i1 } %pair, 1
; CHECK: zext i1
; CHECK: mperf.counter
define i1 @claim(ptr %slot) {
  %pair = cmpxchg ptr %slot, i32 0, i32 1 seq_cst seq_cst, align 4
  %did = extractvalue { i32, i1 } %pair, 1
  ret i1 %did
}
