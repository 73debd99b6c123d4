/* tests/unit/server/made.c — see made.h. */
#include "made.h"

#include <stdio.h>
#include <string.h>

enum {
    MANY_BYTES = 1000
};

char made_story[1024];
sl_request *made_last;

typedef struct made_state {
    uint64_t left, bytes;
} made_state;

void made_forget(void)
{
    made_story[0] = 0;
}

static void tell(const char *what, sl_str detail)
{
    const size_t used = strlen(made_story);

    /* Long stories are of tests that do not look at them. */
    snprintf(made_story + used, sizeof made_story - used, "%s%s%.*s;", what, detail.bytes > 0 ? " " : "",
             detail.bytes < 100 ? (int)detail.bytes : 100, detail.data == NULL ? "" : detail.data);
}

static void begin(sl_request *request)
{
    tell("begin", SL_STR(""));
    made_last = request;
}

static void end(sl_request *request)
{
    EXPECT(request->call == NULL && request->link == NULL && !sl_request_open(request));
    tell("end", SL_STR(""));
    if (made_last == request)
        made_last = NULL;
}

static void half_close(sl_request *request)
{
    (void)request;
    tell("half-close", SL_STR(""));
}

static void echo(sl_request *request, sl_str message)
{
    tell("message", message);
    sl_request_answer(request, message);
}

static void later(sl_request *request, sl_str message)
{
    (void)request;
    tell("message", message);
}

static void go_on(sl_request *request)
{
    made_state *const state = request->state;
    uint8_t *data;

    while (state->left > 0 && sl_request_reserve(request, MANY_BYTES, &data) == SL_OK) {
        memset(data, (int)('a' + state->left % 26), MANY_BYTES);
        sl_request_commit(request, MANY_BYTES);
        state->left--;
    }
    if (state->left == 0)
        sl_request_finish(request, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void room(sl_request *request)
{
    tell("room", SL_STR(""));
    go_on(request);
}

static void many(sl_request *request, sl_str message)
{
    made_state *const state = request->state;

    EXPECT_EQ(state->left, 0); /* state begins as zeros */
    EXPECT_OK(sl_str_parse_u64(message, &state->left));
    go_on(request);
}

static void count(sl_request *request, sl_str message)
{
    made_state *const state = request->state;

    state->bytes += message.bytes;
}

static void count_end(sl_request *request)
{
    const made_state *const state = request->state;
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)state->bytes);
    sl_request_answer(request, sl_str_from(text));
}

static void talk(sl_request *request, sl_str message)
{
    tell("message", message);
    sl_request_send(request, message);
}

static void talk_end(sl_request *request)
{
    half_close(request);
    sl_request_finish(request, SL_STATUS_OK, SL_STR(""), NULL, 0);
}

static void cancel(sl_request *request, sl_str message)
{
    const char first = message.bytes == 0 ? 0 : message.data[0];

    tell("message", message);
    sl_call_cancel(request->call);
    EXPECT(!sl_request_open(request));
    EXPECT(message.bytes == 0 || message.data[0] == first); /* it is there as long as this function runs */
}

static void begin_paused(sl_request *request)
{
    begin(request);
    sl_request_pause(request);
}

static void begin_hasty(sl_request *request)
{
    sl_request_pause(request);
    sl_request_resume(request);
    begin(request);
}

static void begin_held(sl_request *request)
{
    begin(request);
    sl_request_hold(request);
}

static void end_held(sl_request *request)
{
    (void)request;
    tell("end", SL_STR("")); /* made_last stays: the test has it */
}

static void stop(sl_request *request)
{
    tell("stop", SL_STR(""));
    sl_request_finish(request, SL_STATUS_OK, SL_STR("stopped"), NULL, 0);
}

#define MADE(method_name, method_kind, ...)                                                                  \
    {                                                                                                        \
        .service = SL_STR_INIT("made.Made"), .name = SL_STR_INIT(method_name),                               \
        .kind = SL_METHOD_##method_kind, .who = SL_FOR_READERS, __VA_ARGS__                                  \
    }
#define ECHO .begin = begin, .message = echo, .end = end

static const sl_method methods[] = {
    MADE("Echo", UNARY, ECHO),
    MADE("Small", UNARY, ECHO, .message_bytes_max = 10),
    { SL_STR_INIT("made.Made"), SL_STR_INIT("Operators"), SL_METHOD_UNARY, SL_FOR_OPERATORS, ECHO },
    { SL_STR_INIT("made.Made"), SL_STR_INIT("Admins"), SL_METHOD_UNARY, SL_FOR_ADMINS, ECHO },
    { SL_STR_INIT("made.Made"), SL_STR_INIT("Anyone"), SL_METHOD_UNARY, SL_FOR_ANYONE, ECHO },
    MADE("Later", UNARY, .begin = begin, .message = later, .end = end),
    MADE("Many", SERVER_STREAM, .state_bytes = sizeof(made_state), .message = many, .room = room),
    MADE("Count", CLIENT_STREAM, .state_bytes = sizeof(made_state), .begin = begin, .message = count,
         .half_close = count_end),
    MADE("Talk", BIDI, .begin = begin, .message = talk, .half_close = talk_end, .end = end),
    MADE("Cancel", BIDI, .begin = begin, .message = cancel, .half_close = half_close, .end = end),
    MADE("CancelOne", UNARY, .begin = begin, .message = cancel, .end = end),
    MADE("Paused", BIDI, .begin = begin_paused, .message = talk, .half_close = talk_end, .end = end),
    MADE("Hasty", BIDI, .begin = begin_hasty, .message = talk, .half_close = talk_end, .end = end),
    MADE("Held", BIDI, .begin = begin_held, .message = talk, .end = end_held),
    MADE("Stops", BIDI, .begin = begin, .message = talk, .half_close = talk_end, .end = end, .stop = stop),
};

const sl_method *made_find(sl_str path, const char **ret_why)
{
    const sl_str prefix = SL_STR("/made.Made/");

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (sl_str_starts_with(path, prefix) &&
            sl_str_equal((sl_str){ path.data + prefix.bytes, path.bytes - prefix.bytes }, methods[i].name))
            return &methods[i];
    *ret_why = "Nobody made that.";
    return NULL;
}

void made_start(server_rig *rig)
{
    made_forget();
    made_last = NULL;
    server_rig_start(rig);
    rig->host->find_method = made_find;
}
