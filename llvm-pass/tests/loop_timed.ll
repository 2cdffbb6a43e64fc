; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; An outermost loop counts down before it begins, and says that it ends; the inner one does not. What
; may be thrown past its end is not published; calls that throw nothing, or into the loop's function,
; are.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @may_leave()
declare void @throws_nothing() nounwind
declare i32 @__gxx_personality_v0(...)

; CHECK-LABEL: define void @nest(
; CHECK: add nsw i64 %{{.*}}, -1
; CHECK: icmp slt i64 %{{.*}}, 1
; CHECK: call {{.*}}i32 1{{\)|, ptr @__mperf_begin}}
; CHECK-NOT: call i64 @__mperf_loop_begin
; CHECK: call {{.*}}i64 %mperf.since
; CHECK: ret void
define void @nest(i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %j.next = add nuw i64 %j, 1
  %j.done = icmp eq i64 %j.next, %n
  br i1 %j.done, label %outer.end, label %inner
outer.end:
  %i.next = add nuw i64 %i, 1
  %i.done = icmp eq i64 %i.next, %n
  br i1 %i.done, label %end, label %outer
end:
  ret void
}

; CHECK-LABEL: define void @left(
; CHECK: call {{.*}}i32 0{{\)|, ptr @__mperf_begin}}
define void @left(i64 %n) {
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

; CHECK-LABEL: define void @calls(
; CHECK: call {{.*}}i32 1{{\)|, ptr @__mperf_begin}}
define void @calls(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @throws_nothing()
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}

; CHECK-LABEL: define void @catches(
; CHECK: call {{.*}}i32 1{{\)|, ptr @__mperf_begin}}
define void @catches(i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %back ]
  invoke void @may_leave() to label %back unwind label %pad
back:
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
pad:
  %thrown = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %thrown
end:
  ret void
}
