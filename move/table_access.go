package move

func accessTokenTable() table {
	return table{"tokens", []column{
		is("name", kindText), is("hash", kindText), is("old_hash", kindText), is("terms", kindText), is("used_at", kindInstant),
		is("version", kindInt), is("changed_at", kindInstant), is("changed_by", kindText), is("reason", kindText),
	}, keyed("access_token", "name"), keyed("sluice_access_token", "name")}
}
