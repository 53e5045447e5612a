package sluice

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// missingEnqueuer, missingStore and missingEngine answer every verb with their error.
type (
	missingEnqueuer struct{ err error }
	missingStore    struct{ missingEnqueuer }
	missingEngine   struct{ err error }
)

// missing gives the error, for CheckGiven.
func (m missingEnqueuer) missing() error { return m.err }

func (m missingEngine) missing() error { return m.err }

func (m missingEnqueuer) Admit(context.Context, []string, Act) ([]error, error) { return nil, m.err }

func (m missingEnqueuer) Enqueue(context.Context, []Insert) ([]Receipt, error) { return nil, m.err }

func (m missingEnqueuer) Now(context.Context) (time.Time, error) { return time.Time{}, m.err }

func (m missingEnqueuer) Queues(context.Context, QueueFilter) ([]Queue, error) { return nil, m.err }

func (m missingStore) Attempts(context.Context, ID) ([]Attempt, error) { return nil, m.err }

func (m missingStore) Audit(context.Context, AuditFilter) ([]AuditEntry, error) { return nil, m.err }
func (m missingStore) Beat(context.Context, Holder) error                       { return m.err }
func (m missingStore) Cancel(context.Context, []ID, Act) ([]error, error)       { return nil, m.err }

func (m missingStore) Claim(context.Context, ClaimRequest) (Claimed, error) { return Claimed{}, m.err }
func (m missingStore) Close() error                                         { return m.err }
func (m missingStore) DeleteQueue(context.Context, string, Act) error       { return m.err }
func (m missingStore) Depth(context.Context, string) (Depth, error)         { return Depth{}, m.err }

func (m missingStore) Dispatches(context.Context, DispatchFilter) ([]*Claim, error) {
	return nil, m.err
}
func (m missingStore) Expire(context.Context, int, string) (int, error)   { return 0, m.err }
func (m missingStore) Flows(context.Context, int) ([]Flow, error)         { return nil, m.err }
func (m missingStore) ForgetStrayRuns(context.Context, []StrayRun) error  { return m.err }
func (m missingStore) Glance(context.Context, string, int) (Depth, error) { return Depth{}, m.err }
func (m missingStore) Holders(context.Context) ([]Holder, error)          { return nil, m.err }
func (m missingStore) Intend(context.Context, []Intent) ([]error, error)  { return nil, m.err }
func (m missingStore) Job(context.Context, ID) (Job, error)               { return Job{}, m.err }
func (m missingStore) Jobs(context.Context, JobFilter) (Page, error)      { return Page{}, m.err }
func (m missingStore) Lead(context.Context, string, []string, time.Duration) ([]string, error) {
	return nil, m.err
}
func (m missingStore) Leads(context.Context) ([]Lead, error)                 { return nil, m.err }
func (m missingStore) Leave(context.Context, string) error                   { return m.err }
func (m missingStore) Mend(context.Context, string) (int, error)             { return 0, m.err }
func (m missingStore) Note(context.Context, []AuditEntry) error              { return m.err }
func (m missingStore) Prune(context.Context, string, int) (Pruned, error)    { return Pruned{}, m.err }
func (m missingStore) PruneJobs(context.Context, []ID, Act) ([]error, error) { return nil, m.err }
func (m missingStore) QueuePolicy(context.Context) (QueuePolicy, error)      { return QueuePolicy{}, m.err }

func (m missingStore) Recover(context.Context, string, int, string) (Recovered, error) {
	return Recovered{}, m.err
}
func (m missingStore) Renew(context.Context, []Renewal) ([]ID, error)      { return nil, m.err }
func (m missingStore) Requeue(context.Context, []ID, Act) ([]error, error) { return nil, m.err }
func (m missingStore) Reschedule(context.Context, []ID, time.Time, Act) ([]error, error) {
	return nil, m.err
}

func (m missingStore) Resolve(context.Context, []ID, State, Act) ([]error, error) { return nil, m.err }

func (m missingStore) SaveCheckpoint(context.Context, ID, Token, json.RawMessage) error { return m.err }

func (m missingStore) SaveQueue(context.Context, Queue, Act) (Queue, error) { return Queue{}, m.err }

func (m missingStore) SaveQueuePolicy(context.Context, QueuePolicy, Act) (QueuePolicy, error) {
	return QueuePolicy{}, m.err
}

func (m missingStore) Settle(context.Context, []Settlement) ([]error, error) { return nil, m.err }
func (m missingStore) StrayRuns(context.Context, string, StrayRun, int) ([]StrayRun, error) {
	return nil, m.err
}

func (m missingStore) TellQueue(context.Context, Queue, Act) (Queue, error) { return Queue{}, m.err }

func (m missingStore) Terminate(context.Context, []ID, Act) ([]error, error) { return nil, m.err }
func (m missingStore) Look(context.Context, []string) (map[string]time.Duration, error) {
	return nil, m.err
}
func (m missingStore) Watch(context.Context, func(Signal)) error { return m.err }

func (m missingEngine) Check(context.Context, RunTarget) (EngineReport, error) {
	return EngineReport{}, m.err
}

func (m missingEngine) Ended(context.Context, RunTarget, time.Time, []byte) (RunPage, error) {
	return RunPage{}, m.err
}

func (m missingEngine) Outcomes(context.Context, RunTarget, []string) ([]RunOutcome, error) {
	return nil, m.err
}

func (m missingEngine) Start(_ context.Context, _ RunTarget, runs []Run) []error {
	return slices.Repeat([]error{m.err}, len(runs))
}

func (m missingEngine) Cancel(_ context.Context, _ RunTarget, refs []string, _ string) []error {
	return slices.Repeat([]error{m.err}, len(refs))
}
