package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Save stores an operation for a program that only sees it through a server: a new one as [Start] does, and of a stored one its
// state and its rate. The progress stays as it is stored. If the version is not that of the stored one, the error is a
// [sluice.ErrConflict], and if the operation has ended, a [sluice.ErrNotAllowed].
func Save(ctx context.Context, store sluice.Store, operation Operation, act sluice.Act) (Operation, error) {
	if operation.Version == 0 {
		return Start(ctx, store, operation, act)
	}
	if err := act.Check(); err != nil {
		return Operation{}, err
	}
	next, err := Read(ctx, store, operation.ID)
	if err != nil {
		return next, err
	}
	if next.Version != operation.Version {
		err = sluice.ErrConflict
	} else {
		err = next.become(operation)
	}
	if err != nil {
		return doneBefore(ctx, store, next, act, fmt.Errorf("operation %s: %w", operation.ID, err))
	}
	return Given(store).SaveOperation(ctx, next, act)
}

// become takes over the state and the rate that a person wants.
func (o *Operation) become(wanted Operation) error {
	switch {
	case wanted.State == o.State:
	case o.State.Ended(), wanted.State != StateRunning && wanted.State != StatePaused && wanted.State != StateStopped:
		return fmt.Errorf("it is %s and cannot become %.20q: %w", o.State, wanted.State, sluice.ErrNotAllowed)
	default:
		o.enter(wanted.State, sluice.Brief(wanted.Why))
	}
	if wanted.Rate != o.Rate {
		o.pace(wanted.Rate)
	}
	return o.checkTerms()
}

// Seen returns an operation as a server tells of it: with the store's clock, and whether the canary is still tried.
func (o Operation) Seen(now time.Time, onProbation bool) Operation {
	o.Now, o.readAt, o.course.Proved = now.UTC(), time.Now(), !onProbation
	return o
}
