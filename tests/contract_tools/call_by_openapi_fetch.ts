// Calls every operation of a running server by the types that openapi-typescript makes, and prints what came of each.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

const [url, key, agent] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const statuses: Record<string, number> = {};

function note<T>(operation: string, answer: { data?: T; error?: unknown; response: Response }): T {
  statuses[operation] = answer.response.status;
  if (answer.data === undefined) throw new Error(`${operation}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function main(): Promise<void> {
  const call = note("createCall", await client.POST("/calls", {
    body: { agent_id: agent, to: "+14155550141", variables: { first_name: "Ana", invoices: [3, null] } },
  }));
  const record = note("getCall", await client.GET("/calls/{id}", { params: { path: { id: call.callId! } } }));
  if (record.to !== "+14155550141") throw new Error("another call");

  const sms: components["schemas"]["SmsCampaignCreate"] = {
    name: "By openapi-fetch",
    message_body: "Hi {{first_name}}",
    sms_carrier: "telnyx",
    sms_from_number: "+14155550100",
    sms_mode: "one_way",
    sms_message_source: "custom",
    sms_rate_per_minute: 60,
    schedule_type: "immediate",
    csv_column_headers: [],
    recipients: [{ phone_number: "+14155550142", custom_variables: { plan: "Comfort" } }],
    business_hours_config: { enabled: true, timezone: "UTC", days: { mon: { enabled: false } }, batchConcurrency: 5 },
    holidays_config: { country: "PT" },
  };
  // @ts-expect-error what is no rate is found by the compiler
  const wrong: components["schemas"]["SmsCampaignCreate"] = { ...sms, sms_rate_per_minute: "60" };
  const created = note("createSmsCampaign", await client.POST("/sms-campaigns", { body: sms }));
  if (created.sms_carrier !== "telnyx" || created.sms_opted_out_excluded !== 0) throw new Error("another campaign");
  const listed = note("listSmsCampaigns", await client.GET("/sms-campaigns", {
    params: { query: { status: "ready", search: "openapi-fetch" } },
  }));
  if (listed.data[0]?.id !== created.id) throw new Error("another list");

  note("createCampaign", await client.POST("/campaigns", { body: { ...sms, channel: "sms" } }));
  const both = note("listCampaigns", await client.GET("/campaigns", { params: { query: { search: "openapi-FETCH" } } }));
  if (both.pagination.total !== 2) throw new Error(`${both.pagination.total} campaigns of two`);

  const settings = note("updateSmsSettings", await client.PATCH("/sms/settings", { body: { retry_enabled: true } }));
  if (settings.retry_enabled !== true) throw new Error("other settings");
  note("sendSms", await client.POST("/sms", { body: { to: "+14155550144", body: "Your table is ready." } }));

  const refused = await client.POST("/sms", { body: { to: "1", body: "x" } });
  if (refused.error?.error.details[0]?.path !== "to") throw new Error("not refused");
  console.log(JSON.stringify(statuses));
}

main().catch((problem) => {
  console.error(problem);
  process.exit(1);
});
