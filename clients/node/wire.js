/* wire.js — the extension fields of the call Read, as bytes.
 *
 * The official clients write and read their messages with classes that were generated from their own .proto files. These
 * drop what they do not know, so the extensions are put behind the bytes that the classes write, and taken from the
 * bytes before the classes read them. Numbers and meanings: proto/persistent.proto.
 *
 * A message of protocol buffers is a row of fields, each a tag (number << 3 | form) and a value: a varint, four or
 * eight bytes, or a length with so many bytes. That is all there is to it here. */
"use strict";

const FORM_VARINT = 0;
const FORM_EIGHT_BYTES = 1;
const FORM_BYTES = 2;
const FORM_FOUR_BYTES = 5;

const REQUEST = { options: 1, ack: 2, nack: 3, stop: 4, release: 100, extend: 101, started: 102 };
const RESPONSE = { event: 1, confirmation: 2, stopped: 100, drained: 101, stopRequested: 102, settled: 103 };
const OPTION = { consumerName: 100, labels: 101, extensions: 102, reconnectMs: 103, resume: 104 };
const ASKED_BY = ["consumer", "operator", "server"];
const INT32_MAX = 2 ** 31 - 1;

/* --- writing --- */

function varint(value) {
    const bytes = [];
    let left = value;
    while (left > 127) {
        bytes.push((left % 128) | 128);
        left = Math.floor(left / 128);
    }
    bytes.push(left);
    return Buffer.from(bytes);
}

function fieldOfNumber(number, value) {
    return Buffer.concat([varint(number * 8 + FORM_VARINT), varint(value)]);
}

function fieldOfBytes(number, ...pieces) {
    const body = Buffer.concat(pieces);
    return Buffer.concat([varint(number * 8 + FORM_BYTES), varint(body.length), body]);
}

function fieldOfText(number, text) {
    return fieldOfBytes(number, Buffer.from(text, "utf8"));
}

/* UUID { string = 2 }: the form in which the official clients write ids too. */
function fieldsOfIds(number, ids) {
    return ids.map((id) => fieldOfBytes(number, fieldOfText(2, id)));
}

function extensionsOf({ consumerName, labels = {}, reconnectMs, resume = [] }) {
    const fields = [fieldOfNumber(OPTION.extensions, 1)];
    if (consumerName !== undefined) fields.push(fieldOfText(OPTION.consumerName, consumerName));
    for (const [key, value] of Object.entries(labels))
        fields.push(fieldOfBytes(OPTION.labels, fieldOfText(1, key), fieldOfText(2, String(value))));
    if (reconnectMs !== undefined) fields.push(fieldOfNumber(OPTION.reconnectMs, reconnectMs));
    return [...fields, ...fieldsOfIds(OPTION.resume, resume)];
}

/* The first request as the official client wrote it, with the extensions behind its own options. */
function withExtensions(request, extensions) {
    for (const { number, bytes } of fields(request))
        if (number === REQUEST.options) return fieldOfBytes(number, bytes, ...extensionsOf(extensions));
    throw new Error("the first request of the client has no options");
}

function stopRequest(handBackUnstarted) {
    const body = handBackUnstarted ? [fieldOfNumber(1, 1)] : [];
    return fieldOfBytes(REQUEST.stop, ...body);
}

/* kind: "ack", "release", "started" */
function idsRequest(kind, ids) {
    return fieldOfBytes(REQUEST[kind], ...fieldsOfIds(2, ids));
}

function extendRequest(ids, leaseMs) {
    return fieldOfBytes(REQUEST.extend, ...fieldsOfIds(2, ids), fieldOfNumber(3, leaseMs));
}

function nackRequest(ids, action, reason) {
    const parts = [...fieldsOfIds(2, ids), fieldOfNumber(3, action), fieldOfText(4, reason)];
    return fieldOfBytes(REQUEST.nack, ...parts);
}

/* --- reading --- */

function readVarint(bytes, start) {
    let value = 0n;
    for (let at = start, shift = 0n; at < bytes.length && shift < 70n; at++, shift += 7n) {
        value |= BigInt(bytes[at] & 127) << shift;
        if (bytes[at] < 128) return [BigInt.asUintN(64, value), at + 1];
    }
    throw new RangeError("a number in a message of the server does not end");
}

/* Most numbers are tags and lengths, and these are small: no big integers on the way of every event. */
function readSmall(bytes, start) {
    if (start < bytes.length && bytes[start] < 128) return [bytes[start], start + 1];
    const [value, next] = readVarint(bytes, start);
    return [Number(value), next];
}

function cut(bytes, start, length) {
    if (start + length > bytes.length) throw new RangeError("a message of the server is cut off");
    return bytes.subarray(start, start + length);
}

function* fields(bytes) {
    for (let at = 0; at < bytes.length;) {
        const [tag, start] = readSmall(bytes, at);
        const form = tag % 8;
        const field = { number: Math.floor(tag / 8), value: 0n, bytes: null };
        if (form === FORM_VARINT) [field.value, at] = readVarint(bytes, start);
        else if (form === FORM_BYTES) {
            const [length, from] = readSmall(bytes, start);
            field.bytes = cut(bytes, from, length);
            at = from + length;
        } else if (form === FORM_EIGHT_BYTES || form === FORM_FOUR_BYTES) {
            const length = form === FORM_EIGHT_BYTES ? 8 : 4;
            field.bytes = cut(bytes, start, length);
            at = start + length;
        } else throw new RangeError(`a message of the server has a field of the unknown form ${form}`);
        yield field;
    }
}

function textOf(bytes) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function textOfHalves(most, least) {
    const hex = [most, least].map((half) => half.toString(16).padStart(16, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/* UUID { structured = 1 { most = 1, least = 2 }, string = 2 } */
function idOf(bytes) {
    for (const field of fields(bytes)) {
        if (field.number === 2) return textOf(field.bytes).toLowerCase();
        if (field.number !== 1) continue;
        const halves = { 1: 0n, 2: 0n };
        for (const { number, value } of fields(field.bytes)) halves[number] = value;
        return textOfHalves(halves[1], halves[2]);
    }
    return "";
}

function idsIn(bytes, wanted) {
    const ids = [];
    for (const field of fields(bytes)) if (field.number === wanted) ids.push(idOf(field.bytes));
    return ids;
}

/* { number: value } of the fields that are numbers. */
function numbersIn(bytes) {
    const numbers = {};
    for (const { number, value, bytes: body } of fields(bytes)) if (!body) numbers[number] = Number(value);
    return numbers;
}

function recordId(bytes) {
    for (const { number, bytes: body } of fields(bytes)) if (number === 1) return idOf(body);
    return "";
}

/* An event is acked by the id of its link, if it has one. */
function eventOf(bytes) {
    const event = { kind: "event", id: "", token: 0n, leaseMs: 0 };
    let hasLink = false;
    for (const { number, value, bytes: body } of fields(bytes)) {
        if (number === 1 && !hasLink) event.id = recordId(body);
        else if (number === 2) {
            event.id = recordId(body);
            hasLink = true;
        } else if (number === 100) event.token = value;
        else if (number === 101) event.leaseMs = Number(value);
    }
    return event;
}

function stoppedOf(bytes) {
    const numbers = numbersIn(bytes);
    return {
        kind: "stopped",
        inFlight: numbers[1] ?? 0,
        alreadyStopped: Boolean(numbers[2]),
        askedBy: ASKED_BY[numbers[3] ?? 0] ?? "unknown",
        outstanding: idsIn(bytes, 4),
    };
}

function drainedOf(bytes) {
    const numbers = numbersIn(bytes);
    return { kind: "drained", settled: numbers[1] ?? 0, released: numbers[2] ?? 0, lost: numbers[3] ?? 0 };
}

function stopRequestedOf(bytes) {
    const request = { kind: "stopRequested", reason: "", handBackUnstarted: false };
    for (const { number, value, bytes: body } of fields(bytes)) {
        if (number === 1 && body) request.reason = textOf(body);
        else if (number === 2 && value > 0n) request.deadlineMs = Number(value);
        else if (number === 3) request.handBackUnstarted = value !== 0n;
    }
    return request;
}

const READERS = {
    [RESPONSE.event]: eventOf,
    [RESPONSE.stopped]: stoppedOf,
    [RESPONSE.drained]: drainedOf,
    [RESPONSE.stopRequested]: stopRequestedOf,
    [RESPONSE.settled]: (bytes) => ({ kind: "settled", ids: idsIn(bytes, 1), lost: idsIn(bytes, 2) }),
};

/* What the server sent, as far as it matters here: { kind, ... }. A kind that is not ours is "other". */
function readResponse(bytes) {
    for (const { number, bytes: body } of fields(bytes))
        if (body && READERS[number]) return READERS[number](body);
    return { kind: "other" };
}

/* What the official client is about to send, if it settles something: { kind, ids, action, reason }; or null. */
function readSettle(bytes) {
    for (const { number, bytes: body } of fields(bytes)) {
        if (number === REQUEST.ack) return { kind: "ack", ids: idsIn(body, 2) };
        if (number !== REQUEST.nack) continue;
        const settle = { kind: "nack", ids: idsIn(body, 2), action: numbersIn(body)[3] ?? 0, reason: "" };
        for (const field of fields(body)) if (field.number === 4) settle.reason = textOf(field.bytes);
        return settle;
    }
    return null;
}

module.exports = {
    INT32_MAX,
    extendRequest,
    idsRequest,
    nackRequest,
    readResponse,
    readSettle,
    stopRequest,
    withExtensions,
};
