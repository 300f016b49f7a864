/* The entry of foreread: asks the kernel for the parts of foreread's file that a start goes through, all at once, and jumps to the C
 * library's entry. `main` would be too late: before `main`, the C library and Rust read nine places of the file one after the
 * other, and a cold disk is waited for at each.
 *
 * The constants come first, which everything needs; the first functions have come together with this one. A failure
 * costs nothing but the speed-up. start.ld says where the parts are.
 */
#include <sys/syscall.h>

	.intel_syntax noprefix
	.text
	.globl foreread_entry
	.type foreread_entry, @function
foreread_entry:
	/* What the C library is to be given; system calls leave it alone. */
	mov r8, rdx
	lea rdi, [rip + __ehdr_start]
	lea rsi, [rip + foreread_constants_end]
	call ask
	lea rdi, [rip + foreread_entry]
	lea rsi, [rip + foreread_start_end]
	call ask
	mov rdx, r8
	jmp _start

/* Asks for what is mapped from rdi to rsi: madvise(MADV_WILLNEED). */
ask:
	and rdi, -4096
	sub rsi, rdi
	mov edx, 3
	mov eax, SYS_madvise
	syscall
	ret
	.size foreread_entry, . - foreread_entry

	.section .note.GNU-stack, "", @progbits
