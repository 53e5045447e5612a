package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
)

const (
	// fewJobs and fewBytes are how many jobs and how much payload a call may store to share a transaction with others.
	// Larger calls gain nothing by it, and would keep the others waiting.
	fewJobs  = 16
	fewBytes = 64 << 10
	// maxGroup is how many calls share a transaction at the most.
	maxGroup = 256
	// groupsAtOnce is how many transactions are under way before calls wait and share the next. With two the groups are
	// half as large, and each job costs a fifth more.
	groupsAtOnce = 1
	// groupPatience is how long a call waits for the transactions that are under way. Then one more starts beside them, so
	// that nobody waits for one that is stuck behind a lock or on a dead connection.
	groupPatience = 50 * time.Millisecond
)

// enqueueGroups lets calls that store few jobs each share a transaction. A call never waits for company: it waits only while
// a transaction is under way, and goes with all that came meanwhile.
type enqueueGroups struct {
	store    *Store
	patience time.Duration

	mu       sync.Mutex
	idle     *sync.Cond // told when nothing is under way
	waiting  []*enqueueCall
	underWay int
}

func newEnqueueGroups(s *Store) *enqueueGroups {
	e := &enqueueGroups{store: s, patience: groupPatience}
	e.idle = sync.NewCond(&e.mu)
	return e
}

// wait waits until nothing is under way.
func (e *enqueueGroups) wait() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.underWay > 0 {
		e.idle.Wait()
	}
}

// enqueueCall is a call that waits, or goes in a group.
type enqueueCall struct {
	ctx  context.Context
	jobs []sluice.Insert

	group    *enqueueGroup // the one it goes in; nil: it waits. Guarded by the mutex of enqueueGroups.
	done     chan struct{} // closed once the following are set
	receipts []sluice.Receipt
	err      error
}

// enqueueGroup is some calls that share a transaction.
type enqueueGroup struct {
	calls  []*enqueueCall
	ctx    context.Context
	cancel context.CancelFunc
	left   int // how many calls wait for it still. Guarded by the mutex of enqueueGroups.
}

// mayShare reports whether a call may share a transaction. Jobs with keys or places among others may not: they may have to
// wait for another's transaction, and all of the group would.
func mayShare(jobs []sluice.Insert) bool {
	if len(jobs) > fewJobs || keyed(jobs) {
		return false
	}
	bytes, ids := 0, make(map[sluice.ID]bool, len(jobs))
	for i := range jobs {
		bytes += len(jobs[i].Payload)
	}
	return bytes <= fewBytes && addIDs(ids, jobs)
}

// enqueue stores the jobs of a call, alone if nothing is under way, and else together with those of others. Its errors are
// those that the call would get alone.
func (e *enqueueGroups) enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	call := e.join(ctx, jobs)
	if call == nil {
		defer e.ended()
		return e.alone(ctx, jobs, false)
	}
	if err := e.await(ctx, call); err != nil {
		return nil, err
	}
	if call.err == nil || len(call.group.calls) == 1 || transient(call.err) {
		return call.receipts, call.err
	}
	// One of the group may have been at fault. If the server said so, nothing of it was stored.
	return e.alone(ctx, jobs, !refused(call.err))
}

// refused reports whether an error says that nothing was stored.
func refused(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) || errors.Is(err, sluice.ErrQueueGone)
}

func (e *enqueueGroups) alone(ctx context.Context, jobs []sluice.Insert, again bool) ([]sluice.Receipt, error) {
	out, err := enqueue(ctx, e.store.pool, jobs, enqueuing{again: again, brief: true, alone: !again})
	return out.receipts, err
}

// join lets a call wait for its group, or gives nil: it may go alone at once.
func (e *enqueueGroups) join(ctx context.Context, jobs []sluice.Insert) *enqueueCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.underWay < groupsAtOnce {
		e.underWay++
		return nil
	}
	call := &enqueueCall{ctx: ctx, jobs: jobs, done: make(chan struct{})}
	e.waiting = append(e.waiting, call)
	return call
}

// await waits until a call's group is stored or has failed, or its context ends.
func (e *enqueueGroups) await(ctx context.Context, call *enqueueCall) error {
	patience := time.NewTimer(e.patience)
	defer patience.Stop()
	for {
		select {
		case <-call.done:
			return nil
		case <-ctx.Done():
			e.giveUp(call)
			return ctx.Err()
		case <-patience.C:
			e.startBeside(call)
			patience.Reset(e.patience)
		}
	}
}

// giveUp takes a call back that still waits. A group that nobody waits for any longer is broken off.
func (e *enqueueGroups) giveUp(call *enqueueCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if call.group == nil {
		e.waiting = slices.DeleteFunc(e.waiting, func(c *enqueueCall) bool { return c == call })
		return
	}
	if call.group.left--; call.group.left == 0 {
		call.group.cancel()
	}
}

// startBeside starts a transaction beside those under way if a call still waits.
func (e *enqueueGroups) startBeside(call *enqueueCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetGivenUp()
	if call.group == nil && len(e.waiting) > 0 {
		e.underWay++
		e.start()
	}
}

// forgetGivenUp takes back the calls whose context has ended, though they may not have noticed yet. The mutex is held.
func (e *enqueueGroups) forgetGivenUp() {
	e.waiting = slices.DeleteFunc(e.waiting, func(c *enqueueCall) bool { return c.ctx.Err() != nil })
}

// ended lets the next group go after a transaction.
func (e *enqueueGroups) ended() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetGivenUp()
	if len(e.waiting) > 0 && e.underWay <= groupsAtOnce {
		e.start()
		return
	}
	if e.underWay--; e.underWay == 0 {
		e.idle.Broadcast()
	}
}

// start writes the next group. The mutex is held.
func (e *enqueueGroups) start() {
	group := e.take()
	go func() {
		e.write(group)
		runtime.Gosched() // those who go on to enqueue more can come along at once
		e.ended()
	}()
}

// take makes a group of those that wait. No two of its jobs have the same id, so that one statement stores all of them or
// none. The mutex is held.
func (e *enqueueGroups) take() *enqueueGroup {
	// It outlives the calls that give up, and what their contexts carry is for those who trace statements.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.waiting[0].ctx), e.store.options.CallTimeout)
	group := &enqueueGroup{ctx: ctx, cancel: cancel}
	ids := make(map[sluice.ID]bool)
	var rest []*enqueueCall
	for _, call := range e.waiting {
		if len(group.calls) == maxGroup || !addIDs(ids, call.jobs) {
			rest = append(rest, call)
			continue
		}
		call.group = group
		group.calls = append(group.calls, call)
	}
	e.waiting, group.left = rest, len(group.calls)
	return group
}

// addIDs adds the ids of jobs, or none of them if one is there already.
func addIDs(ids map[sluice.ID]bool, jobs []sluice.Insert) bool {
	for i := range jobs {
		if ids[jobs[i].ID] {
			for k := range i {
				delete(ids, jobs[k].ID)
			}
			return false
		}
		ids[jobs[i].ID] = true
	}
	return true
}

// write stores the jobs of a group, and tells each call what became of its own.
func (e *enqueueGroups) write(group *enqueueGroup) {
	defer group.cancel()
	var jobs []sluice.Insert
	for _, call := range group.calls {
		jobs = append(jobs, call.jobs...)
	}
	receipts, err := e.alone(group.ctx, jobs, false)
	for _, call := range group.calls {
		if call.err = err; err == nil {
			call.receipts, receipts = receipts[:len(call.jobs):len(call.jobs)], receipts[len(call.jobs):]
		}
		close(call.done)
	}
}
