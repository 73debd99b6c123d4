/* lib/certificates.mjs — a certificate authority of our own, for as long as a test runs. Made by openssl(1). */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

function openssl(...words) {
    execFileSync("openssl", words, { stdio: ["ignore", "ignore", "pipe"] });
}

function newKey(path) {
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path);
}

/* Files in `folder`: authority (for the clients), certificate and key (for the server, good for localhost and
 * 127.0.0.1). */
export function makeCertificates(folder) {
    const file = (name) => join(folder, name);
    const [authority, authorityKey] = [file("authority.pem"), file("authority.key")];
    const [certificate, key, request, extensions] = [
        "server.pem",
        "server.key",
        "server.csr",
        "server.ext",
    ].map(file);
    newKey(authorityKey);
    openssl(
        "req",
        "-x509",
        "-new",
        "-key",
        authorityKey,
        "-out",
        authority,
        "-days",
        "2",
        "-subj",
        "/CN=test authority",
        "-addext",
        "basicConstraints=critical,CA:TRUE",
    );
    newKey(key);
    openssl("req", "-new", "-key", key, "-out", request, "-subj", "/CN=localhost");
    writeFileSync(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n");
    openssl(
        "x509",
        "-req",
        "-in",
        request,
        "-CA",
        authority,
        "-CAkey",
        authorityKey,
        "-CAcreateserial",
        "-out",
        certificate,
        "-days",
        "2",
        "-extfile",
        extensions,
    );
    return { authority, certificate, key };
}
