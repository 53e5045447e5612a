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

//go:embed sql/prune_still.sql
var pruneStillSQL string

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

// oldLife is the last life of a job whose retention is over.
type oldLife struct {
	seq, generation, endedAt int64
}

// Prune deletes finished jobs after their retention, and keys whose window has passed. The last
// calls of a pass remove results, and delete idle tenant queues. Prune finds the jobs beside the writer.
func (s *Store) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	from, err := history.Parse(after)
	if err != nil {
		return sluice.Pruned{}, err
	}
	most := min(limit, maxPruned)
	var old []oldLife
	last := from
	err = s.read(ctx, "prune", func(tx runner) (err error) {
		old, last, err = findOld(tx, from, most, now())
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
	if len(old) == most || keys == int64(most) {
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

// findOld reads the jobs whose retention is over, and the place of the last of them.
func findOld(tx runner, from history.Place, limit int, at int64) (old []oldLife, last history.Place, err error) {
	last = from
	err = eachOld(tx, from, limit, at, func(c pruneClass, found []oldLife) {
		old = append(old, found...)
		last = history.Place{Queue: c.queue, Outcome: c.outcome, EndedAt: time.UnixMicro(found[len(found)-1].endedAt)}
	})
	return old, last, err
}

// eachOld goes from class to class, and passes on the jobs of each whose retention is over, until they are limit in all.
func eachOld(tx runner, from history.Place, limit int, at int64, pass func(pruneClass, []oldLife)) error {
	defaults := sluice.DefaultSettings()
	queue, outcome := from.Queue, from.Outcome
	for limit > 0 {
		classes, err := list(tx, func(rows *sql.Rows) (c pruneClass, err error) {
			err = rows.Scan(&c.queue, &c.outcome, &c.keepMs)
			return c, err
		}, pruneClassSQL, queue, outcome, defaults.KeepCompleted.Milliseconds(), defaults.KeepCancelled.Milliseconds(), defaults.KeepDead.Milliseconds())
		if err != nil || len(classes) == 0 {
			return err
		}
		c := classes[0]
		queue, outcome = c.queue, c.outcome+" " // the first place after the class
		if c.keepMs == 0 {
			continue // kept for ever
		}
		since := int64(0)
		if c.queue == from.Queue && c.outcome == from.Outcome && !from.EndedAt.IsZero() {
			since = from.EndedAt.UnixMicro()
		}
		found, err := list(tx, scanOldLife, pruneOldSQL, c.queue, c.outcome, since, at-c.keepMs*1000, limit)
		if err != nil {
			return err
		}
		if limit -= len(found); len(found) > 0 {
			pass(c, found)
		}
	}
	return nil
}

func scanOldLife(rows *sql.Rows) (l oldLife, err error) {
	err = rows.Scan(&l.seq, &l.generation, &l.endedAt)
	return l, err
}

// pruneKeys deletes keys whose window has passed, and returns their number.
func pruneKeys(tx runner, limit int) (int64, error) {
	result, err := tx.exec(pruneKeysSQL, now(), limit)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// deleteOld deletes jobs that were found outside the transaction, except jobs that were requeued
// since.
func deleteOld(tx runner, old []oldLife) (deleted int, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	pairs := make([][2]int64, len(old))
	for i, l := range old {
		pairs[i] = [2]int64{l.seq, l.generation}
	}
	text, err := jsonOf(pairs)
	if err != nil {
		return 0, err
	}
	seqs, err := list(tx, scanOne[int64], pruneStillSQL, text)
	if err != nil {
		return 0, err
	}
	return len(seqs), deleteJobs(tx, seqs)
}

// deleteJobs deletes finished jobs with all lives and failed attempts.
func deleteJobs(tx runner, seqs []int64) error {
	text, err := jsonOf(seqs)
	if err != nil {
		return err
	}
	for _, statement := range []string{pruneAfterSQL, pruneLivesSQL, pruneAttemptsSQL, pruneJobsSQL} {
		if _, err := tx.exec(statement, text); err != nil {
			return err
		}
	}
	return nil
}
