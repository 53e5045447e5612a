package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

// serverRow is the server's state as health_server.sql returns it.
type serverRow struct {
	Version                 string
	Now                     time.Time
	Standby                 bool
	ReadOnly                bool
	ReadOnlySource          string
	Role                    string
	Superuser               bool
	SeesAll                 bool
	Database                string
	SchemaVersion           int
	SchemaAge               *float64
	Connections             int64
	ConnectionLimit         int64
	RoleConnections         int64
	RoleLimit               int64
	DatabaseConnections     int64
	DatabaseLimit           int64
	Fsync                   bool
	FullPageWrites          bool
	SynchronousCommit       string
	SynchronousCommitSource string
	SynchronousStandbys     string
	Throwaway               bool
	Autovacuum              bool
	TrackCounts             bool
	TransactionAge          int64
	MultixactAge            int64
	NotificationQueueUsed   float64
}

// server inspects the server by one row.
func (c *examination) server(ctx context.Context) error {
	begun := time.Now()
	rows, err := rowsOf[serverRow](ctx, c.store.pool, healthServerSQL)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return pgx.ErrNoRows
	}
	ours := begun.Add(time.Since(begun) / 2)
	c.on = rows[0]
	c.Health.Findings, c.Health.Metrics = nil, nil // findings of an earlier try
	c.writable()
	c.clock(ours)
	c.durability()
	c.connections()
	c.notification()
	c.wraparound()
	c.autovacuum()
	if !c.on.SeesAll {
		c.Find(health.SeverityNote, "sight", "the role "+c.on.Role+" may not see what other roles do",
			"transactions of theirs are not told of here", "grant pg_read_all_stats to "+name(c.on.Role))
	}
	return nil
}

// name quotes a name for a statement.
func name(of string) string { return pgx.Identifier{of}.Sanitize() }

func (c *examination) writable() {
	const why = "nothing can be enqueued, claimed or settled"
	switch {
	case c.on.Standby:
		c.Find(health.SeverityError, "server", "PostgreSQL "+c.on.Version+" is a standby", why,
			"name the primary server with --db (several hosts and target_session_attrs=read-write find it), or select pg_promote()")
	case c.on.ReadOnly:
		c.Find(health.SeverityError, "server", "transactions are read-only (default_transaction_read_only is on)", why,
			"set default_transaction_read_only = off; "+c.reset("default_transaction_read_only", "off", c.on.ReadOnlySource))
	default:
		c.Well("server", "PostgreSQL %s", c.on.Version)
	}
	c.Figure("schema_version", float64(c.on.SchemaVersion), "")
}

func (c *examination) clock(ours time.Time) {
	off := ours.Sub(c.on.Now).Abs()
	c.Figure("clock_difference_seconds", off.Seconds(), "seconds")
	if severity := c.judge("clock", off.Seconds()); severity != "" {
		c.Find(severity, "clock", fmt.Sprintf("this machine's clock is %s off the server's", checkup.Span(off.Seconds())),
			"jobs go by the server's clock; what this machine logs and shows does not", "synchronise this machine's clock: timedatectl set-ntp true")
		return
	}
	c.Well("clock", "within %s of the server's", checkup.Span(c.store.checks["clock"].Warning))
}

// durability inspects the settings without which a crash loses acknowledged jobs.
func (c *examination) durability() {
	severity, said := health.SeverityError, ""
	if c.on.Throwaway {
		severity, said = health.SeverityNote, ", as the server's configuration means it to be (sluice.throwaway)"
	}
	const mend = "alter system set %s = on; select pg_reload_conf()"
	sound := true
	if !c.on.Fsync {
		sound = false
		c.Find(severity, "durability", "fsync is off"+said, "after a crash of the machine the whole database may be damaged", fmt.Sprintf(mend, "fsync"))
	}
	if !c.on.FullPageWrites {
		sound = false
		c.Find(severity, "durability", "full_page_writes is off"+said, "after a crash of the machine pages may be half old and half new", fmt.Sprintf(mend, "full_page_writes"))
	}
	if c.on.SynchronousCommit == "off" {
		sound = false
		if severity == health.SeverityError {
			severity = health.SeverityWarning
		}
		c.Find(severity, "durability", "synchronous_commit is off"+said,
			"a crash of the server loses the last commits though they were acknowledged: jobs are gone, and those that were done are run again",
			c.reset("synchronous_commit", "on", c.on.SynchronousCommitSource))
	}
	if sound {
		c.Well("durability", "every commit is on the disk before it is acknowledged")
	}
}

// reset returns the command that undoes a setting at its source.
func (c *examination) reset(setting, otherwise, source string) string {
	switch source {
	case "database":
		return "alter database " + name(c.on.Database) + " reset " + setting
	case "user":
		return "alter role " + name(c.on.Role) + " reset " + setting
	case "database user":
		return "alter role " + name(c.on.Role) + " in database " + name(c.on.Database) + " reset " + setting
	case "client":
		return "take " + setting + " out of the URL, and out of PGOPTIONS"
	}
	return "alter system set " + setting + " = " + otherwise + "; select pg_reload_conf()"
}

// connections finds the limit of connections that is nearest.
func (c *examination) connections() {
	c.Figure("connections", float64(c.on.Connections), "connections")
	c.Figure("connection_limit", float64(c.on.ConnectionLimit), "connections")
	type limit struct {
		used, limit int64
		of, mend    string
	}
	limits := []limit{{
		c.on.Connections, c.on.ConnectionLimit, "the server's (max_connections)",
		fmt.Sprintf("use fewer (pool_max_conns in the URLs of programs), or allow more: alter system set max_connections = %d; restart the server", 2*c.on.ConnectionLimit),
	}}
	if !c.on.Superuser { // no other limit applies to a superuser
		limits = append(limits,
			limit{c.on.RoleConnections, c.on.RoleLimit, "those of the role " + c.on.Role, "alter role " + name(c.on.Role) + " connection limit -1"},
			limit{c.on.DatabaseConnections, c.on.DatabaseLimit, "those of the database " + c.on.Database, "alter database " + name(c.on.Database) + " connection limit -1"})
	}
	most := limits[0]
	for _, one := range limits[1:] {
		if one.limit > 0 && one.used*most.limit > most.used*one.limit {
			most = one
		}
	}
	share := float64(most.used) / float64(most.limit)
	c.Figure("connections_used", share, "")
	if severity := c.judge("connections", share); severity != "" {
		c.Find(severity, "connections", fmt.Sprintf("%d of %d connections are in use, of %s", most.used, most.limit, most.of),
			"whoever comes next is refused, and workers wait", most.mend)
		return
	}
	c.Well("connections", "%d of %d in use", most.used, most.limit)
}

func (c *examination) notification() {
	on := 1.0
	if c.store.pooled {
		on = 0
		c.Find(health.SeverityNote, "notify", "off: the connections of this program go through a pooler in transaction mode",
			"its workers find jobs of other processes by polling, by default once a second", "nothing, or give workers a URL that goes to PostgreSQL itself")
	}
	c.Figure("notifications", on, "")
	c.Figure("notification_queue_used", c.on.NotificationQueueUsed, "")
	severity := c.judge("notify", c.on.NotificationQueueUsed)
	switch {
	case severity != "":
		c.Find(severity, "notify", fmt.Sprintf("the server's queue of notifications is %.0f %% full", math.Floor(100*c.on.NotificationQueueUsed)),
			"when it is full, commits that notify fail", "end the session that listens and stays in a transaction: select pg_terminate_backend(pid) from pg_stat_activity where state like 'idle in transaction%' order by xact_start limit 1")
	case on == 1:
		c.Well("notify", "on: processes wake each other")
	}
}

func (c *examination) wraparound() {
	age := float64(max(c.on.TransactionAge, c.on.MultixactAge))
	c.Figure("wraparound_age", age, "transactions")
	if severity := c.judge("wraparound", age); severity != "" {
		c.Find(severity, "wraparound", fmt.Sprintf("the oldest row of the database is %.0f transactions old", age),
			"at 2,147 million the server refuses every change, until all is vacuumed",
			"end old transactions, prepared ones and unused slots first, and then: vacuum (freeze)")
		return
	}
	c.Well("wraparound", "the oldest row is %.0f transactions old", age)
}

func (c *examination) autovacuum() {
	const why = "dead rows are never removed; tables and indexes grow, and claims become slow"
	if !c.on.Autovacuum {
		c.Find(health.SeverityError, "autovacuum", "autovacuum is off on this server", why, "alter system set autovacuum = on; select pg_reload_conf()")
	}
	if !c.on.TrackCounts {
		c.Find(health.SeverityError, "autovacuum", "track_counts is off, without which autovacuum does nothing", why, "alter system set track_counts = on; select pg_reload_conf()")
	}
}

// schema compares the database's schema and functions with the program's.
func (c *examination) schema(ctx context.Context) error {
	steps, err := schemaSteps()
	if err != nil {
		return err
	}
	functions, err := missingFunctions(ctx, c.store.pool)
	if err != nil {
		return err
	}
	switch {
	case c.on.SchemaVersion > len(steps):
		c.Find(health.SeverityNote, "schema", fmt.Sprintf("the database has had schema step %d, this program knows %d", c.on.SchemaVersion, len(steps)),
			"it works, and does not know what is new", "install the newer sluice")
	case functions != nil:
		c.Find(health.SeverityNote, "schema", "the functions for other languages are missing, or older than this program",
			"Go programs have no need of them; programs in other languages have", "sluice migrate")
	default:
		c.Well("schema", "up to date")
	}
	return nil
}
