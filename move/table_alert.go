package move

// alertRuleTable holds people's changes of rules; the presets are in the programs.
func alertRuleTable() table {
	return table{"rules of alerts", changed(
		is("name", kindText), is("queue", kindText), is("metric", kindText), is("op", kindText), is("threshold", kindReal),
		is("rate_share", kindReal), is("for_ms", kindInt), is("window_ms", kindInt), is("severity", kindText), is("covers", kindText),
		is("summary", kindText), is("runbook", kindText), is("disabled", kindBool),
	), keyed("alert_rule", "name", "queue"), keyed("sluice_alert_rule", "name", "queue")}
}

// alertTable holds the state of each alert after the last evaluation.
func alertTable() table {
	return table{"alerts", []column{
		is("rule", kindText), is("queue", kindText), is("state", kindText), is("since", kindInstant), is("pending_since", kindInstant),
		is("fired_at", kindInstant), is("resolved_at", kindInstant), is("notified", kindBool), is("value", kindReal), is("threshold", kindReal),
		is("severity", kindText), is("evaluated_at", kindInstant), is("detail", kindText), is("version", kindInt),
	}, keyed("alert", "rule", "queue"), keyed("sluice_alert", "rule", "queue")}
}

func alertReceiverTable() table {
	return table{
		"receivers of alerts",
		[]column{is("name", kindText), is("queue", kindText), is("seen", kindInstant)},
		keyed("alert_receiver", "name"), keyed("sluice_alert_receiver", "name"),
	}
}
