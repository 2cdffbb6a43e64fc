; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Calls of the C library are reported by name; those of other modules may be counted there.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -pass-remarks-analysis=mperf -disable-output < %s 2>&1 | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i32 @rand()
declare double @drand48()
declare double @exp(double)
declare double @of_another_module(double)
declare double @llvm.sin.f64(double)

; CHECK-NOT: of_another_module
; CHECK: call of rand, which is not seen
; CHECK: call of drand48, which is not seen
; CHECK: call of exp, which is not seen
; CHECK: call of llvm.sin.f64, which is not seen
; CHECK-NOT: of_another_module
define double @calls() {
  %a = call i32 @rand()
  %b = call double @drand48()
  %c = call double @exp(double %b)
  %d = call double @llvm.sin.f64(double %c)
  %e = call double @of_another_module(double %d)
  ret double %e
}
