package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"
)

//go:embed sql/look.sql
var lookSQL string

// NextDue returns how long until the first waiting job of each queue is due.
func (s *Store) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	names, err := jsonUnlessNone(queues)
	if err != nil || names == nil {
		return nil, err
	}
	out := make(map[string]time.Duration)
	err = s.read(ctx, "next due", func(tx runner) error {
		clear(out)
		at := now()
		_, err := list(tx, func(rows *sql.Rows) (struct{}, error) {
			var name string
			var due sql.NullInt64
			if err := rows.Scan(&name, &due); err != nil || !due.Valid {
				return struct{}{}, err
			}
			out[name] = time.Duration(due.Int64-at) * time.Microsecond
			return struct{}{}, nil
		}, lookSQL, names, at)
		return err
	})
	return out, err
}
