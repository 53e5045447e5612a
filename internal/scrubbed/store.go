package scrubbed

import (
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/safe"
)

// Store gives a store whose holder's texts are scrubbed before they are stored: errors, stacks and reasons of
// settlements, reasons in the audit, what troubles a holder, why an operation ended, and why nobody could be told of alerts.
// A panic of the store is an error of the call, because holders call it in goroutines of their own.
func Store(store sluice.Store, clean func(string) string) sluice.Store {
	inner := safe.Store(store)
	return &scrubbing{inner, alert.Given(inner), Text(clean)}
}

type scrubbing struct {
	sluice.Store
	alerts
	clean func(string) string
}

type alerts = alert.Store // its name keeps it apart from the other port

// Unwrap gives the store that is decorated.
func (s *scrubbing) Unwrap() sluice.Store { return s.Store }

// Settle scrubs what tells of failures. Batches without any, which are nearly all, are handed on as they are.
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

// Note scrubs reasons.
func (s *scrubbing) Note(ctx context.Context, entries []sluice.AuditEntry) error {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Reason = s.clean(entries[i].Reason)
	}
	return s.Store.Note(ctx, entries)
}

// Beat scrubs what troubles the holder.
func (s *scrubbing) Beat(ctx context.Context, holder sluice.Holder) error {
	holder.Conditions = slices.Clone(holder.Conditions)
	for i := range holder.Conditions {
		holder.Conditions[i].Text = s.clean(holder.Conditions[i].Text)
	}
	return s.Store.Beat(ctx, holder)
}

// SaveOperation scrubs why it was paused or stopped, or has failed.
func (s *scrubbing) SaveOperation(ctx context.Context, operation sluice.Operation, act sluice.Act) (sluice.Operation, error) {
	operation.Why = s.clean(operation.Why)
	return s.Store.SaveOperation(ctx, operation, act)
}

// SettleNotices scrubs why receivers of alerts could not be told.
func (s *scrubbing) SettleNotices(ctx context.Context, results []alert.NoticeResult) error {
	results = slices.Clone(results)
	for i := range results {
		results[i].Error = s.clean(results[i].Error)
	}
	return s.alerts.SettleNotices(ctx, results)
}
