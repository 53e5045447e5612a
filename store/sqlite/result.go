package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
)

//go:embed sql/results_class.sql
var resultsClassSQL string

//go:embed sql/results_old.sql
var resultsOldSQL string

//go:embed sql/results_forget.sql
var resultsForgetSQL string

//go:embed sql/results_cursor.sql
var resultsCursorSQL string

// resultClass is a queue and an outcome, the retention of their results, and how far these were removed.
type resultClass struct {
	queue, outcome string
	keepMs, upto   int64
	old            []oldLife
}

// oldLife is a finished life whose result was kept long enough.
type oldLife struct {
	seq, generation, endedAt int64
}

func scanOldLife(rows *sql.Rows) (l oldLife, err error) {
	err = rows.Scan(&l.seq, &l.generation, &l.endedAt)
	return l, err
}

// forgetResults removes some results whose retention is over, and reports whether there may be more. It finds them beside the
// writer. A result of a job that was requeued since goes too: it is of an earlier life.
func (s *Store) forgetResults(ctx context.Context, limit int) (more bool, err error) {
	left := min(limit, maxPruned)
	var classes []resultClass
	err = s.read(ctx, "remove results", func(tx runner) (err error) {
		classes, err = list(tx, func(rows *sql.Rows) (c resultClass, err error) {
			err = rows.Scan(&c.queue, &c.outcome, &c.keepMs, &c.upto)
			return c, err
		}, resultsClassSQL, now())
		for i := range classes {
			c := &classes[i]
			if err == nil && left > 0 {
				c.old, err = list(tx, scanOldLife, resultsOldSQL, c.queue, c.outcome, c.upto, now()-c.keepMs*1000, left)
				left -= len(c.old)
			}
		}
		return err
	})
	if err != nil || left == min(limit, maxPruned) {
		return false, err
	}
	return left == 0, s.write(ctx, "remove results", func(tx runner, _ bool) error { return removeResults(tx, classes) })
}

func removeResults(tx runner, classes []resultClass) error {
	for _, c := range classes {
		if len(c.old) == 0 {
			continue
		}
		pairs := make([][2]int64, len(c.old))
		for i, l := range c.old {
			pairs[i] = [2]int64{l.seq, l.generation}
		}
		text, err := jsonOf(pairs)
		if err != nil {
			return err
		}
		if _, err := tx.exec(resultsForgetSQL, text); err != nil {
			return err
		}
		if _, err := tx.exec(resultsCursorSQL, c.queue, c.outcome, c.old[len(c.old)-1].endedAt, now()); err != nil {
			return err
		}
	}
	return nil
}
