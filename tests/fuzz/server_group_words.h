/* tests/fuzz/server_group_words.h — messages about consumer groups, for server_words.c. */
#ifndef SL_TESTS_FUZZ_SERVER_GROUP_WORDS_H
#define SL_TESTS_FUZZ_SERVER_GROUP_WORDS_H

#include "server_script.h"

#include "base/arena.h"
#include "server/method.h"
#include "wire/streams_control.h"

/* False: the method is not about groups. `filter` is of the input, for groups on everything. */
bool group_words_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index,
                         const sl_wire_filter *filter, sl_str *ret_message);

#endif
