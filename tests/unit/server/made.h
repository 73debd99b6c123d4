/* tests/unit/server/made.h — methods that services do not have, to see what the dispatcher does with any method.
 *
 * What happens to them is written down as a story: "begin;message hello;half-close;end;". */
#ifndef SL_TESTS_UNIT_SERVER_MADE_H
#define SL_TESTS_UNIT_SERVER_MADE_H

#include "rig.h"

#include "server/request.h"

#define MADE_ECHO       "/made.Made/Echo"      /* unary: the answer is the request */
#define MADE_LATER      "/made.Made/Later"     /* unary: the test answers, through made_last */
#define MADE_SMALL      "/made.Made/Small"     /* as Echo, of at most 10 bytes */
#define MADE_OPERATORS  "/made.Made/Operators" /* as Echo, for some; the others are for readers */
#define MADE_ADMINS     "/made.Made/Admins"
#define MADE_ANYONE     "/made.Made/Anyone"
#define MADE_MANY       "/made.Made/Many" /* server stream: the request says how many messages of 1,000 bytes */
#define MADE_COUNT      "/made.Made/Count"  /* client stream: the answer is how many bytes came */
#define MADE_TALK       "/made.Made/Talk"   /* bidi: each message comes back; OK after the last */
#define MADE_CANCEL     "/made.Made/Cancel" /* bidi: the first message cancels the call under the dispatcher */
#define MADE_CANCEL_ONE "/made.Made/CancelOne" /* unary: the same */
#define MADE_PAUSED     "/made.Made/Paused"    /* bidi: pauses in begin, and the test resumes; then as Talk */
#define MADE_HASTY      "/made.Made/Hasty"     /* bidi: pauses and resumes in begin; then as Talk */
#define MADE_HELD       "/made.Made/Held"      /* bidi: holds its request; the test lets it go */
#define MADE_STOPS      "/made.Made/Stops"     /* bidi: has a stop of its own: OK and "stopped" */

extern char made_story[1024];
extern sl_request *made_last; /* whose begin() came last */

/* A rig that has these methods and no others. */
void made_start(server_rig *rig);
void made_forget(void); /* the story so far */
/* For a host that the test has made itself. */
const sl_method *made_find(sl_str path, const char **ret_why);

#endif
