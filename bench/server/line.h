/* bench/server/line.h — a socket with a buffer each way, for the protocols that are lines of text. */
#ifndef BENCH_SERVER_LINE_H
#define BENCH_SERVER_LINE_H

#include "base/buf.h"

typedef struct line {
    int fd;
    sl_buf out, in;
} line;

void line_open(line *l, int fd);
void line_close(line *l);
void line_put(line *l, const void *data, size_t bytes);
void line_print(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends what is queued and waits until something came, or the time is over: false. */
bool line_wait(line *l, uint64_t timeout_ns);

/* The next whole line without its end, good until the next line_wait(); false when there is none yet. */
bool line_next(line *l, const char **ret_text, size_t *ret_bytes);
/* Bytes that are no line; false when they are not all there yet, then nothing is taken. */
bool line_skip(line *l, size_t bytes);

#endif
