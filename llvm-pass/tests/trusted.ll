; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A local function needs no test whether its thread has a block: who calls it and can be called from
; elsewhere looks before the call. One whose address is known elsewhere looks itself.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -mperf-mode=block -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck --check-prefix=TREE %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define internal double @local(
; CHECK-NOT: __mperf_enter
; CHECK: ret double
define internal double @local(double %a) noinline {
  %b = fadd double %a, 1.0
  ret double %b
}
; CHECK-LABEL: define internal double @of_local(
; CHECK-NOT: __mperf_enter
; CHECK: ret double
define internal double @of_local(double %a) noinline {
  %b = call double @local(double %a)
  ret double %b
}
; CHECK-LABEL: define internal double @known(
; CHECK: __mperf_enter
define internal double @known(double %a) noinline {
  %b = fadd double %a, 2.0
  ret double %b
}
@pointer = global ptr @known
; CHECK-LABEL: define double @caller(
; CHECK: __mperf_enter
; CHECK: call double @local(
define double @caller(double %a) {
  %b = call double @local(double %a)
  %c = call double @known(double %b)
  %d = call double @of_local(double %c)
  ret double %d
}

; Called by each other: neither looks.
; CHECK-LABEL: define internal i64 @even(
; CHECK-NOT: __mperf_enter
; CHECK: ret i64
; TREE-LABEL: define internal i64 @even(
; TREE-NOT: __mperf_enter
; TREE: mperf.bias
; TREE-NOT: __mperf_enter
; TREE: ret i64
define internal i64 @even(i64 %n) noinline {
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %less = add i64 %n, -1
  %rest = call i64 @odd(i64 %less)
  br label %end
end:
  %sum = phi i64 [ 1, %0 ], [ %rest, %more ]
  ret i64 %sum
}
; TREE-LABEL: define internal i64 @odd(
; TREE-NOT: __mperf_enter
; TREE: ret i64
define internal i64 @odd(i64 %n) noinline {
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %less = add i64 %n, -1
  %rest = call i64 @even(i64 %less)
  br label %end
end:
  %sum = phi i64 [ 0, %0 ], [ %rest, %more ]
  ret i64 %sum
}
; Straight code that its callers count for needs nobody to look before it is called.
; TREE-LABEL: define internal double @straight(
; TREE-NOT: mperf
; TREE: ret double
define internal double @straight(double %a) noinline {
  %b = fadd double %a, 4.0
  ret double %b
}
; TREE-LABEL: define double @uses(
; TREE: call double @straight(
; TREE-NOT: call double @straight(
; TREE: __mperf_enter
; TREE: ret double
define double @uses(double %a, i1 %more, ptr %to) {
  %b = call double @straight(double %a)
  br i1 %more, label %store, label %end
store:
  store double %b, ptr %to
  br label %end
end:
  ret double %b
}
define i64 @of_others(i64 %n) {
  %sum = call i64 @even(i64 %n)
  ret i64 %sum
}
