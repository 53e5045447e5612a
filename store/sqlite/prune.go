package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
)

//go:embed sql/prune_class.sql
var pruneClassSQL string

//go:embed sql/prune_old.sql
var pruneOldSQL string

//go:embed sql/prune_lives.sql
var pruneLivesSQL string

//go:embed sql/prune_attempts.sql
var pruneAttemptsSQL string

//go:embed sql/prune_after.sql
var pruneAfterSQL string

//go:embed sql/prune_jobs.sql
var pruneJobsSQL string

//go:embed sql/prune_keys.sql
var pruneKeysSQL string

// maxPruned is how many jobs one transaction deletes. One takes about 12 ms, while other writers
// wait.
const maxPruned = 1000

// pruneClass is a queue and an outcome, and the retention of their jobs.
type pruneClass struct {
	queue   string
	outcome sluice.State
	keepMs  int64
}

// oldSpan is a part of the history: jobs of a class whose retention is over, from the instant from to before until.
type oldSpan struct {
	pruneClass
	from, until int64
	jobs        int
	last        int64  // when the last of the jobs ended
	seqs        string // as a JSON array
}

// Prune deletes finished jobs after their retention, and keys whose window has passed. The last
// calls of a pass remove results, and delete idle tenant queues. Prune finds the jobs beside the writer.
func (s *Store) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	from, err := history.Parse(after)
	if err != nil {
		return sluice.Pruned{}, err
	}
	most := min(limit, maxPruned)
	var old []oldSpan
	err = s.read(ctx, "prune", func(tx runner) (err error) {
		old, err = findOld(tx, from, most, now())
		return err
	})
	if err != nil {
		return sluice.Pruned{}, err
	}
	var out sluice.Pruned
	var keys int64
	err = s.write(ctx, "prune", func(tx runner, _ bool) (err error) {
		if keys, err = pruneKeys(tx, most); err != nil {
			return err
		}
		out.Deleted, err = deleteOld(tx, old)
		return err
	})
	if err != nil {
		return sluice.Pruned{}, err
	}
	found, last := reached(old, from)
	if found == most || keys == int64(most) {
		out.Next = last.String()
		return out, nil
	}
	if more, err := s.forgetResults(ctx, limit); err != nil {
		return out, err
	} else if more {
		out.Next = last.String()
		return out, nil
	}
	if err := s.forgetProgress(ctx, limit); err != nil {
		return out, err
	}
	return out, s.pruneTenantQueues(ctx, limit)
}

// findOld goes from class to class, and finds the jobs of each whose retention is over, until they are limit in all.
func findOld(tx runner, from history.Place, limit int, at int64) (old []oldSpan, err error) {
	defaults := sluice.DefaultSettings()
	queue, outcome := from.Queue, from.Outcome
	for limit > 0 {
		classes, err := list(tx, func(rows *sql.Rows) (c pruneClass, err error) {
			err = rows.Scan(&c.queue, &c.outcome, &c.keepMs)
			return c, err
		}, pruneClassSQL, queue, outcome, defaults.KeepCompleted.Milliseconds(), defaults.KeepCancelled.Milliseconds(), defaults.KeepDead.Milliseconds())
		if err != nil || len(classes) == 0 {
			return old, err
		}
		c := classes[0]
		queue, outcome = c.queue, c.outcome+" " // the first place after the class
		if c.keepMs == 0 {
			continue // kept for ever
		}
		span := oldSpan{pruneClass: c, until: at - c.keepMs*1000}
		if c.queue == from.Queue && c.outcome == from.Outcome && !from.EndedAt.IsZero() {
			span.from = from.EndedAt.UnixMicro()
		}
		if span, err = readOld(tx, span, limit); err != nil {
			return old, err
		}
		if limit -= span.jobs; span.jobs > 0 {
			old = append(old, span)
		}
	}
	return old, nil
}

// readOld reads the first jobs of a span, at most limit.
func readOld(tx runner, span oldSpan, limit int) (oldSpan, error) {
	read, err := list(tx, func(rows *sql.Rows) (oldSpan, error) {
		err := rows.Scan(&span.jobs, &span.last, &span.seqs)
		return span, err
	}, pruneOldSQL, span.queue, span.outcome, span.from, span.until, limit)
	if err != nil {
		return oldSpan{}, err
	}
	return read[0], nil
}

// reached returns the number of jobs that were found, and the place of the last.
func reached(old []oldSpan, from history.Place) (found int, last history.Place) {
	last = from
	for _, span := range old {
		found += span.jobs
		last = history.Place{Queue: span.queue, Outcome: span.outcome, EndedAt: time.UnixMicro(span.last)}
	}
	return found, last
}

// deleteOld deletes jobs that were found outside the transaction. It reads them again, because some may be requeued or
// deleted since.
func deleteOld(tx runner, old []oldSpan) (deleted int, err error) {
	for _, span := range old {
		if span, err = readOld(tx, span, span.jobs); err != nil {
			return deleted, err
		}
		if err := deleteJobs(tx, span.seqs); err != nil {
			return deleted, err
		}
		deleted += span.jobs
	}
	return deleted, nil
}

// pruneKeys deletes keys whose window has passed, and returns their number.
func pruneKeys(tx runner, limit int) (int64, error) {
	result, err := tx.exec(pruneKeysSQL, now(), limit)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// deleteJobs deletes finished jobs with all lives and failed attempts. Their seqs are a JSON array.
func deleteJobs(tx runner, seqs string) error {
	for _, statement := range []string{pruneAfterSQL, pruneLivesSQL, pruneAttemptsSQL, pruneJobsSQL} {
		if _, err := tx.exec(statement, seqs); err != nil {
			return err
		}
	}
	return nil
}
