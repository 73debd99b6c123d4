/* cli/option_table.c — the options of sluice, all of them. cli/options.h says what each column means. */
#include <assert.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/budget.h"
#include "store/store.h"

static_assert(SL_OPT_RESERVE - SL_OPT_FENCE == SL_BUDGET_RESERVE - SL_BUDGET_FENCE,
              "an option for each part");
static_assert(SL_OPT_SETTLE - SL_OPT_FENCE == SL_BUDGET_SETTLE, "the options are in the order of the parts");

#define MILLISECOND_NS UINT64_C(1000000)

/* A part of the shutdown budget, with the bounds of the core: what the help says is what will be accepted. */
#define PART(part, option_name, text)                                                                        \
    {                                                                                                        \
        .name = option_name, .kind = SL_OPTION_DURATION, .argument = "TIME",                                 \
        .min = SL_BUDGET_##part##_LEAST_MS * MILLISECOND_NS, .max = SL_BUDGET_GRACE_MAX_NS,                  \
        .commands = SL_COMMAND_BUDGET, .help = text                                                          \
    }

const sl_option sl_options[SL_OPT_COUNT_] = {
    /* clang-format off */
    [SL_OPT_HELP] = {
        .name = "help", .letter = 'h', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_EVERY,
        .help = "explain this command",
    },
    [SL_OPT_JSON] = {
        .name = "json", .letter = 'j', .kind = SL_OPTION_FLAG,
        .commands = SL_COMMAND_VERSION | SL_COMMAND_BUDGET | SL_COMMAND_JOURNAL,
        .environment = "SLUICE_JSON",
        .help = "print JSON, for programs",
    },
    [SL_OPT_GRACE] = {
        .name = "grace", .letter = 'g', .kind = SL_OPTION_DURATION, .argument = "TIME", .commands = SL_COMMAND_BUDGET,
        .default_text = "30s", .environment = "SLUICE_GRACE",
        .min = SL_BUDGET_GRACE_LEAST_MS * MILLISECOND_NS, .max = SL_BUDGET_GRACE_MAX_NS,
        .help = "from SIGTERM to SIGKILL, as the orchestrator has it",
    },
    /* clang-format on */
    [SL_OPT_FENCE] = PART(FENCE, "fence", "the source confirms that nothing new will come"),
    [SL_OPT_SETTLE] = PART(SETTLE, "settle", "work that was started finishes"),
    [SL_OPT_ABORT] = PART(ABORT, "abort", "handlers are ended, what is left is released"),
    [SL_OPT_FLUSH] = PART(FLUSH, "flush", "acknowledgements are confirmed"),
    [SL_OPT_CLOSE] = PART(CLOSE, "close", "channels, producers and connections are closed"),
    [SL_OPT_RESERVE] = PART(RESERVE, "reserve", "the report and the way out"),
    /* clang-format off */
    [SL_OPT_SEGMENT] = {
        .name = "segment", .letter = 's', .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = UINT64_MAX,
        .help = "only this segment: its number, which its file name has in hexadecimal",
    },
    [SL_OPT_FROM] = {
        .name = "from", .letter = 'f', .kind = SL_OPTION_NUMBER, .argument = "POSITION", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 0, .max = UINT64_MAX,
        .help = "begin with this position",
    },
    [SL_OPT_LIMIT] = {
        .name = "count", .letter = 'n', .kind = SL_OPTION_NUMBER, .argument = "N", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = UINT64_MAX,
        .help = "end after so many records",
    },
    [SL_OPT_STREAM] = {
        .name = "stream", .kind = SL_OPTION_TEXT, .argument = "NAME", .commands = SL_COMMAND_JOURNAL_DUMP,
        .min = 1, .max = SL_STREAM_NAME_BYTES_MAX,
        .help = "only events of this stream",
    },
    [SL_OPT_DATA] = {
        .name = "data", .letter = 'd', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_JOURNAL_DUMP,
        .help = "show data and metadata of events, and what is in states of groups",
    },
    [SL_OPT_DEAD_SHARE] = {
        .name = "dead-share", .kind = SL_OPTION_NUMBER, .argument = "PERCENT", .commands = SL_COMMAND_SCAVENGE,
        .default_text = "10", .min = 0, .max = 100,
        .help = "rewrite segments of which at least so much is dead; 0: all with anything dead",
    },
    [SL_OPT_PROGRESS] = {
        .name = "progress", .letter = 'p', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_JOURNAL,
        .help = "show progress also when the error output is no terminal",
    },
    /* clang-format on */
};
