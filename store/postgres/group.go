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
	// fewJobs and fewBytes limit the jobs and the payload of a call that shares a transaction. A larger call would
	// gain nothing and make the others wait.
	fewJobs  = 16
	fewBytes = 64 << 10
	// maxGroup is how many calls share a transaction at most.
	maxGroup = 256
	// groupsAtOnce is how many transactions run before calls wait and share the next. With 2, groups are half as
	// large and each job costs a fifth more.
	groupsAtOnce = 1
	// groupPatience is how long a call waits for running transactions. Then one more transaction starts beside
	// them, so that no call waits for a transaction that hangs behind a lock or on a dead connection.
	groupPatience = 50 * time.Millisecond
)

// enqueueGroups lets calls with few jobs share a transaction. A call never waits for company: only while a
// transaction runs, and then all calls that have come meanwhile go together.
type enqueueGroups struct {
	store    *Store
	patience time.Duration

	mu       sync.Mutex
	idle     *sync.Cond // signalled when no transaction runs
	waiting  []*enqueueCall
	underWay int
}

func newEnqueueGroups(s *Store) *enqueueGroups {
	e := &enqueueGroups{store: s, patience: groupPatience}
	e.idle = sync.NewCond(&e.mu)
	return e
}

// wait waits until no transaction runs.
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

	group    *enqueueGroup // the call's group; nil: it waits. Guarded by the mutex of enqueueGroups.
	done     chan struct{} // closed once the following are set
	receipts []sluice.Receipt
	err      error
}

// enqueueGroup is the calls that share a transaction.
type enqueueGroup struct {
	calls  []*enqueueCall
	ctx    context.Context
	cancel context.CancelFunc
	left   int // how many calls still wait for it. Guarded by the mutex of enqueueGroups.
}

// mayShare reports whether a call may share a transaction. Keyed jobs may not: they may have to wait for another
// transaction, and would make the whole group wait.
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

// enqueue stores the jobs of a call: alone if no transaction runs, else with the jobs of others. A call gets the
// same errors as alone.
func (e *enqueueGroups) enqueue(ctx context.Context, jobs []sluice.Insert) (enqueued, error) {
	call := e.join(ctx, jobs)
	if call == nil {
		defer e.ended()
		return e.atOnce(ctx, jobs)
	}
	if err := e.await(ctx, call); err != nil {
		return enqueued{}, err
	}
	if call.err == nil || len(call.group.calls) == 1 || transient(call.err) {
		return enqueued{receipts: call.receipts}, call.err
	}
	// Any call of the group may have caused the error. If the server reported it, nothing was stored.
	return e.alone(ctx, jobs, !refused(call.err))
}

// refused reports whether an error means that nothing was stored.
func refused(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) || errors.Is(err, sluice.ErrQueueGone)
}

func (e *enqueueGroups) alone(ctx context.Context, jobs []sluice.Insert, again bool) (enqueued, error) {
	return enqueue(ctx, e.store.pool, jobs, enqueuing{again: again, brief: true, alone: !again})
}

// atOnce stores the jobs of a call that found no transaction running. A single job carries its signal, if it may.
func (e *enqueueGroups) atOnce(ctx context.Context, jobs []sluice.Insert) (enqueued, error) {
	if len(jobs) != 1 || !plain(&jobs[0]) {
		return e.alone(ctx, jobs, false)
	}
	notifier := e.store.notifier
	signal := notifier.carry(jobs[0].Queue)
	if signal == "" {
		return e.alone(ctx, jobs, false)
	}
	begun := time.Now()
	out, err := enqueue(ctx, e.store.pool, jobs, enqueuing{brief: true, alone: true, carry: signal})
	if refusesSignals(err) { // nothing was stored
		notifier.carried(refusedPause)
		return e.alone(ctx, jobs, false)
	}
	notifier.carried(carryShare * time.Since(begun))
	out.told = err == nil && !out.receipts[0].Duplicate
	return out, err
}

// join adds a call to the waiting ones. Nil: the call may run alone at once.
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

// await waits until a call's group is stored or has failed, or the call's context ends.
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

// giveUp removes a waiting call. If no call waits for a group any longer, giveUp cancels the group.
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

// startBeside starts another transaction if the call still waits.
func (e *enqueueGroups) startBeside(call *enqueueCall) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgetGivenUp()
	if call.group == nil && len(e.waiting) > 0 {
		e.underWay++
		e.start()
	}
}

// forgetGivenUp removes waiting calls whose context has ended, before they notice it themselves. The caller holds
// the mutex.
func (e *enqueueGroups) forgetGivenUp() {
	e.waiting = slices.DeleteFunc(e.waiting, func(c *enqueueCall) bool { return c.ctx.Err() != nil })
}

// ended starts the next group after a transaction.
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

// start writes the next group. The caller holds the mutex.
func (e *enqueueGroups) start() {
	group := e.take()
	go func() {
		e.write(group)
		runtime.Gosched() // callers that enqueue again can join the next group
		e.ended()
	}()
}

// take makes a group of waiting calls. No two jobs of a group have the same id, so one statement stores all or
// none. The caller holds the mutex.
func (e *enqueueGroups) take() *enqueueGroup {
	// The group outlives calls that give up. Its context keeps the values of the first call's, for tracers of
	// statements.
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

// addIDs adds the ids of jobs, or none of them if one is already present.
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

// write stores the jobs of a group, and gives each call its receipts or the error.
func (e *enqueueGroups) write(group *enqueueGroup) {
	defer group.cancel()
	var jobs []sluice.Insert
	for _, call := range group.calls {
		jobs = append(jobs, call.jobs...)
	}
	out, err := e.alone(group.ctx, jobs, false)
	receipts := out.receipts
	for _, call := range group.calls {
		if call.err = err; err == nil {
			call.receipts, receipts = receipts[:len(call.jobs):len(call.jobs)], receipts[len(call.jobs):]
		}
		close(call.done)
	}
}
