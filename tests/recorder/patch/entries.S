/* SPDX-License-Identifier: MIT */
/* Functions of two numbers, each with another kind of first instructions, and a table of them. */

    .macro entry name
    .pushsection .data.rel.ro, "aw"
    .quad \name
    .quad \name\()_end - \name
    .quad 1f
    .popsection
    .pushsection .rodata
1:  .asciz "\name"
    .popsection
    .text
    .p2align 6, 0xcc
\name:
    .endm

    .macro end name
\name\()_end:
    .endm

    .data
    .p2align 3
number:
    .quad 1234567
pointer:
    .quad helper

    .text
    .globl entries_code
    .hidden entries_code
entries_code:
helper:
    lea 5(%rdi,%rdi,2), %rax
    ret

    .section .data.rel.ro, "aw"
    .p2align 3
    .globl entries
    .hidden entries
entries:

    entry landing_pad
    endbr64
    lea (%rdi,%rsi), %rax
    ret
    end landing_pad

    entry frame
    push %rbp
    mov %rsp, %rbp
    push %rbx
    mov %rdi, %rbx
    lea (%rbx,%rsi,4), %rax
    pop %rbx
    pop %rbp
    ret
    end frame

    entry wide_nop
    nopw 0(%rax,%rax,1)
    lea (%rdi,%rsi,2), %rax
    ret
    end wide_nop

    entry number_in_memory
    mov number(%rip), %rax
    add %rdi, %rax
    ret
    end number_in_memory

    entry number_and_immediate
    cmpl $1234567, number(%rip)
    sete %al
    movzbl %al, %eax
    ret
    end number_and_immediate

    entry byte_and_immediate
    testb $1, number(%rip)
    setne %al
    movzbl %al, %eax
    ret
    end byte_and_immediate

    entry wide_immediate
    movabs $0x1122334455667788, %rax
    xor %rdi, %rax
    ret
    end wide_immediate

    entry branch_far
    test %rdi, %rdi
    .byte 0x0f, 0x84 /* je */
    .long 1f - . - 4
    mov %rsi, %rax
    ret
1:  mov $77, %eax
    ret
    end branch_far

    entry branch_near
    test %rdi, %rdi
    je 1f
    mov %rsi, %rax
    ret
1:  mov $78, %eax
    ret
    end branch_near

    entry branch_parity
    cmp %dil, %sil
    jp 1f
    mov $1, %eax
    ret
1:  mov $2, %eax
    ret
    end branch_parity

    entry branch_to_itself
1:  inc %esi
    shr %edi
    jne 1b /* to the entry */
    mov %esi, %eax
    ret
    end branch_to_itself

    entry branch_to_second
    inc %esi
1:  shr %edi
    jne 1b
    mov %esi, %eax
    ret
    end branch_to_second

    entry jump_far
    .byte 0xe9
    .long 1f - . - 4
    int3
1:  lea 9(%rdi), %rax
    ret
    end jump_far

    entry jump_near
    jmp 1f
    .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
1:  lea 10(%rdi), %rax
    ret
    end jump_near

    entry jump_by_pointer
    jmp *pointer(%rip)
    end jump_by_pointer

    entry counted
    mov %edi, %ecx
    jrcxz 1f
    loop 2f
    mov $3, %eax
    ret
1:  mov $4, %eax
    ret
2:  mov $5, %eax
    ret
    end counted

    entry counted_short
    mov %edi, %ecx
    jecxz 1f
    mov $6, %eax
    ret
1:  mov $7, %eax
    ret
    end counted_short

    entry calls
    call helper
    add %rsi, %rax
    ret
    end calls

    entry calls_later
    sub $8, %rsp
    call helper
    add $8, %rsp
    add %rsi, %rax
    ret
    end calls_later

    entry calls_next
    .byte 0xe8
    .long 0
    pop %rax
    lea calls_next(%rip), %rcx
    sub %rcx, %rax
    ret
    end calls_next

    entry calls_pointer
    call *pointer(%rip)
    inc %rax
    ret
    end calls_pointer

    entry calls_pointer_later
    sub $8, %rsp
    call *pointer(%rip)
    add $8, %rsp
    ret
    end calls_pointer_later

    entry shorter
    mov %edi, %eax
    ret
    .byte 0x66, 0x0f, 0x1f, 0x44, 0, 0
    end shorter

    entry vectors
    movq %rdi, %xmm1
    pxor %xmm2, %xmm2
    por %xmm1, %xmm2
    movq %xmm2, %rax
    ret
    end vectors


    .macro callable name
    .globl \name
    .hidden \name
    .p2align 4, 0xcc
\name:
    .endm

    callable leaf
    lea 1(%rdi), %rax
    ret
    callable calls_leaf
    call leaf
    test %eax, %eax
    jne calls_leaf
    jmp leaf
    callable has_table
    lea 2f(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    add %rdx, %rax
    jmp *%rax
2:  .long 0
    callable has_plain_table
    jmp *64(,%rdi,8)
    callable calls_another_module
    test %rdi, %rdi
    je 1f
    ret
1:  call 2f
    ret
2:  jmp *pointer(%rip)
    callable calls_by_register
    test %edi, %edi
    jne leaf
    call *%rdi
    ret
    callable ends_by_register
    mov (%rdi), %rax
    jmp *%rax
    callable ends_by_memory
    jmp *8(%rdi)
    callable never_ends
    jmp never_ends

    .globl entries_code_end
    .hidden entries_code_end
entries_code_end:

    .section .data.rel.ro, "aw"
    .quad 0, 0, 0

    .section .note.GNU-stack, "", @progbits
