/* tests/fuzz/server_words.h — messages that a client might send, made of a few bytes of the input.
 *
 * A fuzzer that has to find whole protobuf messages rarely gets behind the decoder. So the input chooses among names, revisions and
 * contents that mean something to a server (metadata, links, users, ACLs), and then may change single bytes of what was made. */
#ifndef SL_TESTS_FUZZ_SERVER_WORDS_H
#define SL_TESTS_FUZZ_SERVER_WORDS_H

#include "server_script.h"

#include "base/arena.h"
#include "server/method.h"
#include "wire/metadata.h"

/* "/package.Service/Method": one that the server has, sometimes one that it has not. */
sl_str words_path(script *s, sl_arena *arena);

/* Up to 4 rows. */
size_t words_metadata(script *s, sl_metadata rows[4]);

/* The next message of a call; message_index counts from 0. method NULL: any bytes. */
sl_str words_message(script *s, sl_arena *arena, const sl_method *method, uint32_t message_index);

#endif
