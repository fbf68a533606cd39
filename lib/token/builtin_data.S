/* The project's own vocabulary, as lib/token/builtin/README.md describes it. */
        .section .rodata
        .balign 16
        .globl  slu_builtin_merges
        .type   slu_builtin_merges, %object
slu_builtin_merges:
        .incbin "lib/token/builtin/merges.zst"
        .size   slu_builtin_merges, . - slu_builtin_merges
        .globl  slu_builtin_merges_end
        .type   slu_builtin_merges_end, %object
slu_builtin_merges_end:
        .byte   0
        .size   slu_builtin_merges_end, 1
        .section .note.GNU-stack, "", %progbits
