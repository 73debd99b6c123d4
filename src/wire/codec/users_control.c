/* wire/codec/users_control.c — accounts.
 *
 * Every request is a message with options, and options are a name, up to two more texts and, in two of them, groups, with
 * the same numbers everywhere. So all are read as a CreateReq, and the call says what the texts mean. */
#include "wire/server_control.h"

#include "wire/codec/unpack.h"
#include "wire/codec/users.pb-c.h"

typedef EventStore__Client__Users__CreateReq__Options user_options;
typedef EventStore__Client__Users__DetailsResp__UserDetails user_details;

static sl_err from_options(sl_user_call call, const user_options *options, sl_arena *arena,
                           sl_user_request *into)
{
    const sl_str second = sl_unpacked_text(options->password);
    const sl_str third = sl_unpacked_text(options->full_name);

    into->login_name = sl_unpacked_text(options->login_name);
    switch (call) {
    case SL_USER_CALL_NAME_ONLY: return SL_OK;
    case SL_USER_CALL_RESET_PASSWORD: into->new_password = second; return SL_OK;
    case SL_USER_CALL_CHANGE_PASSWORD:
        into->password = second;
        into->new_password = third;
        return SL_OK;
    case SL_USER_CALL_CREATE:
    case SL_USER_CALL_UPDATE: break;
    }
    into->password = second;
    into->full_name = third;
    into->group_count = options->n_groups;
    return sl_unpacked_texts(arena, options->groups, options->n_groups, &into->groups) ? SL_OK : SL_ERR_NOMEM;
}

sl_err sl_user_request_decode(sl_user_call call, sl_str message, sl_arena *arena,
                              sl_user_request *ret_request, const char **ret_reason)
{
    EventStore__Client__Users__CreateReq *unpacked;
    sl_user_request request = { 0 };
    sl_err err =
        sl_unpack(&event_store__client__users__create_req__descriptor, message, arena, &unpacked, ret_reason);

    if (err == SL_OK && unpacked->options != NULL)
        err = from_options(call, unpacked->options, arena, &request);
    if (err == SL_OK)
        *ret_request = request;
    return err;
}

/* The same the other way round. */
static void to_options(sl_user_call call, const sl_user_request *request, sl_packer *packer,
                       user_options *into)
{
    sl_str second = request->password, third = { 0 };

    switch (call) {
    case SL_USER_CALL_NAME_ONLY: second = (sl_str){ 0 }; break;
    case SL_USER_CALL_RESET_PASSWORD: second = request->new_password; break;
    case SL_USER_CALL_CHANGE_PASSWORD: third = request->new_password; break;
    case SL_USER_CALL_CREATE:
    case SL_USER_CALL_UPDATE:
        third = request->full_name;
        into->n_groups = request->group_count;
        into->groups = sl_packer_texts(packer, request->groups, request->group_count);
        break;
    }
    into->login_name = sl_packer_text(packer, request->login_name);
    into->password = sl_packer_text(packer, second);
    into->full_name = sl_packer_text(packer, third);
}

sl_err sl_user_request_encode(sl_user_call call, const sl_user_request *request, sl_arena *arena,
                              sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__Users__CreateReq packed = EVENT_STORE__CLIENT__USERS__CREATE_REQ__INIT;
    user_options options = EVENT_STORE__CLIENT__USERS__CREATE_REQ__OPTIONS__INIT;

    packed.options = &options;
    to_options(call, request, &packer, &options);
    return sl_pack(&packer, &packed.base, ret_message);
}

static sl_err from_details(const user_details *details, sl_arena *arena, sl_user_details *into)
{
    *into = (sl_user_details){ .login_name = sl_unpacked_text(details->login_name),
                               .full_name = sl_unpacked_text(details->full_name),
                               .group_count = details->n_groups,
                               .disabled = details->disabled };
    if (details->last_updated != NULL)
        into->updated_ticks = (uint64_t)details->last_updated->ticks_since_epoch;
    return sl_unpacked_texts(arena, details->groups, details->n_groups, &into->groups) ? SL_OK : SL_ERR_NOMEM;
}

sl_err sl_user_details_decode(sl_str message, sl_arena *arena, sl_user_details *ret_details,
                              const char **ret_reason)
{
    EventStore__Client__Users__DetailsResp *unpacked;
    sl_user_details details = { 0 };
    sl_err err = sl_unpack(&event_store__client__users__details_resp__descriptor, message, arena, &unpacked,
                           ret_reason);

    if (err == SL_OK && unpacked->user_details != NULL)
        err = from_details(unpacked->user_details, arena, &details);
    if (err == SL_OK)
        *ret_details = details;
    return err;
}

sl_err sl_user_details_encode(const sl_user_details *details, sl_arena *arena, sl_str *ret_message)
{
    sl_packer packer = { .arena = arena };
    EventStore__Client__Users__DetailsResp packed = EVENT_STORE__CLIENT__USERS__DETAILS_RESP__INIT;
    user_details inner = EVENT_STORE__CLIENT__USERS__DETAILS_RESP__USER_DETAILS__INIT;
    EventStore__Client__Users__DetailsResp__UserDetails__DateTime updated =
        EVENT_STORE__CLIENT__USERS__DETAILS_RESP__USER_DETAILS__DATE_TIME__INIT;

    packed.user_details = &inner;
    inner.login_name = sl_packer_text(&packer, details->login_name);
    inner.full_name = sl_packer_text(&packer, details->full_name);
    inner.n_groups = details->group_count;
    inner.groups = sl_packer_texts(&packer, details->groups, details->group_count);
    inner.last_updated = &updated;
    updated.ticks_since_epoch = (int64_t)details->updated_ticks;
    inner.disabled = details->disabled;
    return sl_pack(&packer, &packed.base, ret_message);
}
