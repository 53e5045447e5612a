package sluice

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// StartOperation stores an operation, which whoever leads upkeep then carries out. Of the operation it takes Kind, Query, DueAt,
// Limit, Rate, Canary, StopIfFailed, and Expected and ExpectedMore, as Preview counted them; ID if it is to be sent again
// after an answer was lost. Who begins it, and why, are those of the act. A requeue needs a reason.
func (c *Client) StartOperation(ctx context.Context, operation Operation, act Act) (Operation, error) {
	if err := act.Check(); err != nil {
		return Operation{}, err
	}
	begun := Operation{
		ID: operation.ID, Kind: operation.Kind, Query: operation.Query, DueAt: storedInstant(operation.DueAt), Limit: operation.Limit,
		Rate: operation.Rate, Canary: operation.Canary, StopIfFailed: operation.StopIfFailed,
		Expected: operation.Expected, ExpectedMore: operation.ExpectedMore,
	}
	if err := begun.begin(act); err != nil {
		return Operation{}, err
	}
	stored, err := c.store.SaveOperation(ctx, begun, act)
	if err != nil {
		return Operation{}, fmt.Errorf("start an operation: %w", err)
	}
	return stored, nil
}

// Operation looks an operation up.
func (c *Client) Operation(ctx context.Context, id ID) (Operation, error) {
	found, err := c.store.Operation(ctx, id)
	if err != nil {
		return found, fmt.Errorf("operation %s: %w", id, err)
	}
	return found, nil
}

// Operations lists operations, the newest first.
func (c *Client) Operations(ctx context.Context, filter OperationFilter) ([]Operation, error) {
	limit, err := pageLimit(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = limit
	return c.store.Operations(ctx, filter)
}

// PauseOperation lets an operation rest, after the batch that is under way. It is an ErrNotAllowed for one that does not run.
func (c *Client) PauseOperation(ctx context.Context, id ID, act Act) (Operation, error) {
	return c.changeOperation(ctx, id, act, func(o *Operation) error {
		if o.State != OperationRunning {
			return fmt.Errorf("it is %s: %w", o.State, ErrNotAllowed)
		}
		o.State, o.Why = OperationPaused, pausedBy(act)
		return nil
	})
}

// ResumeOperation lets a paused operation go on where it was.
func (c *Client) ResumeOperation(ctx context.Context, id ID, act Act) (Operation, error) {
	return c.changeOperation(ctx, id, act, func(o *Operation) error {
		if o.State != OperationPaused {
			return fmt.Errorf("it is %s: %w", o.State, ErrNotAllowed)
		}
		o.State, o.Why = OperationRunning, ""
		o.course.Tokens, o.course.FilledAt = 0, o.now()
		return nil
	})
}

// StopOperation ends an operation for good, after the batch that is under way. What it did stays done.
func (c *Client) StopOperation(ctx context.Context, id ID, act Act) (Operation, error) {
	return c.changeOperation(ctx, id, act, func(o *Operation) error {
		if o.State.Ended() {
			return fmt.Errorf("it is %s: %w", o.State, ErrNotAllowed)
		}
		o.State, o.Why = OperationStopped, "stopped by "+pausedBy(act)
		return nil
	})
}

func pausedBy(act Act) string {
	if act.Reason == "" {
		return act.By
	}
	return act.By + ": " + act.Reason
}

// PaceOperation gives an operation that has not ended another pace; 0: as fast as upkeep can.
func (c *Client) PaceOperation(ctx context.Context, id ID, rate Rate, act Act) (Operation, error) {
	return c.changeOperation(ctx, id, act, func(o *Operation) error {
		if o.State.Ended() {
			return fmt.Errorf("it is %s: %w", o.State, ErrNotAllowed)
		}
		o.Rate = rate
		o.course.Tokens, o.course.FilledAt = math.Min(o.course.Tokens, 1), o.now()
		return o.checkTerms()
	})
}

// changeOperation changes an operation; if somebody else changed it in between, it begins anew.
func (c *Client) changeOperation(ctx context.Context, id ID, act Act, change func(*Operation) error) (Operation, error) {
	if err := act.Check(); err != nil {
		return Operation{}, err
	}
	for {
		stored, err := c.Operation(ctx, id)
		if err != nil {
			return Operation{}, err
		}
		if err := change(&stored); err != nil {
			return Operation{}, fmt.Errorf("operation %s: %w", id, err)
		}
		saved, err := c.store.SaveOperation(ctx, stored, act)
		if err == nil {
			return saved, nil
		}
		if !errors.Is(err, ErrConflict) {
			return Operation{}, fmt.Errorf("change operation %s: %w", id, err)
		}
	}
}
