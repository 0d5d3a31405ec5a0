/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulator: the part of JSON that printf() does not write. */

#ifndef ERDMA_SIM_JSON_H
#define ERDMA_SIM_JSON_H

/* A string with its quotes; @text is UTF-8. */
static inline void json_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', f);
        }
        if ((unsigned char)*text < ' ') {
            fprintf(f, "\\u%04x", *text);
        } else {
            fputc(*text, f);
        }
    }
    fputc('"', f);
}

#endif /* ERDMA_SIM_JSON_H */
