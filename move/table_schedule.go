package move

func scheduleTable() table {
	return table{"schedules", []column{
		is("name", kindText), is("queue", kindText), is("version", kindInt), is("next_at", kindInstant), is("definition", kindText),
		is("progress", kindText), is("changed_at", kindInstant), is("changed_by", kindText), is("reason", kindText),
	}, keyed("schedule", "name"), keyed("sluice_schedule", "name")}
}
