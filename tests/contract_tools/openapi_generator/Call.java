import java.util.ArrayList;
import java.util.List;

import org.openapitools.client.ApiClient;
import org.openapitools.client.api.SmsCampaignsApi;
import org.openapitools.client.model.*;

/** Creates a campaign twice under one key by the client that openapi-generator makes for Java, and lists it. */
public class Call {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(arguments[0]);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + arguments[1]));
        SmsCampaignsApi campaigns = new SmsCampaignsApi(client);
        WeekSchedule week = new WeekSchedule().addMondayItem(new Window().start("09:00").end("17:00"));
        SmsCampaignCreate campaign = new SmsCampaignCreate()
            .name("By Java")
            .messageBody("Hi {{first_name}}")
            .smsCarrier(Carrier.TWILIO)
            .smsFromNumber("+14155550100")
            .addRecipientsItem(new Recipient().phoneNumber("+14155550132").firstName("Ana").externalId("crm-7"))
            .businessHoursConfig(new BusinessHoursRequest(
                new BusinessHoursBySchedule().timezone("Europe/Lisbon").schedule(week)));

        List<String> shown = new ArrayList<>();
        CampaignCreated made = null;
        for (int attempt = 0; attempt < 2; attempt++) {
            made = campaigns.createSmsCampaign(campaign, "by-java");
            shown.add(made.getId().toString());
        }
        for (Campaign one : campaigns.listSmsCampaigns(null, null, null, "By Java").getData()) {
            shown.add(one.getId().toString());
        }
        shown.add(made.getBusinessHoursConfig().getTimezone());
        System.out.println("[\"" + String.join("\", \"", shown) + "\"]");
    }
}
