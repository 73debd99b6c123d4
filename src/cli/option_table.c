/* cli/option_table.c — the options of sluice, all of them. cli/options.h says what each column means. */
#include <assert.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/budget.h"

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
        .name = "json", .letter = 'j', .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_VERSION | SL_COMMAND_BUDGET,
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
};
