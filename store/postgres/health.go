package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/health_server.sql
var healthServerSQL string

var (
	_ sluice.HealthReporter = (*Store)(nil)
	_ sluice.FigureReporter = (*Store)(nil)
)

// lookTimeout is how long one look may take. A table that somebody has locked must not hold up the others.
const lookTimeout = 3 * time.Second

// Health looks at the server, the database and what this role can do with it. It needs one connection of the pool for
// some ten statements, none of which reads a table of jobs.
func (s *Store) Health(ctx context.Context, options sluice.HealthOptions) (sluice.Health, error) {
	l := &checkup{store: s, options: options, health: sluice.Health{Kind: "postgres"}}
	err := s.call(ctx, "look at the server", func(ctx context.Context, _ bool) error { return l.server(ctx) })
	if err != nil {
		return sluice.Health{}, err
	}
	for _, one := range []struct {
		check string
		see   func(*checkup, context.Context) error
	}{
		{"schema", (*checkup).schema},
		{"transaction", (*checkup).transactions},
		{"prepared", (*checkup).held},
		{"vacuum", (*checkup).tables},
	} {
		if err := l.at(ctx, one.see); err != nil {
			if ctx.Err() != nil {
				return sluice.Health{}, ctx.Err()
			}
			l.unseen(one.check, err)
		}
	}
	return l.health, nil
}

// checkup is one examination.
type checkup struct {
	store   *Store
	options sluice.HealthOptions
	health  sluice.Health
	on      serverRow
}

// at makes one look, on a connection of its own and under a deadline of its own.
func (l *checkup) at(ctx context.Context, see func(*checkup, context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return see(l, ctx)
}

func (l *checkup) unseen(check string, err error) {
	why := "what cannot be seen cannot be mended"
	mend := "look again in a minute; a statement that locks the table, such as «alter table», may be at work"
	if !errors.Is(err, context.DeadlineExceeded) {
		mend = "mend what the server says"
	}
	l.find(sluice.SeverityWarning, check, "this could not be looked at: "+err.Error(), why, mend)
}

func (l *checkup) find(severity sluice.Severity, check, what, why, mend string) {
	l.health.Findings = append(l.health.Findings, sluice.Finding{
		Check: check, Well: severity == sluice.SeverityNote, Severity: severity, What: what, Why: why, Mend: mend,
	})
}

func (l *checkup) well(check, format string, args ...any) {
	l.health.Findings = append(l.health.Findings, sluice.WellFound(check, format, args...))
}

func (l *checkup) figure(name string, value float64, unit string) {
	l.health.Figures = append(l.health.Figures, sluice.HealthFigure{Name: name, Value: value, Unit: unit})
}

func (l *checkup) figureOf(name, label, of string, value float64, unit string) {
	l.health.Figures = append(l.health.Figures, sluice.HealthFigure{Name: name, Label: sluice.HealthLabel{Name: label, Value: of}, Value: value, Unit: unit})
}

// judge gives the severity that a figure has for a check.
func (l *checkup) judge(check string, value float64) sluice.Severity { return l.store.checks[check].Judge(value) }

// checksByName gives what to judge by.
func checksByName() map[string]sluice.HealthCheck {
	checks := make(map[string]sluice.HealthCheck)
	for _, c := range sluice.HealthChecks() {
		if c.Kind == "postgres" {
			checks[c.Name] = c
		}
	}
	return checks
}

// rowsOf reads the rows of one look.
func rowsOf[T any](ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) ([]T, error) {
	return list(ctx, pool, pgx.RowToStructByName[T], sql, args...)
}

// HealthFigures tells how the pool of connections is used.
func (s *Store) HealthFigures() []sluice.HealthFigure {
	stat := s.pool.Stat()
	of := func(name string, value float64, unit string) sluice.HealthFigure {
		return sluice.HealthFigure{Name: name, Value: value, Unit: unit}
	}
	return []sluice.HealthFigure{
		of("pool_connections", float64(stat.TotalConns()), "connections"),
		of("pool_in_use", float64(stat.AcquiredConns()), "connections"),
		of("pool_limit", float64(stat.MaxConns()), "connections"),
		of("pool_acquires_total", float64(stat.AcquireCount()), ""),
		of("pool_waits_total", float64(stat.EmptyAcquireCount()), ""),
		of("pool_wait_seconds_total", stat.EmptyAcquireWaitTime().Seconds(), "seconds"),
		of("pool_cancelled_total", float64(stat.CanceledAcquireCount()), ""),
	}
}
