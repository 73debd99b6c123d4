/* bench/worker/child.c — worker-child, the least that a long-lived handler can be: it answers each line with "ack".
 *
 *      worker-child         for each line of its input: {"id":"...","result":"ack"}
 *      worker-child once    reads its input to the end and leaves: a handler for one message */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_BYTES_MAX = 1 << 20,
    ID_BYTES = 36,
};

static char memory[LINE_BYTES_MAX];

static int answer(const char *line)
{
    static const char name[] = "\"id\":\"";
    const char *const id = strstr(line, name);
    char text[128];

    if (id == NULL)
        return 0; /* a drain has begun: its end is the end of the input */
    const int bytes =
        snprintf(text, sizeof text, "{\"id\":\"%.*s\",\"result\":\"ack\"}\n", ID_BYTES, id + sizeof name - 1);
    return write(STDOUT_FILENO, text, (size_t)bytes) == bytes ? 0 : -1;
}

/* Answers what is whole in the memory; returns what is left of it, or -1. */
static ssize_t answer_all(size_t bytes)
{
    char *from = memory, *end;

    while ((end = memchr(from, '\n', bytes)) != NULL) {
        *end = '\0';
        if (answer(from) < 0)
            return -1;
        bytes -= (size_t)(end + 1 - from);
        from = end + 1;
    }
    memmove(memory, from, bytes);
    return (ssize_t)bytes;
}

int main(int count, char **words)
{
    const int once = count > 1 && strcmp(words[1], "once") == 0;
    size_t kept = 0;
    ssize_t got;

    while ((got = read(STDIN_FILENO, memory + kept, sizeof memory - kept)) > 0) {
        if (once)
            continue;
        const ssize_t left = answer_all(kept + (size_t)got);
        if (left < 0 || (size_t)left == sizeof memory)
            return 1;
        kept = (size_t)left;
    }
    return got == 0 ? 0 : 1;
}
