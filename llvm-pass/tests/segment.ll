; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; In an executable a counter is reached through %gs (address space 256) by its own address. The
; thread's bias is tested where it may be none, and read for an address alone: a nest's, when timed.
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -S < %s | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck --check-prefix=WITHOUT %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define i64 @first(
; CHECK: threadlocal.address{{.*}}__mperf_bias
; CHECK-NEXT: [[BIAS:%[a-z0-9.]+]] = load i64
; CHECK-NEXT: icmp eq i64 [[BIAS]], 0
; CHECK: __mperf_enter
; CHECK: load i64, ptr addrspace(256) inttoptr
; CHECK-NOT: __mperf_bias
; CHECK: store i64 {{.*}}, ptr addrspace(256) inttoptr
; CHECK: call i64 @chosen
; WITHOUT-LABEL: define i64 @first(
; WITHOUT-NOT: addrspace(256)
define i64 @first(i64 %n) nounwind {
  %a = call i64 @chosen(i64 %n)
  %b = call i64 @chosen(i64 %a)
  %c = add i64 %a, %b
  ret i64 %c
}

; Its callers have seen to it that the thread has its counters.
; CHECK-LABEL: define internal i64 @chosen(
; CHECK-NOT: __mperf_bias
; CHECK: ptr addrspace(256) inttoptr
; CHECK-NOT: __mperf_bias
; CHECK: }
define internal i64 @chosen(i64 %n) noinline nounwind {
  %even = icmp ugt i64 %n, 5
  br i1 %even, label %more, label %less
more:
  %m = mul i64 %n, 7
  ret i64 %m
less:
  ret i64 %n
}

; CHECK-LABEL: define void @timed(
; CHECK: __mperf_enter
; CHECK: load i64, ptr addrspace(256)
; CHECK-NOT: __mperf_bias
; CHECK: br i1
; CHECK: threadlocal.address{{.*}}__mperf_bias
; CHECK: __mperf_begin
; CHECK: threadlocal.address{{.*}}__mperf_bias
; CHECK: __mperf_end
define void @timed(ptr %a, i64 %n) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p = getelementptr i64, ptr %a, i64 %i
  store i64 %i, ptr %p
  %j = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

!llvm.module.flags = !{!0, !1}
!0 = !{i32 8, !"PIC Level", i32 2}
!1 = !{i32 7, !"PIE Level", i32 2}
