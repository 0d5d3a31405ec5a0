/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * kexec-boot KERNEL INITRD CMDLINE: a guest loads the kernel that it was
 * started with (an ELF file, see images/join.sh) once more, for reboot(2)'s
 * KEXEC: devices are not reset on the way.
 *
 *   kexec-boot --go     does that reboot
 *
 * x86-64 only.  The kernel is entered at the ELF file's entry point as its
 * own decompressor would: 64-bit mode, memory mapped one to one, the address
 * of the boot parameters in RSI.  They are those of this boot, with another
 * initrd and command line.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE            4096ul
#define PARAMS          "/sys/kernel/boot_params/data"
/* Where things go: above the kernel, in what every guest has as memory */
#define PARAMS_ADDR     0x10000000ul
#define CMDLINE_ADDR    (PARAMS_ADDR + PAGE)
#define ENTRY_ADDR      (PARAMS_ADDR + 2 * PAGE)
#define INITRD_ADDR     0x11000000ul
/* struct boot_params, Documentation/arch/x86/zero-page.rst and boot.rst */
#define EXT_RAMDISK     0x0c0       /* three upper halves */
#define LOADER          0x210
#define RAMDISK_IMAGE   0x218
#define RAMDISK_SIZE    0x21c
#define CMDLINE_PTR     0x228

static struct kexec_segment segments[KEXEC_SEGMENT_MAX];
static unsigned long n_segments;

static void add(const void *data, size_t len, uint64_t addr, uint64_t size)
{
    if (n_segments == KEXEC_SEGMENT_MAX) {
        errx(1, "more than %d segments", KEXEC_SEGMENT_MAX);
    }
    segments[n_segments++] = (struct kexec_segment) {
        .buf = data, .bufsz = len, .mem = (void *)addr,
        .memsz = (size + PAGE - 1) & ~(PAGE - 1),
    };
}

static void *read_file(const char *path, size_t *len)
{
    size_t room = 1 << 20;
    char *data = malloc(room);
    int fd = open(path, O_RDONLY);
    ssize_t n;

    *len = 0;
    while (fd >= 0 && data && (n = read(fd, data + *len, room - *len))) {
        if (n < 0) {
            err(1, "%s", path);
        }
        *len += n;
        if (*len == room) {
            data = realloc(data, room *= 2);
        }
    }
    if (fd < 0 || !data) {
        err(1, "%s", path);
    }
    close(fd);
    return data;
}

/* Returns the entry point. */
static uint64_t add_kernel(const char *path)
{
    size_t len;
    const char *file = read_file(path, &len);
    const Elf64_Ehdr *elf = (const void *)file;
    int i;

    if (len < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) ||
        elf->e_machine != EM_X86_64 || elf->e_phoff > len ||
        elf->e_phnum > (len - elf->e_phoff) / sizeof(Elf64_Phdr)) {
        errx(1, "%s is not an ELF file for x86-64", path);
    }
    for (i = 0; i < elf->e_phnum; i++) {
        const Elf64_Phdr *p = (const Elf64_Phdr *)(file + elf->e_phoff) + i;

        if (p->p_type != PT_LOAD) {
            continue;
        }
        if (p->p_offset > len || p->p_filesz > len - p->p_offset) {
            errx(1, "%s ends in segment %d", path, i);
        }
        add(file + p->p_offset, p->p_filesz, p->p_paddr, p->p_memsz);
    }
    return elf->e_entry;
}

static void set_u32(char *params, size_t offset, uint32_t value)
{
    memcpy(params + offset, &value, sizeof(value));
}

static void add_params(size_t initrd_len)
{
    size_t len;
    char *params = read_file(PARAMS, &len);

    if (len != PAGE) {
        errx(1, PARAMS " has %zu bytes", len);
    }
    memset(params + EXT_RAMDISK, 0, 12);
    params[LOADER] = (char)0xff;
    set_u32(params, RAMDISK_IMAGE, INITRD_ADDR);
    set_u32(params, RAMDISK_SIZE, initrd_len);
    set_u32(params, CMDLINE_PTR, CMDLINE_ADDR);
    add(params, len, PARAMS_ADDR, len);
}

/* mov $PARAMS_ADDR, %rsi; mov $entry, %rax; jmp *%rax */
static void add_entry(uint64_t entry)
{
    static unsigned char code[22] = { 0x48, 0xbe, [10] = 0x48, 0xb8,
                                      [20] = 0xff, 0xe0 };
    uint64_t params = PARAMS_ADDR;

    memcpy(code + 2, &params, 8);
    memcpy(code + 12, &entry, 8);
    add(code, sizeof(code), ENTRY_ADDR, sizeof(code));
}

int main(int argc, char **argv)
{
    size_t len;
    void *initrd;

    if (argc == 2 && !strcmp(argv[1], "--go")) {
        syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                LINUX_REBOOT_CMD_KEXEC, NULL);
        err(1, "reboot");
    }
    if (argc != 4) {
        fprintf(stderr, "usage: kexec-boot KERNEL INITRD CMDLINE\n"
                        "       kexec-boot --go\n");
        return 2;
    }
    add_entry(add_kernel(argv[1]));
    initrd = read_file(argv[2], &len);
    add(initrd, len, INITRD_ADDR, len);
    add_params(len);
    len = strlen(argv[3]) + 1;
    if (len > PAGE) {
        errx(1, "the command line is too long");
    }
    add(argv[3], len, CMDLINE_ADDR, len);
    if (syscall(SYS_kexec_load, ENTRY_ADDR, n_segments, segments,
                KEXEC_ARCH_DEFAULT)) {
        err(1, "kexec_load");
    }
    return 0;
}
