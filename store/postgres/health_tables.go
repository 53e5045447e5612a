package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_tables.sql
var healthTablesSQL string

// fewRows is how many dead or changed rows of a table are harmless.
const fewRows = 10_000

type tableRow struct {
	Name             string
	Live             int64
	Dead             int64
	Changed          int64
	Bytes            int64
	Vacuumed         *float64
	Analyzed         *float64
	Autovacuum       bool
	DisabledTriggers []string
}

// tables inspects the dead rows of each table, and the vacuum that removes them.
func (c *examination) tables(ctx context.Context) error {
	rows, err := rowsOf[tableRow](ctx, c.store.pool, healthTablesSQL)
	if err != nil {
		return err
	}
	before := len(c.Health.Findings)
	for _, t := range rows {
		c.table(t)
	}
	if len(c.Health.Findings) == before {
		c.Well("vacuum", "dead rows are removed in time from all %d tables", len(rows))
	}
	return nil
}

func (c *examination) table(t tableRow) {
	vacuumed, analyzed := c.since(t.Vacuumed), c.since(t.Analyzed)
	c.MetricOf("live_rows", "table", t.Name, float64(t.Live), "rows")
	c.MetricOf("dead_rows", "table", t.Name, float64(t.Dead), "rows")
	c.MetricOf("table_bytes", "table", t.Name, float64(t.Bytes), "bytes")
	c.MetricOf("vacuum_age_seconds", "table", t.Name, vacuumed, "seconds")
	c.MetricOf("analyze_age_seconds", "table", t.Name, analyzed, "seconds")
	table := "sluice." + name(t.Name)
	if !t.Autovacuum {
		c.Find(health.SeverityError, "autovacuum", "autovacuum is off for the table "+t.Name, "its dead rows are never removed; it grows, and claims become slow",
			"alter table "+table+" reset (autovacuum_enabled)")
	}
	for _, trigger := range t.DisabledTriggers {
		c.Find(health.SeverityError, "trigger", "the trigger "+trigger+" of the table "+t.Name+" is disabled", "what it sees to is not done",
			"alter table "+table+" enable trigger "+name(trigger))
	}
	c.dead(t, vacuumed, table)
	if severity := c.judge("analyze", analyzed); severity != "" && t.Changed > max(fewRows, t.Live/2) {
		c.Find(severity, "analyze", fmt.Sprintf("%d rows of %s have changed since it was analyzed, %s ago", t.Changed, t.Name, checkup.Span(analyzed)),
			"the server plans statements for a table that is not like that any more", "analyze "+table)
	}
}

func (c *examination) dead(t tableRow, vacuumed float64, table string) {
	if t.Dead <= (t.Live+t.Dead)/5 {
		return
	}
	const why = "claims step over dead rows, and the table and its indexes grow"
	severity := c.judge("dead", float64(t.Dead))
	switch {
	case severity != "":
		c.Find(severity, "dead", fmt.Sprintf("%d dead rows in %s, and %d that live", t.Dead, t.Name, t.Live), why,
			"end what the checks transaction, prepared, slot and standby name, and then: vacuum (analyze) "+table)
	case t.Dead > fewRows && c.judge("vacuum", vacuumed) != "":
		c.Find(c.judge("vacuum", vacuumed), "vacuum", fmt.Sprintf("%s was not vacuumed for %s, and has %d dead rows", t.Name, checkup.Span(vacuumed), t.Dead), why,
			"vacuum (analyze) "+table+"; if it comes again: alter system set autovacuum_naptime = '15s'; select pg_reload_conf()")
	}
}

// since returns the age of the last vacuum or analyze. Without one, since returns the age of the schema.
func (c *examination) since(seconds *float64) float64 {
	switch {
	case seconds != nil:
		return max(*seconds, 0)
	case c.on.SchemaAge != nil:
		return max(*c.on.SchemaAge, 0)
	}
	return 0
}
