package health

// Check is one check of a store: its figure, and the limits from which the store is not well.
type Check struct {
	// Kind is the kind of store: postgres or sqlite.
	Kind string
	// Name is the name of the check in findings.
	Name string
	// Looks describes the checked thing.
	Looks string
	// Figure is the name of the compared figure, and Unit its unit. Empty: the check counts nothing, and Otherwise
	// says when it fails.
	Figure, Unit string
	// Note, Warning and Error are the values from which a finding has that severity. 0: never. With Below, the
	// finding has the severity at that value or less.
	Note, Warning, Error float64
	Below                bool
	// Otherwise describes other findings of the check, or a further condition.
	Otherwise string
}

// Judge returns the severity of a value. Empty: the store is well.
func (c Check) Judge(value float64) Severity {
	switch {
	case c.reaches(value, c.Error):
		return SeverityError
	case c.reaches(value, c.Warning):
		return SeverityWarning
	case c.reaches(value, c.Note):
		return SeverityNote
	}
	return ""
}

func (c Check) reaches(value, limit float64) bool {
	if c.Below {
		return limit > 0 && value < limit
	}
	return limit > 0 && value >= limit
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// Checks lists the checks of all stores. A table in the docs is made from it.
func Checks() []Check {
	return append(postgresChecks(), sqliteChecks()...)
}

func postgresChecks() []Check {
	return []Check{
		{Kind: "postgres", Name: "server", Looks: "version; whether it can be written to", Otherwise: "error: a standby, or transactions are read-only"},
		{Kind: "postgres", Name: "moved", Looks: "whether the store was moved to another one", Otherwise: "error: it was, or a move has not ended"},
		{Kind: "postgres", Name: "schema", Looks: "schema step and functions against the program's", Otherwise: "note: the database is newer, or its functions are older"},
		{Kind: "postgres", Name: "durability", Looks: "`fsync`, `full_page_writes`, `synchronous_commit`; each connected standby, and whether commits wait for it", Otherwise: "error: one of the first two is off, or commits wait for a synchronous standby that is not connected; warning: the third is off, or `local` beside `synchronous_standby_names`; note: a standby that follows asynchronously, standbys that this role may not see, or the server's configuration says `sluice.throwaway = on`"},
		{Kind: "postgres", Name: "transaction", Looks: "the oldest transactions of the database, and who holds them", Figure: "oldest_transaction_seconds", Unit: "seconds", Warning: 600, Error: 3600},
		{Kind: "postgres", Name: "prepared", Looks: "prepared transactions that nobody ends", Figure: "prepared_transaction_seconds", Unit: "seconds", Warning: 600, Error: 3600},
		{Kind: "postgres", Name: "slot", Looks: "the log that replication slots keep", Figure: "slot_wal_bytes", Unit: "bytes", Warning: gibibyte, Error: 10 * gibibyte, Otherwise: "warning: a slot that nobody uses holds back vacuum"},
		{Kind: "postgres", Name: "standby", Looks: "how many transactions ago standbys hold back vacuum", Figure: "standby_xmin_age", Unit: "transactions", Warning: 1_000_000, Error: 100_000_000},
		{Kind: "postgres", Name: "dead", Looks: "dead rows of each table", Figure: "dead_rows", Unit: "rows", Warning: 1_000_000, Error: 20_000_000, Otherwise: "and more than a fifth of the table"},
		{Kind: "postgres", Name: "vacuum", Looks: "how long ago each table was vacuumed", Figure: "vacuum_age_seconds", Unit: "seconds", Warning: 3600, Otherwise: "and more than 10,000 rows, a fifth of the table, are dead"},
		{Kind: "postgres", Name: "analyze", Looks: "how long ago each table was analyzed", Figure: "analyze_age_seconds", Unit: "seconds", Warning: 3600, Otherwise: "and more than 10,000 rows, half of the table, have changed"},
		{Kind: "postgres", Name: "autovacuum", Looks: "whether autovacuum looks after our tables", Otherwise: "error: off, for the server or for a table"},
		{Kind: "postgres", Name: "index", Looks: "whether each index of the schema is there and valid", Otherwise: "error: missing or invalid; note: left over from a statement that failed"},
		{Kind: "postgres", Name: "bloat", Looks: "how much of each index is empty, by estimate", Figure: "index_bloat_bytes", Unit: "bytes", Warning: 256 * mebibyte, Otherwise: "and more than three quarters of the index"},
		{Kind: "postgres", Name: "trigger", Looks: "whether each trigger is enabled", Otherwise: "error: disabled"},
		{Kind: "postgres", Name: "foreign", Looks: "what in our schema our migrations did not make", Otherwise: "error: a trigger, rule or policy on a table of ours; note: a view or a table"},
		{Kind: "postgres", Name: "follower", Looks: "whether each follower's triggers are there, and, where this role made them, whether the server can still run its statement", Otherwise: "error: a trigger is missing or another one, or the statement cannot be run"},
		{Kind: "postgres", Name: "grant", Looks: "what this role may do with each table, and who else may see payloads and tokens", Otherwise: "error: something that programs or readers need is not granted; warning: the audit may be changed, or a role that writes nothing may select payloads, results, checkpoints or tokens; note: this role only reads"},
		{Kind: "postgres", Name: "connections", Looks: "share of the server's, the database's and the role's limit that is used", Figure: "connections_used", Unit: "", Warning: 0.8, Error: 0.95},
		{Kind: "postgres", Name: "clock", Looks: "this machine's clock against the server's", Figure: "clock_difference_seconds", Unit: "seconds", Warning: 2},
		{Kind: "postgres", Name: "notify", Looks: "whether processes wake each other; how full the server's queue of notifications is", Figure: "notification_queue_used", Unit: "", Warning: 0.5, Error: 0.9, Otherwise: "note: off, behind a pooler in transaction mode"},
		{Kind: "postgres", Name: "wraparound", Looks: "age of the database's oldest row, in transactions", Figure: "wraparound_age", Unit: "transactions", Warning: 500_000_000, Error: 1_500_000_000},
		{Kind: "postgres", Name: "sight", Looks: "whether this role may see what others do", Otherwise: "note: it may not"},
		{Kind: "postgres", Name: "statements", Looks: "the slowest statements, where pg_stat_statements counts them", Otherwise: "note: how to get it"},
		{Kind: "postgres", Name: "orphan", Looks: "each row of a life against its job (`--thorough`)", Otherwise: "error: its job was deleted, or the life has ended already"},
		{Kind: "postgres", Name: "integrity", Looks: "each index against its table, where amcheck is installed (`--thorough`)", Otherwise: "error: corrupted"},
	}
}

func sqliteChecks() []Check {
	return []Check{
		{Kind: "sqlite", Name: "server", Looks: "version of SQLite"},
		{Kind: "sqlite", Name: "moved", Looks: "whether the store was moved to another one", Otherwise: "error: it was, or a move has not ended"},
		{Kind: "sqlite", Name: "schema", Looks: "schema step against the program's", Otherwise: "note: the file is newer"},
		{Kind: "sqlite", Name: "journal", Looks: "journal mode; a file without a write-ahead log is not opened"},
		{Kind: "sqlite", Name: "durability", Looks: "`synchronous` of this process", Otherwise: "warning: commits are acknowledged before they are on the disk (`Options.Relaxed`)"},
		{Kind: "sqlite", Name: "wal", Looks: "size of the write-ahead log, since when nothing was brought into the file, and who keeps a read open (Linux)", Figure: "wal_bytes", Unit: "bytes", Warning: 128 * mebibyte, Error: gibibyte},
		{Kind: "sqlite", Name: "lock", Looks: "how long this look waited for the write lock, and who held it (Linux)", Figure: "writer_wait_seconds", Unit: "seconds", Warning: 1, Otherwise: "error: it was not to be had"},
		{Kind: "sqlite", Name: "busy", Looks: "share of its time that this process has waited for the write lock of others", Figure: "busy_share", Unit: "", Warning: 0.2},
		{Kind: "sqlite", Name: "pages", Looks: "free pages", Figure: "free_bytes", Unit: "bytes", Note: 256 * mebibyte, Otherwise: "and more than half of the file"},
		{Kind: "sqlite", Name: "disk", Looks: "free space of the disk (Linux)", Figure: "disk_free_bytes", Unit: "bytes", Warning: gibibyte, Error: 128 * mebibyte, Below: true},
		{Kind: "sqlite", Name: "filesystem", Looks: "whether the file system can lock and keeps what it is given (Linux)", Otherwise: "error: NFS, SMB or another over the network; warning: FUSE or 9P; note: in memory"},
		{Kind: "sqlite", Name: "writable", Looks: "whether the file and its folder can be written (Linux)", Otherwise: "error: they cannot"},
		{Kind: "sqlite", Name: "index", Looks: "whether each index and trigger of the schema is there", Otherwise: "error: missing"},
		{Kind: "sqlite", Name: "foreign", Looks: "triggers on our tables, and triggers and views of our names, that our migrations did not make", Otherwise: "error: a trigger; note: a view or a table"},
		{Kind: "sqlite", Name: "follower", Looks: "whether each follower's triggers are there, and whether its statement can still be run", Otherwise: "error: a trigger is missing or another one, or the statement cannot be run"},
		{Kind: "sqlite", Name: "orphan", Looks: "each row of a life against its job (`--thorough`)", Otherwise: "error: its job was deleted, or the life has ended already"},
		{Kind: "sqlite", Name: "integrity", Looks: "every page and every index (`--thorough`)", Otherwise: "error: damaged"},
	}
}
