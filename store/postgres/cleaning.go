package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// cleanRows is how many dead rows a table has when upkeep vacuums it; a fifth of all its rows are dead. A claim steps over as many within 1 ms.
	cleanRows = 50_000
	// cleanBytes is the size up to which upkeep vacuums a table. Larger ones are left to autovacuum, which pauses.
	cleanBytes = 4 << 30
	// cleanShare limits vacuum to a twentieth of the time: an old transaction may keep what it would remove.
	cleanShare = 20
	// cleanTimeout is the deadline of a vacuum.
	cleanTimeout = 10 * time.Minute
)

// cleaning vacuums tables between the rounds of autovacuum, beside calls. By default, autovacuum looks at a database once
// a minute. Until then, a busy queue leaves millions of dead rows, over which claims step.
type cleaning struct {
	mu     sync.Mutex
	stop   context.CancelFunc // of the vacuum under way; nil: none
	rest   time.Time          // when the next vacuum may begin
	failed error              // of the last vacuum; nil: it succeeded, or somebody has heard
	closed bool
	all    sync.WaitGroup
}

// clean begins to vacuum the table with the most dead rows, if one has many. The error may be that of the vacuum before.
func (s *Store) clean(ctx context.Context) error {
	if s.pool.Stat().MaxConns() < 2 { // calls would wait for the only connection
		return nil
	}
	failed := s.cleaning.hear()
	tables, err := s.maintained(ctx, cleanRows)
	if i := slices.IndexFunc(tables, maintainedTable.unclean); i >= 0 {
		s.cleaning.begin(ctx, func(ctx context.Context) error { return s.vacuumBeside(ctx, tables[i].Name) })
	}
	return errors.Join(failed, err)
}

// unclean reports whether upkeep vacuums a table that has cleanRows dead rows.
func (t maintainedTable) unclean() bool {
	return t.Allowed && t.Dead >= t.Live/4 && t.Bytes <= cleanBytes
}

// vacuumBeside vacuums a table, unless somebody else does.
func (s *Store) vacuumBeside(ctx context.Context, table string) error {
	return s.forVacuum(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, "vacuum (skip_locked) sluice."+name(table), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return fmt.Errorf("vacuum %s: %w", table, typed(err))
		}
		return nil
	})
}

// begin runs a vacuum beside the caller, unless one is under way or has just ended.
func (c *cleaning) begin(ctx context.Context, vacuum func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.stop != nil || time.Now().Before(c.rest) {
		return
	}
	ctx, c.stop = context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	c.all.Go(func() {
		begun := time.Now()
		err := vacuum(ctx)
		c.end(time.Since(begun), err)
	})
}

func (c *cleaning) end(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop()
	c.stop, c.rest, c.failed = nil, time.Now().Add(cleanShare*took), err
}

// hear returns the error of the last vacuum, once.
func (c *cleaning) hear() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := c.failed
	c.failed = nil
	return failed
}

// close stops the vacuum under way, and lets no other begin.
func (c *cleaning) close() {
	c.mu.Lock()
	if c.closed = true; c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	c.all.Wait()
}
