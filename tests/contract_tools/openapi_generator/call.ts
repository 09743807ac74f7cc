// Creates a campaign twice under one key by the client that openapi-generator makes for TypeScript, and lists it.
import { Carrier, Configuration, SmsCampaignsApi, type SmsCampaignCreate } from "./client";

const [url, key] = process.argv.slice(2) as [string, string];
const campaigns = new SmsCampaignsApi(new Configuration({ basePath: url, accessToken: key }));

const smsCampaignCreate: SmsCampaignCreate = {
  name: "By TypeScript",
  messageBody: "Hi {{first_name}}",
  smsCarrier: Carrier.Twilio,
  smsFromNumber: "+14155550100",
  recipients: [{ phoneNumber: "+14155550132", firstName: "Ana", externalId: "crm-7" }],
  businessHoursConfig: { timezone: "Europe/Lisbon", schedule: { monday: [{ start: "09:00", end: "17:00" }] } },
};

async function main(): Promise<void> {
  const idempotencyKey = "by-typescript";
  const first = await campaigns.createSmsCampaign({ smsCampaignCreate, idempotencyKey });
  const again = await campaigns.createSmsCampaign({ smsCampaignCreate, idempotencyKey });
  const listed = await campaigns.listSmsCampaigns({ search: "By TypeScript" });
  const zone = first.businessHoursConfig?.timezone;
  console.log(JSON.stringify([first.id, again.id, ...listed.data.map((one) => one.id), zone]));
}

main().catch(async (problem) => {
  console.error(problem, await problem.response?.text());
  process.exit(1);
});
