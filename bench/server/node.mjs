// bench/server/node.mjs PORT SECONDS — what the official Node client gets out of the server, as lines "name events/s".
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const require = createRequire(pathToFileURL(resolve("tests/clients/package.json")));
const { KurrentDBClient, jsonEvent } = require("@kurrent/kurrentdb-client");
const [port, seconds] = process.argv.slice(2).map(Number);
const client = KurrentDBClient.connectionString`kurrentdb://127.0.0.1:${port}?tls=false`;
const body = "x".repeat(240);
const event = () => jsonEvent({ type: "bench", data: { body } });

/** Appends with so many on their way, each of so many events. */
async function append(inFlight, events) {
  const end = Date.now() + seconds * 1000;
  let confirmed = 0;
  const producer = async (name) => {
    while (Date.now() < end) {
      await client.appendToStream(`node-${name}`, Array.from({ length: events }, event));
      confirmed += events;
    }
  };
  const begin = Date.now();
  await Promise.all(Array.from({ length: inFlight }, (_, i) => producer(i)));
  return (confirmed * 1000) / (Date.now() - begin);
}

async function readAll() {
  const begin = Date.now();
  let count = 0;
  for await (const _ of client.readAll()) count++;
  return (count * 1000) / (Date.now() - begin);
}

await append(1, 1);
for (const inFlight of [1, 16, 256]) console.log(`node.append.${inFlight}`, await append(inFlight, 1));
console.log("node.append.100x16", await append(16, 100));
await readAll();
console.log("node.read", await readAll());
await client.dispose();
