; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; How often a local function is entered follows from its callers' counts, so that straight code
; counts nothing. It counts itself where its address is known, where it calls itself, and where a
; call before it may leave its caller; not where that call ends the program or comes back.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -mperf-mode=block -S < %s | FileCheck --check-prefix=BLOCK %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @may_throw()
declare void @comes_back() nounwind
declare void @longjmp(ptr, i32) noreturn nounwind
declare void @_exit(i32) noreturn nounwind
@pointer = global ptr @known

; CHECK-LABEL: define internal double @straight(
; CHECK-NOT: mperf
; CHECK: ret double
; BLOCK-LABEL: define internal double @straight(
; BLOCK: mperf.counter
define internal double @straight(double %a) {
  %b = fadd double %a, 1.0
  ret double %b
}
; CHECK-LABEL: define internal double @known(
; CHECK: mperf.counter
; CHECK: ret double
define internal double @known(double %a) {
  %b = fadd double %a, 2.0
  ret double %b
}
; CHECK-LABEL: define internal i64 @itself(
; CHECK: mperf.counter
; CHECK: ret i64
define internal i64 @itself(i64 %n) {
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %less = add i64 %n, -1
  %rest = call i64 @itself(i64 %less)
  br label %end
end:
  %sum = phi i64 [ 0, %0 ], [ %rest, %more ]
  ret i64 %sum
}
; CHECK-LABEL: define internal double @behind_throw(
; CHECK: mperf.counter
; CHECK: ret double
define internal double @behind_throw(double %a) {
  %b = fadd double %a, 3.0
  ret double %b
}
; CHECK-LABEL: define internal double @behind_jump(
; CHECK: mperf.counter
; CHECK: ret double
define internal double @behind_jump(double %a) {
  %b = fadd double %a, 4.0
  ret double %b
}
; CHECK-LABEL: define internal double @behind_exit(
; CHECK-NOT: mperf
; CHECK: ret double
define internal double @behind_exit(double %a) {
  %b = fadd double %a, 5.0
  ret double %b
}
; CHECK-LABEL: define internal void @jumps(
define internal void @jumps(i1 %out) nounwind {
  br i1 %out, label %away, label %back
away:
  call void @longjmp(ptr null, i32 1)
  unreachable
back:
  ret void
}
; CHECK-LABEL: define internal void @exits(
define internal void @exits(i1 %out) nounwind {
  br i1 %out, label %away, label %back
away:
  call void @_exit(i32 1)
  unreachable
back:
  ret void
}
define double @first(double %a, i64 %n) {
  call void @comes_back()
  %b = call double @straight(double %a)
  %c = call double @known(double %b)
  %m = call i64 @itself(i64 %n)
  %d = sitofp i64 %m to double
  %e = fadd double %c, %d
  ret double %e
}
define double @second(double %a) {
  %b = call double @straight(double %a)
  ret double %b
}
define double @throwing(double %a) {
  call void @may_throw()
  %b = call double @behind_throw(double %a)
  ret double %b
}
define double @jumping(double %a, i1 %out) {
  call void @jumps(i1 %out)
  %b = call double @behind_jump(double %a)
  ret double %b
}
define double @exiting(double %a, i1 %out) {
  call void @exits(i1 %out)
  %b = call double @behind_exit(double %a)
  ret double %b
}
