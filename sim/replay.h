/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feeds a transport with a recording of another one (xport/record.h) and
 * compares what comes out.
 *
 * A recording is not trusted: whatever it says, the answer is a problem.
 */

#ifndef ERDMA_SIM_REPLAY_H
#define ERDMA_SIM_REPLAY_H

typedef struct ReplayResult {
    uint64_t n_inputs;          /* calls and what callbacks gave back */
    uint64_t n_outputs;
    uint64_t hash;              /* of header and records */
    uint64_t begin_ns;          /* time of the first call and of the last */
    uint64_t end_ns;
} ReplayResult;

/*
 * Returns NULL when the same came out to the end of the recording, else what
 * is different or wrong, to be freed.  @result says how far it was the same.
 */
char *replay_data(const uint8_t *data, size_t len, ReplayResult *result);
/* The same for a file; problems of the file begin with its name. */
char *replay_file(const char *path, ReplayResult *result);

#endif /* ERDMA_SIM_REPLAY_H */
