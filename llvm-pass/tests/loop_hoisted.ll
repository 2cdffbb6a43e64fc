; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A loop whose trip count is known is counted from without: in it nothing is added.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -mperf-mode=block -S < %s | FileCheck --check-prefix=BLOCK %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define void @fill(
; CHECK: add i64 %{{.*}}, %n
; CHECK: loop:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
; BLOCK-LABEL: define void @fill(
; BLOCK: loop:
; BLOCK: add i64 %{{.*}}, 1
; BLOCK: br i1 %done
define void @fill(ptr %to, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %to, i64 %i
  store float 1.0, ptr %at
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
