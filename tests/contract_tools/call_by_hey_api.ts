// Calls every operation of a running server by the client that hey-api makes, and prints what came of each.
import { client } from "./hey/client.gen";
import * as sdk from "./hey";

const [url, key, agent] = process.argv.slice(2) as [string, string, string];
client.setConfig({ baseUrl: url, auth: () => key });

const statuses: Record<string, number> = {};

function note<T>(operation: string, answer: { data?: T; error?: unknown; response?: Response }): T {
  statuses[operation] = answer.response?.status ?? 0;
  if (answer.data === undefined) throw new Error(`${operation}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function main(): Promise<void> {
  const call = note("createCall", await sdk.createCall({
    body: { agent_id: agent, to: "+14155550131", variables: { first_name: "Ana", invoices: [3, null] } },
  }));
  const record = note("getCall", await sdk.getCall({ path: { id: call.callId! } }));
  if (record.to !== "+14155550131" || record.variables["invoices"] !== "[3,null]") throw new Error("another call");

  const sms: sdk.SmsCampaignCreate = {
    name: "By hey-api",
    message_body: "Hi {{first_name}}",
    sms_carrier: "twilio",
    sms_from_number: "+14155550100",
    schedule_type: "scheduled",
    scheduled_start_at: "2027-12-01T09:00:00-08:00",
    recipients: [{ phone_number: "+14155550132", first_name: "Ana", custom_variables: { plan: "Comfort" } }],
    business_hours_config: { timezone: "Europe/Lisbon", schedule: { monday: [{ start: "09:00", end: "17:00" }] } },
    holidays_config: { country: "GB", subdivision: "ENG" },
  };
  // @ts-expect-error what is no carrier is found by the compiler
  const wrong: sdk.SmsCampaignCreate = { ...sms, sms_carrier: "pigeon" };
  const created = note("createSmsCampaign", await sdk.createSmsCampaign({ body: sms }));
  if (created.status !== "ready" || created.sms_opted_out_excluded !== 0) throw new Error("another campaign");
  const listed = note("listSmsCampaigns", await sdk.listSmsCampaigns({
    query: { status: "ready", search: "hey-api", page_size: 5 },
  }));
  if (listed.data[0]?.id !== created.id || listed.pagination.total !== 1) throw new Error("another list");

  const calling = note("createCampaign", await sdk.createCampaign({
    body: {
      channel: "call",
      agent_id: agent,
      name: "Calls by hey-api",
      recipients: [{ phone_number: "+14155550133" }],
      business_hours_config: { timezone: "UTC", days: ["mon", "Tuesday"], start: "09:00", end: "17:00" },
    },
  }));
  if (calling.agent?.id !== agent || calling.business_hours_config?.schedule.tuesday?.length !== 1) {
    throw new Error("another calling campaign");
  }
  note("createCampaign", await sdk.createCampaign({ body: { ...sms, channel: "sms" } }));
  const both = note("listCampaigns", await sdk.listCampaigns({ query: { search: "by hey-api" } }));
  if (both.data.length !== 3) throw new Error(`${both.data.length} campaigns of three`);

  const settings = note("updateSmsSettings", await sdk.updateSmsSettings({ body: { max_segments: 4 } }));
  if (settings.max_segments !== 4) throw new Error("other settings");
  const sent = note("sendSms", await sdk.sendSms({ body: { to: "+14155550134", body: "Your table is ready." } }));
  if (sent.segments !== 1) throw new Error("another message");

  const refused = await sdk.sendSms({ body: { to: "1", body: "x" } });
  if (refused.error?.error.code !== "invalid_request") throw new Error("not refused");
  console.log(JSON.stringify(statuses));
}

main().catch((problem) => {
  console.error(problem);
  process.exit(1);
});
