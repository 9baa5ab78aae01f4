/* SPDX-License-Identifier: MIT */
/* Instructions that compilers make seldom, to be decoded and never executed. */
    .text
    .globl unusual
unusual:
    ret $16
    lret $16
    enter $16, $1
    pushw $0x1234
    push $0x12
    movw $0x1234, %ax
    .byte 0x66, 0x48, 0x05, 1, 2, 3, 4 /* data16 add $..., %rax */
    .byte 0x66, 0x48, 0xe8, 1, 2, 3, 4 /* data16 call */
    movabs %al, 0x1122334455667788
    movabs 0x1122334455667788, %rax
    .byte 0x67, 0xa1, 1, 2, 3, 4 /* addr32 mov */
    movabs $0x1122334455667788, %r15
    testb $1, 5(%rax)
    testw $1, 5(%rax)
    testl $1, 5(%rax)
    notl 5(%rax)
    negb %al
    imul $5, %rax, %rbx
    imul $500, %rax, %rbx
    xbegin unusual
    xabort $1
    loopne .
    jecxz .
    int $3
    in $1, %al
    in %dx, %al
    popcnt (%rax), %rbx
    pop (%rax)
    pop 300(%r12)
    shld $3, %rax, %rbx
    bt $3, %rax
    pshufd $3, %xmm1, %xmm2
    extractps $1, %xmm1, %eax
    pfadd (%rax), %mm1
    cmpps $1, (%rax,%rbx,8), %xmm2
    vzeroupper
    kmovw %eax, %k1
    kshiftlw $1, %k1, %k2
    vpshufd $3, (%rax), %ymm2
    vpaddd 64(%rax), %zmm1, %zmm2
    vpermq $3, 0x1000(%rip), %zmm2
    vpsrld $3, %zmm1, %zmm2
    vcvttps2udq %zmm1, %zmm2
    vfmaddps %xmm1, %xmm2, %xmm3, %xmm4
    vprotd $3, %xmm1, %xmm2
    vprotd %xmm1, %xmm2, %xmm3
    bextr $0x1234, %eax, %ebx
    vaddph %zmm1, %zmm2, %zmm3
    vfmadd132ph (%rax), %zmm2, %zmm3
    rdpid %rax
    endbr64
    .byte 0xf2 # bnd, which not all assemblers know
    jmp unusual
    notrack jmp *%rax
    lock cmpxchg16b (%rax)
    rep movsq
    call *8(%rsp)
    call *%gs:16
    mov %cr0, %rax
    mov %rax, %dr7
    ud2
    ud1 (%rax), %rax
    crc32b (%rax), %rbx
    movbe (%rax), %rbx
    sha1rnds4 $1, %xmm1, %xmm2
    tileloadd (%rax,%rbx), %tmm0
    leave

    .section .note.GNU-stack, "", @progbits
