package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/results_forget.sql
var resultsForgetSQL string

// forgetResults removes some results whose retention is over, and reports whether there may be more.
func (s *Store) forgetResults(ctx context.Context, limit int) (more bool, err error) {
	err = s.call(ctx, "remove results", func(ctx context.Context, _ bool) error {
		read, err := list(ctx, s.pool, pgx.RowTo[int], resultsForgetSQL, limit)
		more = err == nil && read[0] == limit
		return err
	})
	return more, err
}
