package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"math"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/enqueue_live.sql
var enqueueLiveSQL string

//go:embed sql/enqueue_plain.sql
var enqueuePlainSQL string

//go:embed sql/job_stored.sql
var jobStoredSQL string

//go:embed sql/key_holder.sql
var keyHolderSQL string

//go:embed sql/coalesce_expiry.sql
var coalesceExpirySQL string

//go:embed sql/coalesce.sql
var coalesceSQL string

//go:embed sql/put_off.sql
var putOffSQL string

//go:embed sql/put_off_job.sql
var putOffJobSQL string

//go:embed sql/key_pass.sql
var keyPassSQL string

//go:embed sql/key_take.sql
var keyTakeSQL string

//go:embed sql/key_untake.sql
var keyUntakeSQL string

// forEver is the expiry of a key that is never freed.
const forEver = math.MaxInt64

// Enqueue stores jobs in one transaction.
func (s *Store) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	stay, err := s.room.Enter(ctx, jobs, s.roomSource())
	if err != nil {
		return make([]sluice.Receipt, len(jobs)), err
	}
	var receipts []sluice.Receipt
	var refused map[int]error
	defer func() { stay.End(jobs, receipts) }()
	err = s.write(ctx, "enqueue", func(tx runner, again bool) (err error) {
		gone, err := queuesGone(tx, jobs)
		if err != nil {
			return err
		}
		if gone {
			return sluice.ErrQueueGone
		}
		receipts, refused, err = enqueue(tx, jobs, again)
		return err
	})
	if err == nil {
		s.tally.Enqueued(jobs, receipts)
	}
	if err == nil && len(refused) > 0 {
		err = &sluice.BatchError{Failed: refused, Total: len(jobs)}
	}
	return receipts, err
}

// enqueue stores jobs one after the other. If again is set, an earlier try may have stored them,
// and jobs that are already stored are no duplicates. Refused holds the errors of single jobs.
func enqueue(tx runner, jobs []sluice.Insert, again bool) (receipts []sluice.Receipt, refused map[int]error, err error) {
	if id := storing.FlowOf(jobs); !id.IsZero() {
		if known, err := isStored(tx, id); known || err != nil {
			return storing.Known(jobs, again), nil, err
		}
	}
	receipts = make([]sluice.Receipt, len(jobs))
	queues := make(map[string]bool)
	at := now()
	jobs, refused, err = enterBatches(tx, jobs)
	if err != nil {
		return nil, nil, err
	}
	var count counting
	plain := make(map[bool][]int64) // by whether they wait in a tenant queue
	placed := places{awaited: make(map[string]bool)}
	twins := make(map[sluice.ID]sluice.ID)
	for i := range jobs {
		if refused[i] != nil {
			continue
		}
		if len(jobs[i].After) > 0 { // jobs that it runs after may be in the batch
			if err := putPlain(tx, plain, at); err != nil {
				return nil, nil, err
			}
		}
		others, key, refusal, err := placeNew(tx, &jobs[i], twins, at)
		if err != nil {
			return nil, nil, err
		}
		if refusal != nil {
			refused[i] = refusal
			continue
		}
		receipt, seq, err := enqueueOne(tx, &jobs[i], key, others, &placed, at)
		if err != nil {
			return nil, nil, err
		}
		if !receipt.Duplicate {
			count.added(jobs[i].Batch)
		}
		if receipt.ID != jobs[i].ID {
			twins[jobs[i].ID] = receipt.ID
		}
		if seq != 0 {
			plain[jobs[i].ByTenant] = append(plain[jobs[i].ByTenant], seq)
		}
		if receipts[i] = receipt; again && receipt.ID == jobs[i].ID {
			receipts[i].Duplicate = false
		}
		if !queues[jobs[i].Queue] {
			queues[jobs[i].Queue] = true
			tx.signal(sluice.Signal{Queue: jobs[i].Queue})
		}
	}
	if err := putPlain(tx, plain, at); err != nil {
		return nil, nil, err
	}
	if err := count.put(tx); err != nil {
		return nil, nil, err
	}
	return receipts, refused, placed.look(tx)
}

// putPlain inserts the live rows of plain jobs.
func putPlain(tx runner, plain map[bool][]int64, at int64) error {
	for inTenantQueue, seqs := range plain {
		if _, err := tx.exec(enqueuePlainSQL, seqList(seqs), at, inTenantQueue); err != nil {
			return err
		}
	}
	clear(plain)
	return nil
}

func isStored(tx runner, id sluice.ID) (bool, error) {
	known, err := list(tx, scanOne[int64], jobStoredSQL, id[:])
	return len(known) > 0, err
}

// placeNew finds the jobs that a job runs after, and works out the effect of its key. Refused is
// why the job is not stored.
func placeNew(tx runner, j *sluice.Insert, twins map[sluice.ID]sluice.ID, at int64) (others before, key keyPlace, refused, err error) {
	others, refused, err = findBefore(tx, j, twins)
	if err != nil || refused != nil || j.Key == "" {
		return others, key, refused, err
	}
	key, err = placeByKey(tx, j, at)
	return others, key, key.refused, err
}

// labelsJSON returns the labels of a job as JSON, or nil.
func labelsJSON(j *sluice.Insert) (any, error) {
	if len(j.Labels) == 0 {
		return nil, nil
	}
	return jsonOf(j.Labels)
}

// enqueueOne stores a job. A plain job is due now and has no key. For a plain job, enqueueOne
// returns the job's number and inserts no live row, because the caller inserts many live rows at
// once.
func enqueueOne(tx runner, j *sluice.Insert, key keyPlace, others before, placed *places, at int64) (receipt sluice.Receipt, plain int64, err error) {
	if !key.duplicateOf.IsZero() {
		return sluice.Receipt{ID: key.duplicateOf, Duplicate: true}, 0, nil
	}
	labels, err := labelsJSON(j)
	if err != nil {
		return sluice.Receipt{}, 0, err
	}
	var maxAttempts any
	if j.MaxAttempts > 0 {
		maxAttempts = j.MaxAttempts
	}
	stored, err := putJob(tx, j, others, at, labels, maxAttempts)
	if err != nil {
		return sluice.Receipt{}, 0, err
	}
	if n, err := stored.RowsAffected(); err != nil || n == 0 {
		return sluice.Receipt{ID: j.ID, Duplicate: true}, 0, errors.Join(err, key.giveBack(tx, j))
	}
	seq, err := stored.LastInsertId()
	if err != nil {
		return sluice.Receipt{}, 0, err
	}
	if j.Key == "" && j.DueAt.IsZero() && j.Delay == 0 && !j.AuditFull && !ordered(j) && j.Hold == "" {
		return sluice.Receipt{ID: j.ID}, seq, nil
	}
	due := at + j.Delay.Microseconds()
	if !j.DueAt.IsZero() {
		due = j.DueAt.UnixMicro()
	}
	due = max(due, key.dueAt)
	keyed := j.Key != "" && j.KeyScope == sluice.WhileUnfinished
	behind := key.blockedBy
	if j.Hold != "" {
		behind = seq
	}
	if _, err := tx.exec(enqueueLiveSQL, seq, j.Queue, j.Tenant, j.Priority, due, micros(j.ExpiresAt), keyed, behind, 1, j.ByTenant && j.Hold == "", nullID(j.Batch), nullText(j.LimitKey), max(j.Cost, 1)); err != nil {
		return sluice.Receipt{}, 0, err
	}
	if j.AuditFull {
		err = tell(tx, sluice.AuditEntry{
			Object: audit.ObjectJob, Name: j.Queue, Actor: "producer", Event: sluice.EventEnqueue,
			JobID: j.ID, Generation: 1, To: sluice.StateQueued,
		})
	}
	if err == nil && j.Hold != "" {
		err = holdNew(tx, j, key.blockedBy)
	}
	if err == nil && ordered(j) {
		err = placed.take(tx, j, seq, others)
	}
	return sluice.Receipt{ID: j.ID, Replaced: key.replaced}, 0, err
}

// keyPlace is the effect of a job's key. The zero value: the job is stored as it is.
type keyPlace struct {
	duplicateOf sluice.ID // the job is not stored, because this job holds the key
	replaced    sluice.ID // the job replaces this waiting job
	blockedBy   any       // the number of the job that it waits for, or nil
	taken       bool      // the key was free
	dueAt       int64     // the end of the window that another job begins; 0: none
	refused     error     // why the job is not stored
}

// giveBack restores the key of a job that was sent again.
func (p keyPlace) giveBack(tx runner, j *sluice.Insert) error {
	if !p.taken {
		return nil
	}
	_, err := tx.exec(keyUntakeSQL, j.Queue, j.Key, j.ID[:])
	return err
}

// keyHold is the job that holds a key.
type keyHold struct {
	job       sluice.ID
	until     *int64
	seq       *int64 // of the holder's live row; nil: the holder has ended
	state     sluice.State
	blockedBy *int64
	tenant    *string // of the holder; nil: it was deleted
}

func scanKeyHold(rows *sql.Rows) (keyHold, error) {
	var hold keyHold
	var id []byte
	var state *string
	err := rows.Scan(&id, &hold.until, &hold.seq, &state, &hold.blockedBy, &hold.tenant)
	hold.job, hold.state = idOf(id), sluice.State(orZero(state))
	return hold, err
}

// holds reports whether the key still excludes other jobs.
func (h keyHold) holds(at int64) bool {
	if h.until == nil {
		return h.seq != nil
	}
	return *h.until > at
}

// meet replaces the payload of the job that holds the key, if that job waits and was never handed
// out.
func meet(tx runner, j *sluice.Insert, holder, at int64) (bool, error) {
	labels, err := labelsJSON(j)
	if err != nil {
		return false, err
	}
	n, err := affected(tx.exec(coalesceExpirySQL, holder, micros(j.ExpiresAt)))
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := tx.exec(coalesceSQL, holder, []byte(j.Payload), labels); err != nil || j.OnDuplicate != sluice.Debounce {
		return true, err
	}
	due, longest := at+j.Delay.Microseconds(), any(nil)
	if !j.DueAt.IsZero() {
		due = j.DueAt.UnixMicro()
	}
	if j.KeyWindow > 0 {
		longest = j.KeyWindow.Microseconds()
	}
	if _, err := tx.exec(putOffSQL, holder, due, longest, micros(j.ExpiresAt)); err != nil {
		return false, err
	}
	_, err = tx.exec(putOffJobSQL, holder, micros(j.ExpiresAt))
	return true, err
}

// placeByKey gives a job its key, or works out the effect of another job's hold on the key. Most
// keys are new, and cost one statement.
func placeByKey(tx runner, j *sluice.Insert, at int64) (keyPlace, error) {
	taken, err := affected(tx.exec(keyTakeSQL, j.Queue, j.Key, j.ID[:], keyUntil(j, at)))
	if err != nil || taken > 0 {
		return keyPlace{taken: true}, err
	}
	sent, err := isStored(tx, j.ID)
	if err != nil || sent {
		return keyPlace{duplicateOf: j.ID}, err // the job was sent again: its key stays as it is
	}
	holds, err := list(tx, scanKeyHold, keyHolderSQL, j.Queue, j.Key)
	if err != nil {
		return keyPlace{}, err
	}
	var place keyPlace
	if len(holds) > 0 && holds[0].holds(at) {
		hold := holds[0]
		if hold.tenant != nil && storing.RefusesKey(j, *hold.tenant) {
			return keyPlace{refused: storing.KeyRefusal(j)}, nil
		}
		queued := hold.seq != nil && hold.state == sluice.StateQueued
		switch {
		case j.OnDuplicate == sluice.Replace && queued:
			place = keyPlace{replaced: hold.job}
			if hold.blockedBy != nil {
				place.blockedBy = *hold.blockedBy
			}
		case (j.OnDuplicate == sluice.Coalesce || j.OnDuplicate == sluice.Debounce) && hold.until == nil:
			if met, err := meet(tx, j, *hold.seq, at); err != nil || met {
				return keyPlace{duplicateOf: hold.job}, err
			}
			place = keyPlace{blockedBy: *hold.seq}
		case j.OnDuplicate == sluice.Coalesce && j.KeyScope == sluice.ForWindow && hold.until != nil && *hold.until != forEver:
			if queued {
				if met, err := meet(tx, j, *hold.seq, at); err != nil || met {
					return keyPlace{duplicateOf: hold.job}, err
				}
			}
			place.dueAt = *hold.until
			_, err := tx.exec(keyPassSQL, j.Queue, j.Key, j.ID[:], keyUntil(j, *hold.until))
			return place, err
		default:
			return keyPlace{duplicateOf: hold.job}, nil
		}
	}
	if _, err := tx.exec(keyPassSQL, j.Queue, j.Key, j.ID[:], keyUntil(j, at)); err != nil || place.replaced.IsZero() {
		return place, err
	}
	_, err = end(tx, ending{
		event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}, ids: []sluice.ID{place.replaced},
		act: sluice.Act{By: "producer", Reason: "replaced by " + j.ID.String()},
	})
	return place, err
}

// keyUntil returns when a job's key expires. Nil: the job keeps the key while it is unfinished.
func keyUntil(j *sluice.Insert, at int64) any {
	switch j.KeyScope {
	case sluice.ForWindow:
		return at + j.KeyWindow.Microseconds()
	case sluice.ForEver:
		return int64(forEver)
	}
	return nil
}
