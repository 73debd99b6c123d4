/* server/streams/hidden.h — streams of the server itself that nobody sees in $all. */
#ifndef SL_SERVER_STREAMS_HIDDEN_H
#define SL_SERVER_STREAMS_HIDDEN_H

#include "base/str.h"

/* For reads, subscriptions and groups of $all; the stream itself can be read by who may. */
bool sl_all_hides(sl_str stream);

#endif
