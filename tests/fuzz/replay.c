/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzzer over the files and directories that are named: a finding, a
 * corpus.  Stands in for libFuzzer where that is not there (gcc, coverage).
 */

#include "qemu/osdep.h"
#include "fuzz.h"

static unsigned n_inputs;

static void replay_file(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *data = NULL;
    uint8_t *copy;
    size_t len;

    if (!g_file_get_contents(path, &data, &len, &err)) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
    /* Without the NUL that GLib appends, a read too far is seen. */
    copy = g_malloc(MAX(len, 1));
    memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
    g_free(copy);
    n_inputs++;
}

static void replay(const char *path)
{
    const char *name;
    GDir *dir;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        replay_file(path);
        return;
    }
    dir = g_dir_open(path, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *child = g_build_filename(path, name, NULL);

        replay(child);
    }
    if (dir) {
        g_dir_close(dir);
    }
}

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        replay(argv[i]);
    }
    printf("ok 1 - %u inputs\n1..1\n", n_inputs);
    return 0;
}
