-- Columns are called as the fields of the models are.
ALTER TABLE campaigns RENAME COLUMN sip_trunk_id TO trunk_id;
ALTER TABLE campaigns RENAME COLUMN sms_mode TO message_mode;
ALTER TABLE campaigns RENAME COLUMN sms_message_source TO message_source;
ALTER TABLE campaigns RENAME COLUMN sms_message_body TO body;
ALTER TABLE campaigns RENAME COLUMN sms_flow_id TO flow_id;
ALTER TABLE campaigns RENAME COLUMN sms_carrier TO carrier;
ALTER TABLE campaigns RENAME COLUMN sms_from_number TO from_number;
ALTER TABLE campaigns RENAME COLUMN sms_rate_per_minute TO rate_per_minute;

UPDATE campaigns
SET cli_group = (
    SELECT json_group_array(
        json_object(
            'number_id', json_extract(entry.value, '$.phone_number_id'),
            'phone', json_extract(entry.value, '$.phone_e164'),
            'count', json_extract(entry.value, '$.count')
        )
    )
    FROM json_each(campaigns.cli_group) AS entry
)
WHERE cli_group IS NOT NULL;
