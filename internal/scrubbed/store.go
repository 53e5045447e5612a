package scrubbed

import (
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
)

// Store returns a store that scrubs a holder's texts before it stores them. These are errors,
// stacks and reasons of settlements, reasons in the audit, conditions of a holder, reasons of
// operations, and errors of notifications. A panic of the store becomes an error of the call,
// because holders call it from their own goroutines.
func Store(store sluice.Store, clean func(string) string) sluice.Store {
	inner := safe.Store(store)
	return &scrubbing{inner, alert.Given(inner), operation.Given(inner), presence.Given(inner), Text(clean)}
}

type scrubbing struct {
	sluice.Store
	alerts
	operations
	processes
	clean func(string) string
}

// Distinct names keep the embedded ports apart.
type (
	alerts     = alert.Store
	operations = operation.Store
	processes  = presence.Store
)

// Unwrap returns the inner store.
func (s *scrubbing) Unwrap() sluice.Store { return s.Store }

// Settle scrubs the texts of failures. Batches without failures, which are nearly all, pass
// unchanged.
func (s *scrubbing) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	copied := false
	for i, one := range settlements {
		if one.Error == "" && one.Stack == "" && one.Reason == "" {
			continue
		}
		if !copied {
			settlements, copied = slices.Clone(settlements), true
		}
		one.Error, one.Stack, one.Reason = s.clean(one.Error), s.clean(one.Stack), s.clean(one.Reason)
		settlements[i] = one
	}
	return s.Store.Settle(ctx, settlements)
}

// AppendAudit scrubs reasons.
func (s *scrubbing) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Reason = s.clean(entries[i].Reason)
	}
	return s.Store.AppendAudit(ctx, entries)
}

// Heartbeat scrubs the conditions of the holder, and the reason of the instruction, which the holder logs.
func (s *scrubbing) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	holder.Conditions = slices.Clone(holder.Conditions)
	for i := range holder.Conditions {
		holder.Conditions[i].Text = s.clean(holder.Conditions[i].Text)
	}
	told, err := s.processes.Heartbeat(ctx, holder)
	told.Reason = s.clean(told.Reason)
	return told, err
}

// SaveOperation scrubs the reason why the operation was paused or stopped, or has failed.
func (s *scrubbing) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	op.Why = s.clean(op.Why)
	return s.operations.SaveOperation(ctx, op, act)
}
