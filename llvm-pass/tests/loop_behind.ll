; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A loop whose end nobody can tell is counted behind it, by how far its own variable went; not by
; one that may have come around.
; RUN: opt -passes=mperf -mperf-functions -mperf-segment=false -mperf-nests=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define i64 @search(
; CHECK: loop:
; CHECK-NOT: mperf
; CHECK: br i1 %found
; CHECK: end:
; CHECK: add i64 %{{.*}}, 1
; CHECK: mperf.counter
define i64 @search(ptr %a, i32 %wanted) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i32, ptr %a, i64 %i
  %is = load i32, ptr %at
  %next = add nuw nsw i64 %i, 1
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %end, label %loop
end:
  ret i64 %i
}
; CHECK-LABEL: define i64 @by_fours(
; CHECK: loop:
; CHECK-NOT: mperf
; CHECK: br i1 %found
; CHECK: sub i64 %start, %next
; CHECK: lshr i64 %{{.*}}, 2
define i64 @by_fours(ptr %a, i32 %wanted, i64 %start) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i32, ptr %a, i64 %i
  %is = load i32, ptr %at
  %next = add nsw i64 %i, -4
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %end, label %loop
end:
  ret i64 %i
}
; CHECK-LABEL: define i8 @around(
; CHECK: loop:
; CHECK: %mperf.sum{{.*}} = phi i64
; CHECK: br i1 %found
define i8 @around(ptr %a, i32 %wanted) {
entry:
  br label %loop
loop:
  %i = phi i8 [ 0, %entry ], [ %next, %loop ]
  %is = load volatile i32, ptr %a
  %next = add i8 %i, 1
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %end, label %loop
end:
  ret i8 %i
}
; CHECK-LABEL: define i64 @by_threes(
; CHECK: loop:
; CHECK: %mperf.sum{{.*}} = phi i64
; CHECK: br i1 %found
define i64 @by_threes(ptr %a, i32 %wanted) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %is = load volatile i32, ptr %a
  %next = add nsw i64 %i, 3
  %found = icmp eq i32 %is, %wanted
  br i1 %found, label %end, label %loop
end:
  ret i64 %i
}
