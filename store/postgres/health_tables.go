package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/health_tables.sql
var healthTablesSQL string

// fewRows is how many rows of a table may be dead or changed without anybody minding.
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

// tables looks at the rows of each table that are dead, and at who removes them.
func (l *checkup) tables(ctx context.Context) error {
	rows, err := rowsOf[tableRow](ctx, l.store.pool, healthTablesSQL)
	if err != nil {
		return err
	}
	before := len(l.health.Findings)
	for _, t := range rows {
		l.table(t)
	}
	if len(l.health.Findings) == before {
		l.well("vacuum", "dead rows are removed in time from all %d tables", len(rows))
	}
	return nil
}

func (l *checkup) table(t tableRow) {
	vacuumed, analyzed := l.since(t.Vacuumed), l.since(t.Analyzed)
	l.figureOf("live_rows", "table", t.Name, float64(t.Live), "rows")
	l.figureOf("dead_rows", "table", t.Name, float64(t.Dead), "rows")
	l.figureOf("table_bytes", "table", t.Name, float64(t.Bytes), "bytes")
	l.figureOf("vacuum_age_seconds", "table", t.Name, vacuumed, "seconds")
	l.figureOf("analyze_age_seconds", "table", t.Name, analyzed, "seconds")
	table := "sluice." + name(t.Name)
	if !t.Autovacuum {
		l.find(sluice.SeverityError, "autovacuum", "autovacuum is off for the table "+t.Name, "its dead rows are never removed; it grows, and claims become slow",
			"alter table "+table+" reset (autovacuum_enabled)")
	}
	for _, trigger := range t.DisabledTriggers {
		l.find(sluice.SeverityError, "trigger", "the trigger "+trigger+" of the table "+t.Name+" is disabled", "what it sees to is not done",
			"alter table "+table+" enable trigger "+name(trigger))
	}
	l.dead(t, vacuumed, table)
	if severity := l.judge("analyze", analyzed); severity != "" && t.Changed > max(fewRows, t.Live/2) {
		l.find(severity, "analyze", fmt.Sprintf("%d rows of %s have changed since it was analyzed, %s ago", t.Changed, t.Name, span(analyzed)),
			"the server plans statements for a table that is not like that any more", "analyze "+table)
	}
}

func (l *checkup) dead(t tableRow, vacuumed float64, table string) {
	if t.Dead <= (t.Live+t.Dead)/5 {
		return
	}
	const why = "claims step over dead rows, and the table and its indexes grow"
	severity := l.judge("dead", float64(t.Dead))
	switch {
	case severity != "":
		l.find(severity, "dead", fmt.Sprintf("%d dead rows in %s, and %d that live", t.Dead, t.Name, t.Live), why,
			"end what the checks transaction, prepared, slot and standby name, and then: vacuum (analyze) "+table)
	case t.Dead > fewRows && l.judge("vacuum", vacuumed) != "":
		l.find(l.judge("vacuum", vacuumed), "vacuum", fmt.Sprintf("%s was not vacuumed for %s, and has %d dead rows", t.Name, span(vacuumed), t.Dead), why,
			"vacuum (analyze) "+table+"; if it comes again: alter system set autovacuum_naptime = '15s'; select pg_reload_conf()")
	}
}

// since gives the age of what was done last; what never was is as old as the schema.
func (l *checkup) since(seconds *float64) float64 {
	switch {
	case seconds != nil:
		return max(*seconds, 0)
	case l.on.SchemaAge != nil:
		return max(*l.on.SchemaAge, 0)
	}
	return 0
}
