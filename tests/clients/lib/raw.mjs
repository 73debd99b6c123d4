/* lib/raw.mjs — calls without an official client, from our own .proto files: for what those clients never send,
 * such as ids in their structured form, and for looking at every message and trailer of an answer. */
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

import { within } from "./wait.mjs";

const PROTO_FOLDER = fileURLToPath(new URL("../../../proto", import.meta.url));
const FILES = [
    "streams",
    "persistent",
    "serverfeatures",
    "gossip",
    "operations",
    "users",
    "monitoring",
    "streams_v2",
    "operators",
];
const ANSWER_MS_MAX = 20_000;

/* Names as in the .proto files, 64-bit numbers and values of enums as text; beside each oneof stands which
 * member it is. */
const definition = loader.loadSync(
    FILES.map((name) => `${name}.proto`),
    {
        includeDirs: [PROTO_FOLDER],
        keepCase: true,
        longs: String,
        enums: String,
        defaults: true,
        oneofs: true,
    },
);
const packages = grpc.loadPackageDefinition(definition);
const v1 = packages.event_store.client;

export const SERVICES = {
    streams: v1.streams.Streams,
    persistent: v1.persistent_subscriptions.PersistentSubscriptions,
    features: v1.server_features.ServerFeatures,
    gossip: v1.gossip.Gossip,
    operations: v1.operations.Operations,
    users: v1.users.Users,
    monitoring: v1.monitoring.Monitoring,
    operators: packages.sluice.operators.Operators,
    v2: packages.kurrentdb.protocol.v2.streams.StreamsService,
};

export const { status } = grpc;

export class Raw {
    /* credentials: of the channel; options: of grpc-js. */
    constructor(server, { credentials = grpc.credentials.createInsecure(), options = {} } = {}) {
        this.channel = new grpc.Channel(server.address, credentials, {
            "grpc.max_receive_message_length": 17 * 1024 * 1024,
            ...options,
        });
        this.stubs = {};
        for (const [name, Service] of Object.entries(SERVICES))
            this.stubs[name] = new Service(null, null, { channelOverride: this.channel });
    }

    /* One request, one answer: { response, error, headers, status }. */
    unary(service, method, request, { headers = {}, ...options } = {}) {
        const answer = new Promise((resolve) => {
            const result = {};
            const call = this.stubs[service][method](request, metadata(headers), options, (error, response) => {
                result.error = error;
                result.response = response;
            });
            call.on("metadata", (initial) => (result.headers = initial));
            call.on("status", (end) => resolve({ ...result, status: end }));
        });
        return within(answer, ANSWER_MS_MAX, `the answer of ${method}`);
    }

    /* One request, many answers: { responses, error, status }. `until` ends the call early when it holds for
     * the answers so far. */
    serverStream(service, method, request, { until = () => false, headers = {}, ...options } = {}) {
        const answer = new Promise((resolve) => {
            const responses = [];
            const call = this.stubs[service][method](request, metadata(headers), options);
            const result = { responses, error: null };
            call.on("data", (response) => {
                responses.push(response);
                if (until(responses)) call.cancel();
            });
            call.on("error", (error) => (result.error = error));
            call.on("status", (end) => resolve({ ...result, status: end }));
        });
        return within(answer, ANSWER_MS_MAX, `the answers of ${method}`);
    }

    /* Many requests, one answer. */
    clientStream(service, method, requests, { headers = {}, ...options } = {}) {
        const answer = new Promise((resolve) => {
            const result = {};
            const call = this.stubs[service][method](metadata(headers), options, (error, response) => {
                result.error = error;
                result.response = response;
            });
            call.on("error", () => {}); /* told by the callback too */
            call.on("status", (end) => resolve({ ...result, status: end }));
            for (const request of requests) call.write(request);
            call.end();
        });
        return within(answer, ANSWER_MS_MAX, `the answer of ${method}`);
    }

    /* Many requests, many answers; the request side is closed behind the last. */
    bidi(service, method, requests, { headers = {}, ...options } = {}) {
        const answer = new Promise((resolve) => {
            const responses = [];
            const result = { responses, error: null };
            const call = this.stubs[service][method](metadata(headers), options);
            call.on("data", (response) => responses.push(response));
            call.on("error", (error) => (result.error = error));
            call.on("status", (end) => resolve({ ...result, status: end }));
            for (const request of requests) call.write(request);
            call.end();
        });
        return within(answer, ANSWER_MS_MAX, `the answers of ${method}`);
    }

    /* Bytes as they are to any path: { error, bytes, status }. */
    bytes(path, payload, { headers = {}, ...options } = {}) {
        const client = new grpc.Client(null, null, { channelOverride: this.channel });
        const answer = new Promise((resolve) => {
            const result = {};
            const same = (value) => value;
            const call = client.makeUnaryRequest(
                path,
                same,
                same,
                payload,
                metadata(headers),
                options,
                (error, bytes) => {
                    result.error = error;
                    result.bytes = bytes;
                },
            );
            call.on("status", (end) => resolve({ ...result, status: end }));
        });
        return within(answer, ANSWER_MS_MAX, `the answer of ${path}`);
    }

    close() {
        this.channel.close();
    }
}

function metadata(headers) {
    const all = new grpc.Metadata();
    for (const [key, value] of Object.entries(headers)) all.add(key, value);
    return all;
}

/* The trailers of an answer that failed, as an object. */
export function trailersOf({ status: end }) {
    return end.metadata.getMap();
}

/* --- pieces of messages --- */

/* A request as it stands in DATA frames: not compressed, its length, its bytes. */
export function framed(service, method, request) {
    const bytes = SERVICES[service].service[method].requestSerialize(request);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(bytes.length, 1);
    return Buffer.concat([head, bytes]);
}

export function identifier(name) {
    return { stream_name: Buffer.from(name) };
}

/* The 16 bytes of an id as two signed numbers, most significant first. */
export function structured(text) {
    const bytes = Buffer.from(text.replaceAll("-", ""), "hex");
    return {
        structured: {
            most_significant_bits: bytes.readBigInt64BE(0).toString(),
            least_significant_bits: bytes.readBigInt64BE(8).toString(),
        },
    };
}

export function proposal(id, { type = "raw", data = "{}", contentType = "application/json" } = {}) {
    const described = { type, "content-type": contentType };
    return { id, metadata: described, custom_metadata: Buffer.alloc(0), data: Buffer.from(data) };
}

/* Options of Read for a stream, forwards, with ids as texts; change what is to be different. */
export function readOptions(stream, changes = {}) {
    return {
        options: {
            stream: { stream_identifier: identifier(stream), start: {} },
            read_direction: "Forwards",
            count: "1000",
            no_filter: {},
            uuid_option: { string: {} },
            ...changes,
        },
    };
}
