; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The code of a shared library leaves %gs alone, which is the executable's.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i64 @chosen(i64)

; CHECK-LABEL: define i64 @first(
; CHECK-NOT: addrspace(256)
; CHECK: }
define i64 @first(i64 %n) nounwind {
  %a = call i64 @chosen(i64 %n)
  %b = call i64 @chosen(i64 %a)
  %c = add i64 %a, %b
  ret i64 %c
}

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
