/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eRDMA device: the file that property "record" names.  What is in it:
 * docs/congestion-control/replay.md
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "system/system.h"
#include "erdma.h"

struct ErdmaRecordFile {
    ErdmaState *s;
    FILE *f;
    bool has_begun;
    int error;                  /* errno of the first write that failed */
    Notifier exit;
};

static void erdma_record_write(void *opaque, const uint8_t *data, size_t len)
{
    ErdmaRecordFile *rf = opaque;

    if (!rf->error && fwrite(data, 1, len, rf->f) != len) {
        rf->error = errno;
        warn_report("%s: record: %s: %s; nothing more is recorded",
                    rf->s->name, rf->s->record, strerror(rf->error));
    }
}

/* Devices are not unrealized when QEMU ends. */
static void erdma_record_exit(Notifier *n, void *opaque)
{
    erdma_record_close(container_of(n, ErdmaRecordFile, exit)->s);
}

bool erdma_record_open(ErdmaState *s, Error **errp)
{
    ErdmaRecordFile *rf;
    FILE *f;

    if (!s->record) {
        return true;
    }
    if (!erdma_vmstate_block(s, errp)) {
        return false;
    }
    f = fopen(s->record, "wb");
    if (!f) {
        erdma_vmstate_unblock(s);
        error_setg_errno(errp, errno, "property 'record' is '%s', must be a "
                         "file that can be written", s->record);
        return false;
    }
    rf = g_new0(ErdmaRecordFile, 1);
    rf->s = s;
    rf->f = f;
    rf->exit.notify = erdma_record_exit;
    qemu_add_exit_notifier(&rf->exit);
    s->recording = rf;
    return true;
}

void erdma_record_begin(ErdmaState *s)
{
    if (s->recording) {
        erdma_engine_record(s->engine, erdma_record_write, s->recording);
        s->recording->has_begun = true;
    }
}

void erdma_record_close(ErdmaState *s)
{
    ErdmaRecordFile *rf = s->recording;

    if (!rf) {
        return;
    }
    if (rf->has_begun) {
        erdma_engine_record_end(s->engine);
    }
    if (fclose(rf->f) && !rf->error) {
        warn_report("%s: record: %s: %s", s->name, s->record,
                    strerror(errno));
    }
    qemu_remove_exit_notifier(&rf->exit);
    g_free(rf);
    s->recording = NULL;
    erdma_vmstate_unblock(s);
}
