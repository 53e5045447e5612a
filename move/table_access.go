package move

func accessTokenTable() table {
	return table{"tokens", []column{
		is("name", kindText), is("hash", kindText), is("old_hash", kindText), is("terms", kindText), is("used_at", kindInstant),
		is("version", kindInt), is("changed_at", kindInstant), is("changed_by", kindText), is("reason", kindText),
	}, keyed("access_token", "name"), keyed("sluice_access_token", "name")}
}

// deadNoteTable holds the notes on groups of dead letters.
func deadNoteTable() table {
	columns := changed(is("fingerprint", kindText), is("note", kindText), is("owner", kindText), is("resolved_at", kindInstant))
	return table{"notes on dead letters", columns, keyed("dead_note", "fingerprint"), keyed("sluice_dead_note", "fingerprint")}
}
