/* tests/tools/plain.h — makes our server one without extensions, as KurrentDB is: no tokens, no confirmations, no Stop.
 *
 * The linker puts plain.c between the server and its codec (--wrap). ServerFeatures then lists nothing but what KurrentDB has, and a
 * consumer that uses an extension all the same is refused with a sentence: whoever asked first would not have sent it (S1.28).
 * Everything else is the real server, which treats such a client as a plain one. Off until it is switched on, except in the program
 * `plain`, which is the whole of sluice like this. */
#ifndef SL_TESTS_TOOLS_PLAIN_H
#define SL_TESTS_TOOLS_PLAIN_H

#include <stdbool.h>

extern bool plain_is_on;

#endif
