package move

func namedLimitTable() table {
	columns := changed(is("name", kindText), is("concurrency", kindInt), is("rate", kindReal), is("rate_per_ms", kindInt), is("burst", kindInt),
		is("closed", kindBool), is("closed_until", kindInstant))
	return table{"limits", columns, keyed("named_limit", "name"), keyed("sluice_named_limit", "name")}
}
