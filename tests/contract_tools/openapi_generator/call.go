// Creates a campaign twice under one key by the client that openapi-generator makes for Go, and lists it.
package main

import (
	"context"
	"encoding/json"
	"os"

	outreach "example.com/outreach"
)

func main() {
	configuration := outreach.NewConfiguration()
	configuration.Servers = outreach.ServerConfigurations{{URL: os.Args[1]}}
	client := outreach.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), outreach.ContextAccessToken, os.Args[2])

	person := outreach.NewRecipient("+14155550132")
	person.SetFirstName("Ana")
	person.SetExternalId("crm-7")
	campaign := outreach.NewSmsCampaignCreate("By Go", []outreach.Recipient{*person})
	campaign.SetMessageBody("Hi {{first_name}}")
	campaign.SetSmsCarrier(outreach.CARRIER_TWILIO)
	campaign.SetSmsFromNumber("+14155550100")
	week := outreach.NewWeekSchedule()
	week.SetMonday([]outreach.Window{*outreach.NewWindow("09:00", "17:00")})
	hours := outreach.NewBusinessHoursBySchedule("Europe/Lisbon", *week)
	campaign.SetBusinessHoursConfig(outreach.BusinessHoursByScheduleAsBusinessHoursRequest(hours))

	var shown []string
	zone := ""
	for range 2 {
		made, _, err := client.SmsCampaignsAPI.CreateSmsCampaign(ctx).SmsCampaignCreate(*campaign).IdempotencyKey("by-go").Execute()
		check(err)
		shown = append(shown, made.GetId())
		zone = made.BusinessHoursConfig.Get().Timezone
	}
	listed, _, err := client.SmsCampaignsAPI.ListSmsCampaigns(ctx).Search("By Go").Execute()
	check(err)
	for _, one := range listed.Data {
		shown = append(shown, one.GetId())
	}
	check(json.NewEncoder(os.Stdout).Encode(append(shown, zone)))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
