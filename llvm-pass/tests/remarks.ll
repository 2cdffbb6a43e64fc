; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What the pass decides can be read as analysis remarks: the minimum spanning tree, the hoists, and
; the counters. The pass takes the last function first.
; RUN: opt -passes=mperf -mperf-functions -mperf-nests=false -pass-remarks-analysis=mperf -disable-output < %s 2>&1 | FileCheck %s
; RUN: opt -passes=mperf -mperf-functions -mperf-nests=false -disable-output < %s 2>&1 | FileCheck --allow-empty --check-prefix=QUIET %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; QUIET-NOT: remark

; Of @search:
; CHECK: loop %loop: iterations known in its exits: distance of %i
; CHECK: edge outside -> %entry, weight {{[0-9]+}}: in the minimum spanning tree
; CHECK: block %loop, weight {{[0-9]+}}: outside, to be counted
; CHECK: edge %loop -> %loop, weight {{[0-9]+}}: in the minimum spanning tree
; CHECK: counter 0: block %loop, hoisted
; CHECK: counter 1:
; Of @fill:
; CHECK: loop %loop: iterations known in block %loop.preheader: %n
; CHECK: edge %entry -> %end, weight {{[0-9]+}}: outside, to be counted
; CHECK: counter 2: edge %entry -> %end
; CHECK: counter 3: block %loop, hoisted
define void @fill(ptr %to, i64 %n, i1 %twice) {
entry:
  br i1 %twice, label %loop, label %end
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
