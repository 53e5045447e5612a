// A fetch that trusts a private authority and shows a certificate: new Client({ fetch: certified({ ca, cert, key }) })
//
// Node's own fetch trusts NODE_EXTRA_CA_CERTS, but shows no certificate. To show a renewed one, make a new client.
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";

export function certified({ ca, cert, key }) {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) });
  return (url, { method, headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(url, { agent, method, headers, signal }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () => {
          const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
          resolve(new Response(Buffer.concat(parts), { status: answer.statusCode, headers }));
        });
      });
      sent.on("error", reject);
      sent.end(body ?? undefined);
    });
}
