/* examples/queue.c — sends messages in the background, one for each room and second at most, and loses none when it ends.
 *
 *     cc queue.c $(pkg-config --cflags --libs sluice) -o queue
 *     echo "hello" | ./queue
 *
 * Each line of the input is a message; its first word is the room. A real program would call an API in send(); this one prints. At the
 * end of the input the queue is drained: what was accepted is sent within five seconds, and what was not is shown. */
#include <sluice.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 512,
    DRAIN_MS = 5000
};

/* In the sender's thread. An answer such as "429, come back in 3 seconds" would be SL_QUEUE_RETRY with answer->retry_after_ms, any
 * other error SL_QUEUE_FAILED with a reason. */
static sl_queue_outcome send_message(void *user, const sl_queue_item *item, sl_queue_answer *answer)
{
    (void)user;
    (void)answer;
    printf("sent to %s: %.*s\n", item->key, (int)item->bytes, (const char *)item->data);
    return SL_QUEUE_SENT;
}

/* The place to store or report what cannot be sent. */
static void bury(void *user, const sl_queue_item *item, sl_queue_death death, const char *reason)
{
    (void)user;
    (void)death;
    fprintf(stderr, "not sent after %u attempts: %s\n", (unsigned)item->attempt, reason);
}

static void warn(void *user, sl_queue_warning warning, const char *sentence)
{
    (void)user;
    (void)warning;
    fprintf(stderr, "%s\n", sentence);
}

static void show_left(void *user, const sl_queue_item *item)
{
    (void)user;
    fprintf(stderr, "left: %.*s\n", (int)item->bytes, (const char *)item->data);
}

static void put_line(sl_queue *queue, char *line)
{
    char room[LINE_BYTES];

    line[strcspn(line, "\n")] = '\0';
    snprintf(room, sizeof room, "%.*s", (int)strcspn(line, " "), line);
    if (sl_queue_put(queue, line, strlen(line), room) != SL_QUEUE_OK)
        fprintf(stderr, "refused: %s\n", line);
}

int main(void)
{
    const sl_queue_options options = { .name = "chat",
                                       .interval_ms = 1000,
                                       .callbacks = { .send = send_message, .dead = bury, .warn = warn } };
    char line[LINE_BYTES];
    sl_queue *queue;
    size_t sent, left;

    if (sl_queue_new(&options, &queue) != SL_QUEUE_OK || sl_queue_start(queue) != SL_QUEUE_OK) {
        fprintf(stderr, "the queue could not be made\n");
        return EXIT_FAILURE;
    }
    while (fgets(line, sizeof line, stdin) != NULL)
        put_line(queue, line);
    sent = sl_queue_drain(queue, DRAIN_MS);
    left = sl_queue_left(queue, show_left, NULL);
    printf("drained: %zu sent at the end, %zu left\n", sent, left);
    sl_queue_free(queue);
    return left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
