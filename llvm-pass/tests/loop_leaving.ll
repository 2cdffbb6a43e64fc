; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A call that may throw, jump or never return keeps the count inside, though the trip count is known.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @may_leave()
declare void @returns() willreturn nounwind

; CHECK-LABEL: define void @leaving(
; CHECK: loop:
; CHECK: add i64 %{{.*}}, 1
; CHECK: call void @may_leave
; CHECK: br i1 %done
define void @leaving(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @may_leave()
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}

; CHECK-LABEL: define void @staying(
; CHECK: add i64 %{{.*}}, %n
; CHECK: loop:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %done
define void @staying(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @returns()
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
