package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_server.sql
var healthServerSQL string

var (
	_ health.Store       = (*Store)(nil)
	_ health.MetricStore = (*Store)(nil)
)

// lookTimeout limits one inspection, so that a locked table does not hold up the others.
const lookTimeout = 3 * time.Second

// Health checks the server, the database and the rights of this role. The checks take one connection of the pool
// for some ten statements, and read no table of jobs.
func (s *Store) Health(ctx context.Context, options health.Options) (health.Report, error) {
	c := &examination{store: s, options: options, Report: checkup.Report{Health: health.Report{Kind: "postgres"}}}
	err := s.call(ctx, "look at the server", func(ctx context.Context, _ bool) error { return c.server(ctx) })
	if err != nil {
		return health.Report{}, err
	}
	for _, one := range c.looks() {
		if err := c.at(ctx, one); err != nil {
			if ctx.Err() != nil {
				return health.Report{}, fmt.Errorf("look at the store: %w", ctx.Err())
			}
			c.unseen(one.check, err)
		}
	}
	return c.Health, nil
}

// inspection is one check that runs after the checks of the server.
type inspection struct {
	check string
	see   func(context.Context) error
	// patient inspections have only the caller's deadline.
	patient bool
}

func (c *examination) looks() []inspection {
	all := []inspection{
		{check: "moved", see: c.wasMoved},
		{check: "schema", see: c.schema},
		{check: "durability", see: c.standbys},
		{check: "transaction", see: c.transactions},
		{check: "slot", see: c.held},
		{check: "vacuum", see: c.tables},
		{check: "index", see: c.indexes},
		{check: "foreign", see: c.foreign},
		{check: "follower", see: c.followers},
		{check: "grant", see: c.grants},
	}
	if c.options.Statements {
		all = append(all, inspection{check: "statements", see: c.statements})
	}
	if c.options.Thorough {
		all = append(all, inspection{check: "integrity", see: c.integrity, patient: true}, inspection{check: "orphan", see: c.orphans, patient: true})
	}
	if c.options.Only != "" {
		all = slices.DeleteFunc(all, func(one inspection) bool { return one.check != c.options.Only })
	}
	return all
}

// examination is one run of all inspections.
type examination struct {
	checkup.Report

	store   *Store
	options health.Options
	on      serverRow
}

// at runs one inspection under its own deadline. An unfinished inspection leaves no findings.
func (c *examination) at(ctx context.Context, one inspection) error {
	if !one.patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.store.lookTimeout)
		defer cancel()
		return c.store.call(ctx, "look at "+one.check, func(ctx context.Context, _ bool) error { return one.see(ctx) })
	}
	return one.see(ctx)
}

func (c *examination) unseen(check string, err error) {
	why := "what cannot be seen cannot be mended"
	mend := "look again in a minute; a statement that locks the table, such as `alter table`, may be at work"
	if !errors.Is(err, context.DeadlineExceeded) {
		mend = "repair what the server says"
	}
	c.Find(health.SeverityWarning, check, "this could not be looked at: "+err.Error(), why, mend)
}

// judge returns the severity of a value for a check.
func (c *examination) judge(check string, value float64) health.Severity {
	return c.store.checks[check].Judge(value)
}

// rowsOf reads the rows of one inspection.
func rowsOf[T any](ctx context.Context, db rowsQuerier, sql string, args ...any) ([]T, error) {
	return list(ctx, db, pgx.RowToStructByName[T], sql, args...)
}

// HealthMetrics returns metrics of the connection pool.
func (s *Store) HealthMetrics() []health.Metric {
	stat := s.pool.Stat()
	of := func(name string, value float64, unit string) health.Metric {
		return health.Metric{Name: name, Value: value, Unit: unit}
	}
	return []health.Metric{
		of("pool_connections", float64(stat.TotalConns()), "connections"),
		of("pool_in_use", float64(stat.AcquiredConns()), "connections"),
		of("pool_limit", float64(stat.MaxConns()), "connections"),
		of("pool_acquires_total", float64(stat.AcquireCount()), ""),
		of("pool_waits_total", float64(stat.EmptyAcquireCount()), ""),
		of("pool_wait_seconds_total", stat.EmptyAcquireWaitTime().Seconds(), "seconds"),
		of("pool_cancelled_total", float64(stat.CanceledAcquireCount()), ""),
	}
}
