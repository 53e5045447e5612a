package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// wasMoved reports that the database was moved to another store.
func (c *examination) wasMoved(ctx context.Context) error {
	var there bool
	if err := c.store.pool.QueryRow(ctx, "select to_regclass('sluice.moved') is not null").Scan(&there); err != nil {
		return err
	}
	if !there {
		c.Well("moved", "it was not moved")
		return nil
	}
	marks, err := list(ctx, c.store.pool, pgx.RowTo[string], "select mark from sluice.moved")
	if err != nil || len(marks) == 0 {
		return err
	}
	return c.Moved(marks[0])
}
