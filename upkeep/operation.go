package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/operation"
)

// operating carries out operations outside the rounds, so that recovery does not wait for them.
type operating struct {
	all sync.WaitGroup

	mu      sync.Mutex
	running bool
}

func (o *operating) wait() { o.all.Wait() }

// begin reports whether no operations are being carried out, and marks the start.
func (o *operating) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running {
		return false
	}
	o.running = true
	return true
}

func (o *operating) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = false
}

// operateBeside carries out operations outside the rounds, for about one interval. The upkeep that leads then
// goes on.
func (u *Upkeep) operateBeside(ctx context.Context) {
	if !u.operations.begin() {
		return
	}
	u.operations.all.Go(func() {
		defer u.operations.end()
		done, err := u.operate(ctx, u.options.Interval)
		if err != nil {
			u.failed(ctx, "carry out operations", err)
		}
		if done > 0 {
			u.log.Emit(event.OperationsDone, "", "jobs", done)
		}
	})
}

// operateIf carries out operations as far as possible now, if all work is to be done.
func (u *Upkeep) operateIf(ctx context.Context, all bool, done *Done) (err error) {
	if all {
		done.Operated, err = u.operate(ctx, 0)
	}
	return err
}

// operate takes steps of all open operations until the budget is used up. With a budget of 0, it stops when
// each operation has to wait. done is the number of jobs acted on.
func (u *Upkeep) operate(ctx context.Context, budget time.Duration) (done int, err error) {
	open, err := operation.Given(u.store).Operations(ctx, operation.Filter{Open: true, Limit: openOperations})
	if err != nil {
		return 0, fmt.Errorf("list operations: %w", err)
	}
	var failed []error
	for until := time.Now().Add(budget); len(open) > 0 && ctx.Err() == nil; {
		wait := time.Duration(-1)
		var rest []operation.Operation
		for _, op := range open {
			next, pause, err := operation.CarryOut(ctx, u.store, op, u.holder.ID, u.options.PayloadChecker)
			done += max(0, next.Done-op.Done)
			switch {
			case errors.Is(err, sluice.ErrConflict): // another process was quicker; the next round sees its step
				continue
			case err != nil:
				failed = append(failed, err)
				continue
			}
			u.logOperation(op, next)
			if next.EndedAt.IsZero() && (budget > 0 || pause == 0) {
				rest = append(rest, next)
				if wait < 0 || pause < wait {
					wait = pause
				}
			}
		}
		if open = rest; budget > 0 && time.Now().Add(max(wait, 0)).After(until) {
			break
		}
		rested(ctx, wait)
	}
	return done, errors.Join(failed...)
}

// openOperations is the most operations carried out at the same time.
const openOperations = 100

func rested(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// logOperation logs that an operation has ended.
func (u *Upkeep) logOperation(before, op operation.Operation) {
	if before.State == op.State || !op.State.Ended() {
		return
	}
	u.log.Emit(event.OperationEnded, "", "operation", op.ID, "kind", op.Kind, "state", op.State, "done", op.Done,
		"skipped", op.Skipped, "failed", op.Failed, "reason", op.Why)
}
