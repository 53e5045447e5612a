package move

func namedLimitTable() table {
	columns := changed(is("name", kindText), is("concurrency", kindInt), is("rate", kindReal), is("rate_per_ms", kindInt), is("burst", kindInt),
		is("closed", kindBool), is("closed_until", kindInstant), is("per_key", kindBool), is("by_cost", kindBool))
	return table{"limits", columns, keyed("named_limit", "name"), keyed("sluice_named_limit", "name")}
}

func limitKeyTable() table {
	columns := []column{
		is("name", kindText), is("key", kindText), is("tokens", kindReal), is("filled_at", kindInstant), is("closed_until", kindInstant),
		is("idle_from", kindInstant),
	}
	return table{"keys of limits", columns, keyed("limit_key", "name", "key"), keyed("sluice_limit_key", "name", "key")}
}
