; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A function with loops has two bodies, and each entry counts and chooses: by the word that the
; runtime writes, and by a countdown where 1 in N counts. Names by which it is chosen stand beside
; the word.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -mperf-mode=clone -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-DAG: @mperf.names{{.*}} = private constant [10 x i8] c"two_ways\00\00"
; CHECK-DAG: @[[CHOICE:mperf.choice[0-9.]*]] = private global { i32, i32, ptr } { i32 -1, i32 0, ptr @mperf.names{{[0-9.]*}} }, section "mperf_choices", align 8
; CHECK-DAG: @llvm.global_ctors = {{.*}}ptr @__mperf_register_choices
; CHECK-DAG: @llvm.global_dtors = {{.*}}ptr @__mperf_unregister_choices

; CHECK-LABEL: define double @two_ways(
; CHECK: %local = alloca double
; CHECK: add i64 %{{.*}}, 1
; CHECK: load atomic i32, ptr @[[CHOICE]] monotonic
; CHECK: br i1 %{{.*}}, label %[[PLAIN:.*]], label %[[CHOSEN:.*]]
; the body that counts, with its two counters of the tree
; CHECK: br label %loop
; CHECK: ret double
; CHECK: [[PLAIN]]:
; the body as it was: the same work, one count of its nest
; CHECK: loop.plain:
; CHECK-NOT: store i64
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %loop.plain
; CHECK: [[CHOSEN]]:
; CHECK: icmp slt i32 %{{.*}}, 0
; CHECK: mperf.draw:
; CHECK: call {{.*}}@__mperf_draw
; CHECK-NOT: alloca
define double @two_ways(ptr %p, i64 %n) {
entry:
  %local = alloca double
  store double 0.0, ptr %local
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %at
  %more = fadd double %sum, %v
  store double %more, ptr %local
  %next = add nuw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  %r = load double, ptr %local
  ret double %r
}

; Its entries say all.
; CHECK-LABEL: define double @straight(
; CHECK-NOT: load atomic
; CHECK: ret double
define double @straight(ptr %p) {
  %v = load double, ptr %p
  ret double %v
}
