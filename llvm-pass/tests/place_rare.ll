; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What goes by a loop is counted, not what goes into it; and a label without code, to which both a
; jump through a table and others go, has a place of its own for the former.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define void @rows(
; CHECK: row:
; CHECK-NOT: mperf.counter
; CHECK: br i1 %some, label %[[INTO:.*]], label %[[BY:.*]]
; CHECK: [[BY]]:
; CHECK: mperf.counter
; CHECK: br label %behind
define void @rows(ptr %first, ptr %to, i64 %n) {
entry:
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %next, %behind ]
  %at = getelementptr i64, ptr %first, i64 %i
  %length = load i64, ptr %at
  %some = icmp ugt i64 %length, 0
  br i1 %some, label %loop, label %behind
loop:
  %k = phi i64 [ 0, %row ], [ %more, %loop ]
  %place = getelementptr float, ptr %to, i64 %k
  store float 1.0, ptr %place
  %more = add nuw i64 %k, 1
  %filled = icmp eq i64 %more, %length
  br i1 %filled, label %behind, label %loop
behind:
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %row
end:
  ret void
}

; CHECK-LABEL: define double @interpret(
; CHECK: next:
; CHECK: phi double [ %value
; CHECK: mperf.counter
; CHECK: br label %[[REST:.*]]
; CHECK: [[REST]]:
; CHECK-NOT: mperf.counter
; CHECK: indirectbr
; CHECK: add:
; CHECK: mperf.counter
; CHECK: br label %[[REST]]
@labels = private constant [3 x ptr] [ptr blockaddress(@interpret, %next), ptr blockaddress(@interpret, %add), ptr blockaddress(@interpret, %stop)]
define double @interpret(ptr %code) {
entry:
  br label %next
next:
  %value = phi double [ 0.0, %entry ], [ %value, %next ], [ %sum, %add ]
  %at = phi ptr [ %code, %entry ], [ %behind, %next ], [ %behind, %add ]
  %behind = getelementptr i8, ptr %at, i64 1
  %what = load i8, ptr %at
  %number = zext i8 %what to i64
  %label = getelementptr ptr, ptr @labels, i64 %number
  %to = load ptr, ptr %label
  indirectbr ptr %to, [label %next, label %add, label %stop]
add:
  %sum = fadd double %value, 1.0
  br label %next
stop:
  ret double %value
}
