/* SPDX-License-Identifier: MIT */
/* Frames that compilers make rarely: each calls fn(argument), or is interrupted by ud2. */

        .text

/* void frame_r13(void (*fn)(void *), void *argument): the CFA is in r13 all along */
        .globl  frame_r13
        .type   frame_r13, @function
frame_r13:
        .cfi_startproc
        pushq   %r13
        .cfi_def_cfa_offset 16
        .cfi_offset 13, -16
        leaq    16(%rsp), %r13
        .cfi_def_cfa 13, 0
        andq    $-64, %rsp
        subq    $64, %rsp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        leaq    -16(%r13), %rsp
        .cfi_def_cfa 7, 16
        popq    %r13
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   frame_r13, . - frame_r13

/* void frame_far(void (*fn)(void *), void *argument): changes r13 and rbp, which it saves too far
   from the CFA for a packed rule */
        .globl  frame_far
        .type   frame_far, @function
frame_far:
        .cfi_startproc
        subq    $1032, %rsp
        .cfi_def_cfa_offset 1040
        movq    %r13, 8(%rsp)
        .cfi_offset 13, -1032
        movq    %rbp, 16(%rsp)
        .cfi_offset 6, -1024
        movq    $0x1234, %r13
        movq    %rsi, %rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        movq    16(%rsp), %rbp
        movq    8(%rsp), %r13
        addq    $1032, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   frame_far, . - frame_far

/* void frame_r10(void): interrupted while the CFA is in r10 */
        .globl  frame_r10
        .type   frame_r10, @function
frame_r10:
        .cfi_startproc
        leaq    8(%rsp), %r10
        .cfi_def_cfa 10, 0
        andq    $-64, %rsp
        ud2
        leaq    -8(%r10), %rsp
        .cfi_def_cfa 7, 8
        ret
        .cfi_endproc
        .size   frame_r10, . - frame_r10

/* void frame_plt(void): rules as the linker makes them for .plt; interrupted on both sides of
   the push */
        .p2align 4
        .globl  frame_plt
        .type   frame_plt, @function
frame_plt:
        .cfi_startproc
        .cfi_escape 0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
        ud2
        .byte   0x0f, 0x1f, 0x40, 0x00  /* a nop of 4 bytes */
        .byte   0x68, 1, 0, 0, 0        /* pushq $1 */
        ud2
        popq    %rax
        ret
        .cfi_endproc
        .size   frame_plt, . - frame_plt

/* void frame_pointer_only(void (*fn)(void *), void *argument): nothing but a frame pointer */
        .globl  frame_pointer_only
        .type   frame_pointer_only, @function
frame_pointer_only:
        pushq   %rbp
        movq    %rsp, %rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        popq    %rbp
        ret
        .size   frame_pointer_only, . - frame_pointer_only

/*
 * Traps for who compares too little. Each frame_x(fn, argument, size) takes `size` bytes of stack and
 * calls fn; shifted_x does the same one frame deeper, yet with the return address, the stack
 * pointer and all outer slots where they were.
 */

/* CFA in rbp: rbp differs */
        .globl  frame_bp
        .type   frame_bp, @function
frame_bp:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        subq    %rdx, %rsp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        leave
        .cfi_def_cfa 7, 8
        ret
        .cfi_endproc
        .size   frame_bp, . - frame_bp

        .globl  shifted_bp
        .type   shifted_bp, @function
shifted_bp:
        .cfi_startproc
        subq    $264, %rsp
        .cfi_def_cfa_offset 272
        subq    $272, %rdx
        call    frame_bp
        addq    $264, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   shifted_bp, . - shifted_bp

/* CFA in r13: only r13 differs */
        .globl  frame_odd
        .type   frame_odd, @function
frame_odd:
        .cfi_startproc
        pushq   %r13
        .cfi_def_cfa_offset 16
        .cfi_offset 13, -16
        leaq    16(%rsp), %r13
        .cfi_def_cfa 13, 0
        subq    %rdx, %rsp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        leaq    -16(%r13), %rsp
        .cfi_def_cfa 7, 16
        popq    %r13
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   frame_odd, . - frame_odd

        .globl  shifted_odd
        .type   shifted_odd, @function
shifted_odd:
        .cfi_startproc
        subq    $264, %rsp
        .cfi_def_cfa_offset 272
        subq    $272, %rdx
        call    frame_odd
        addq    $264, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   shifted_odd, . - shifted_odd

/* CFA in the slot at rbp - 8, as gcc realigns: only that word differs */
        .globl  frame_drap
        .type   frame_drap, @function
frame_drap:
        .cfi_startproc
        leaq    8(%rsp), %r10
        .cfi_def_cfa 10, 0
        andq    $-256, %rsp
        pushq   -8(%r10)
        pushq   %rbp
        movq    %rsp, %rbp
        .cfi_escape 0x10, 6, 2, 0x76, 0
        pushq   %r10
        .cfi_escape 0x0f, 3, 0x76, 0x78, 6
        subq    $8, %rsp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        movq    -8(%rbp), %r10
        .cfi_def_cfa 10, 0
        leave
        leaq    -8(%r10), %rsp
        .cfi_def_cfa 7, 8
        ret
        .cfi_endproc
        .size   frame_drap, . - frame_drap

        .globl  shifted_drap
        .type   shifted_drap, @function
shifted_drap:
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    frame_drap
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   shifted_drap, . - shifted_drap

/* void frame_moved(void (*fn)(void *), void *first, void *second): calls fn from two frames, one
   after the other, with the same rsp but another CFA; the first one's return address stays where
   it was, within the second one */
        .globl  frame_moved
        .type   frame_moved, @function
frame_moved:
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        pushq   %r12
        .cfi_def_cfa_offset 24
        .cfi_offset 12, -24
        movq    %rdi, %r12
        movq    %rdx, %rbx
        subq    $104, %rsp
        .cfi_def_cfa_offset 128
        call    narrow
        addq    $64, %rsp
        .cfi_def_cfa_offset 64
        movq    %r12, %rdi
        movq    %rbx, %rsi
        call    wide
        addq    $40, %rsp
        .cfi_def_cfa_offset 24
        popq    %r12
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   frame_moved, . - frame_moved

        .type   narrow, @function
narrow:
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   narrow, . - narrow

        .type   wide, @function
wide:
        .cfi_startproc
        subq    $72, %rsp
        .cfi_def_cfa_offset 80
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        addq    $72, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   wide, . - wide

        .section .note.GNU-stack, "", @progbits
