// Receives webhooks: `npm install standardwebhooks`, compile, `WEBHOOK_SECRET=whsec_... PORT=8000 node receiver.js`.
import { createServer } from "node:http";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

type Event = { type: string; timestamp: string; data: Record<string, unknown> };

const webhook = new Webhook(process.env.WEBHOOK_SECRET ?? "");
const handled = new Set<string>();

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const body = Buffer.concat(chunks).toString("utf8");
    const event = webhook.verify(body, request.headers as Record<string, string>) as Event;
    const id = request.headers["webhook-id"] as string;
    if (!handled.has(id)) {
      // Better: a unique column, in the transaction that handles the event.
      console.log(event.type, JSON.stringify(event.data));
      handled.add(id);
    }
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof WebhookVerificationError ? 401 : 500).end();
  }
});
server.listen(Number(process.env.PORT ?? 8000), "127.0.0.1");
