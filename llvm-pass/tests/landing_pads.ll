; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Several calls unwind to one landing pad, and each of them is counted; jumps through addresses are
; not split. Both come out as valid modules.
; RUN: opt -passes=mperf,verify -mperf-functions -mperf-all-nests -mperf-segment=false -S < %s | FileCheck %s
target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @may_throw()
declare i32 @__gxx_personality_v0(...)

; CHECK-LABEL: define i32 @caught(
; CHECK: landingpad
define i32 @caught() personality ptr @__gxx_personality_v0 {
entry:
  invoke void @may_throw() to label %second unwind label %pad
second:
  invoke void @may_throw() to label %third unwind label %pad
third:
  invoke void @may_throw() to label %end unwind label %pad
end:
  ret i32 0
pad:
  %which = phi i32 [ 1, %entry ], [ 2, %second ], [ 3, %third ]
  %thrown = landingpad { ptr, i32 } catch ptr null
  ret i32 %which
}

; CHECK-LABEL: define i32 @jumping(
; CHECK: indirectbr
define i32 @jumping(ptr %to, i32 %n) {
entry:
  indirectbr ptr %to, [label %a, label %b]
a:
  %x = phi i32 [ %n, %entry ], [ %y, %b ]
  %x.next = add i32 %x, 1
  %more = icmp slt i32 %x, 10
  br i1 %more, label %b, label %end
b:
  %y = phi i32 [ %n, %entry ], [ %x.next, %a ]
  indirectbr ptr %to, [label %a, label %end]
end:
  ret i32 %n
}

; What comes around the loop is no increment, and has no operands.
; CHECK-LABEL: define void @trying(
; CHECK: landingpad
define void @trying() personality ptr @__gxx_personality_v0 {
entry:
  br label %try
try:
  %last = phi { ptr, i32 } [ undef, %entry ], [ %thrown, %pad ]
  invoke void @may_throw() to label %end unwind label %pad
pad:
  %thrown = landingpad { ptr, i32 } cleanup
  br label %try
end:
  ret void
}
