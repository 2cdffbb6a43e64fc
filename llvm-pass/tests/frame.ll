; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The rare call that gives a thread its block is no call to the compiler where a way through the
; function needs no frame, be it that a call is all that is left there; where each way has a frame, it
; is one. (LLVM 16 has no convention for it, and calls each time.) Nothing moves the stack pointer
; around such a call, so the function must have no red zone.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck --implicit-check-not=%rsp %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @slow() nounwind
declare i64 @goes_on(i64) nounwind

; CHECK-LABEL: define i64 @has_a_way(
; CHECK: call i64 {{asm sideeffect|@__mperf_enter\(\)}}
define i64 @has_a_way(i64 %n) {
  %seldom = icmp eq i64 %n, 7
  br i1 %seldom, label %rare, label %usual
rare:
  call void @slow()
  br label %usual
usual:
  ret i64 %n
}
; CHECK-LABEL: define i64 @ends_in_a_call(
; CHECK: call i64 {{asm sideeffect|@__mperf_enter\(\)}}
define i64 @ends_in_a_call(i64 %n) {
  %m = add i64 %n, 1
  %r = tail call i64 @goes_on(i64 %m)
  ret i64 %r
}
; CHECK-LABEL: define i64 @always_calls(
; CHECK-NOT: asm sideeffect
; CHECK: call {{.*}}i64 @__mperf_enter{{(_most)?}}()
define i64 @always_calls(i64 %n) {
  call void @slow()
  %seldom = icmp eq i64 %n, 7
  br i1 %seldom, label %rare, label %usual
rare:
  call void @slow()
  br label %usual
usual:
  ret i64 %n
}
