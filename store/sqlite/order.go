package sqlite

import (
	"database/sql"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/order_give.sql
var orderGiveSQL string

//go:embed sql/order_before.sql
var orderBeforeSQL string

//go:embed sql/after_find.sql
var afterFindSQL string

//go:embed sql/after_put.sql
var afterPutSQL string

//go:embed sql/after_again.sql
var afterAgainSQL string

//go:embed sql/after_rest.sql
var afterRestSQL string

//go:embed sql/after_forget.sql
var afterForgetSQL string

//go:embed sql/after_waiting.sql
var afterWaitingSQL string

//go:embed sql/awaited.sql
var awaitedSQL string

//go:embed sql/is_awaited.sql
var isAwaitedSQL string

//go:embed sql/waiting.sql
var waitingSQL string

//go:embed sql/block.sql
var blockSQL string

// ordered reports whether a job has an order key, or runs after other jobs.
func ordered(j *sluice.Insert) bool { return j.OrderKey != "" || len(j.After) > 0 }

// before holds the jobs that a job runs after, as they are stored.
type before struct {
	ids      []sluice.ID
	failures map[sluice.ID]sluice.AfterFailure // the rules of single ones
	waitFor  []edge                            // without completed ones
	queues   []string
}

// edge is a job that another runs after, and the failure rule.
type edge struct {
	id   sluice.ID
	rule sluice.AfterFailure
}

// MarshalJSON writes an edge as after_put.sql takes it.
func (e edge) MarshalJSON() ([]byte, error) { return json.Marshal([]any{e.id, e.rule}) }

// findBefore looks up the jobs that a job runs after. If a named job was a duplicate in the same
// batch, the holder of its key takes its place. If a named job is not stored, refused is the error
// for the job.
func findBefore(tx runner, j *sluice.Insert, twins map[sluice.ID]sluice.ID) (out before, refused, err error) {
	if len(j.After) == 0 {
		return out, nil, nil
	}
	out.failures = j.AfterFailures
	for _, id := range j.After {
		if twin, duplicate := twins[id]; duplicate {
			out.failures = storing.AfterTwin(out.failures, id, twin)
			id = twin
		}
		out.ids = append(out.ids, id)
	}
	known := make(map[sluice.ID]bool)
	_, err = list(tx, func(rows *sql.Rows) (struct{}, error) {
		var id []byte
		var queue string
		var completed bool
		err := rows.Scan(&id, &queue, &completed)
		known[idOf(id)] = true
		if !completed {
			out.waitFor = append(out.waitFor, edge{idOf(id), storing.AfterRule(j.AfterFailure, out.failures, idOf(id))})
			out.queues = append(out.queues, queue)
		}
		return struct{}{}, err
	}, afterFindSQL, idList(out.ids))
	for _, id := range out.ids {
		if err != nil || known[id] {
			continue
		}
		if sent, err := isStored(tx, j.ID); err != nil || sent {
			return out, nil, err // the job was sent again, and jobs that it waited for may be deleted
		}
		return out, storing.AfterUnknown(id), nil
	}
	return out, nil, err
}

// places collects the new jobs of a batch that have an order key or run after other jobs.
type places struct {
	awaited map[string]bool // the queues already marked as having jobs that others wait for
	seqs    []int64         // of the jobs to evaluate
}

// take makes a new job wait for the jobs before it. Until look evaluates the job, it waits for
// itself.
func (p *places) take(tx runner, j *sluice.Insert, seq int64, others before) error {
	queues := others.queues
	if j.OrderKey != "" || j.Key != "" { // a job with the same key may end, too
		queues = append(queues, j.Queue)
	}
	for _, queue := range queues {
		if p.awaited[queue] {
			continue
		}
		p.awaited[queue] = true
		if _, err := tx.exec(awaitedSQL, queue); err != nil {
			return err
		}
	}
	if _, err := tx.exec(orderGiveSQL, seq); err != nil {
		return err
	}
	p.seqs = append(p.seqs, seq)
	if len(others.waitFor) == 0 {
		return nil
	}
	edges, err := jsonOf(others.waitFor)
	if err != nil {
		return err
	}
	_, err = tx.exec(afterPutSQL, seq, edges)
	return err
}

// look works out the job that each new job waits for, in parts that leave room for the jobs that it
// cancels.
func (p *places) look(tx runner) error {
	for seqs := range slices.Chunk(p.seqs, unblockLimit/2) {
		if err := unblock(tx, nil, seqs); err != nil {
			return err
		}
	}
	return nil
}

// takePlaceAgain gives requeued jobs their places in their orders again.
func takePlaceAgain(tx runner, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	for _, seq := range seqs {
		for _, statement := range []string{afterForgetSQL, afterAgainSQL} {
			if _, err := tx.exec(statement, seq); err != nil {
				return err
			}
		}
	}
	return unblock(tx, nil, seqs)
}

// waiter is a job that waits for another.
type waiter struct {
	seq      int64
	id       sluice.ID
	queue    string
	orderKey *string
	behind   int64 // the number of the job that it waits for; its own until it is evaluated
	lives    bool  // that job is unfinished
	unsure   bool  // it may wait for that job because of a key or an order
	failed   bool  // the job failedID, which it runs after and which ended with outcome, makes it fail
	failedID sluice.ID
	outcome  sluice.State
}

func scanWaiter(rows *sql.Rows) (waiter, error) {
	var w waiter
	var id, failedID []byte
	var outcome string
	err := rows.Scan(&w.seq, &id, &w.queue, &w.orderKey, &w.behind, &w.lives, &w.unsure, &failedID, &outcome, &w.failed)
	w.id, w.failedID, w.outcome = idOf(id), idOf(failedID), sluice.State(outcome)
	return w, err
}

// unblockLimit is how many waiting jobs are evaluated when a job ends, because settling must stay
// quick. Upkeep evaluates the rest.
const unblockLimit = 1000

// unblock evaluates the jobs that wait for ended jobs, and the jobs in look. Jobs that it cancels
// end too, so unblock continues with the jobs that wait for those.
func unblock(tx runner, ended, look []int64) error {
	for looked := 0; (len(ended) > 0 || len(look) > 0) && looked < unblockLimit; {
		out, err := lookAtAll(tx, ended, look, 0, unblockLimit-looked)
		if err != nil {
			return err
		}
		ended, look = out.cancelled, nil
		looked += out.looked
	}
	return nil
}

// looks is the result of evaluating waiting jobs.
type looks struct {
	looked    int
	last      int64   // the number of the last evaluated job
	changed   int     // how many now wait for another job, or for none
	cancelled []int64 // the cancelled jobs
}

// lookAtAll evaluates the jobs that wait for ended jobs, and the jobs in look: at most limit, with
// numbers above after.
func lookAtAll(tx runner, ended, look []int64, after int64, limit int) (out looks, err error) {
	waiters, err := list(tx, scanWaiter, waitingSQL, seqList(ended), seqList(look), after, limit)
	if err != nil {
		return out, err
	}
	for _, w := range waiters {
		reason, changed, err := lookAt(tx, w)
		if err != nil {
			return out, err
		}
		if changed {
			out.changed++
		}
		if reason != "" {
			out.cancelled = append(out.cancelled, w.seq)
		}
		out.looked, out.last = out.looked+1, w.seq
	}
	return out, nil
}

// lookAt works out the job that a job waits for now. If the job must be cancelled, lookAt cancels
// it and returns the reason.
func lookAt(tx runner, w waiter) (reason string, changed bool, err error) {
	behind, reason, err := restOf(tx, w)
	if err != nil {
		return "", false, err
	}
	if reason != "" {
		return reason, true, cancelWaiter(tx, w, reason)
	}
	waits, err := waitsForItself(tx, w.id)
	if err != nil || w.lives && !waits {
		return "", false, err
	}
	if w.orderKey != nil {
		found, err := list(tx, scanOne[*int64], orderBeforeSQL, w.queue, *w.orderKey, w.seq)
		if err != nil {
			return "", false, err
		}
		if found[0] != nil {
			behind = found[0]
		}
	}
	if waits {
		behind = &w.seq
	}
	if behind != nil && *behind == w.behind {
		return "", false, nil
	}
	if behind == nil {
		tx.signal(sluice.Signal{Queue: w.queue})
	}
	_, err = tx.exec(blockSQL, w.seq, behind)
	return "", true, err
}

// restOf returns the job that a job waits for of those that it runs after. Nil: all have passed. If the job must be
// cancelled, restOf returns the reason.
func restOf(tx runner, w waiter) (behind *int64, reason string, err error) {
	if w.failed {
		return nil, storing.AfterFailed(w.failedID, w.outcome), nil
	}
	type other struct {
		seq     *int64 // nil: it is deleted
		id      []byte
		waits   bool
		outcome *string
	}
	others, err := list(tx, func(rows *sql.Rows) (o other, err error) {
		err = rows.Scan(&o.seq, &o.id, &o.waits, &o.outcome)
		return o, err
	}, afterRestSQL, w.seq, w.behind, w.unsure)
	switch {
	case err != nil || len(others) == 0:
		return nil, "", err
	case others[0].waits:
		return others[0].seq, "", nil
	}
	return nil, storing.AfterFailed(idOf(others[0].id), sluice.State(orZero(others[0].outcome))), nil
}

// cancelWaiter cancels a job because a job that it runs after has failed. The caller evaluates the
// jobs that wait for it.
func cancelWaiter(tx runner, w waiter, reason string) error {
	rows, err := heldRows(tx, []sluice.ID{w.id})
	if err != nil {
		return err
	}
	finish := newFinisher(tx)
	finish.alone = true
	tx.moved(rows[w.id].queue, "", sluice.EventCancel)
	if err := finish.add(rows[w.id], ended{event: sluice.EventCancel, act: sluice.Act{By: "sluice", Reason: reason}}); err != nil {
		return err
	}
	return finish.flush()
}

// idsOfJSON reads the ids of the jobs that a job runs after.
func idsOfJSON(text *string) ([]sluice.ID, error) {
	if text == nil {
		return nil, nil
	}
	var ids []sluice.ID
	err := json.Unmarshal([]byte(*text), &ids)
	return ids, err
}
