package sluice

import (
	"context"
	"encoding/json"
	"time"
)

// missingEnqueuer and missingStore return their error from every verb.
type (
	missingEnqueuer struct{ err error }
	missingStore    struct{ missingEnqueuer }
)

// missing returns the error, for CheckGiven.
func (m missingEnqueuer) missing() error { return m.err }

func (m missingEnqueuer) Admit(context.Context, []string, Act) ([]error, error) { return nil, m.err }

func (m missingEnqueuer) Enqueue(context.Context, []Insert) ([]Receipt, error) { return nil, m.err }

func (m missingEnqueuer) Now(context.Context) (time.Time, error) { return time.Time{}, m.err }

func (m missingEnqueuer) Queues(context.Context, QueueFilter) ([]Queue, error) { return nil, m.err }

func (m missingStore) Attempts(context.Context, ID) ([]Attempt, error) { return nil, m.err }

func (m missingStore) Audit(context.Context, AuditFilter) ([]AuditEntry, error) { return nil, m.err }

func (m missingStore) Cancel(context.Context, []ID, Act) ([]error, error) { return nil, m.err }

func (m missingStore) Claim(context.Context, ClaimRequest) (Claimed, error) { return Claimed{}, m.err }
func (m missingStore) Close() error                                         { return m.err }
func (m missingStore) DeleteQueue(context.Context, string, Act) error       { return m.err }

func (m missingStore) Expire(context.Context, int, string) (int, error)  { return 0, m.err }
func (m missingStore) Flows(context.Context, int) ([]Flow, error)        { return nil, m.err }
func (m missingStore) Depth(context.Context, string, int) (Depth, error) { return Depth{}, m.err }

func (m missingStore) Job(context.Context, ID) (Job, error) { return Job{}, m.err }

func (m missingStore) Jobs(context.Context, JobFilter) (Page, error)          { return Page{}, m.err }
func (m missingStore) Repair(context.Context, string) (int, error)            { return 0, m.err }
func (m missingStore) AppendAudit(context.Context, []AuditEntry) error        { return m.err }
func (m missingStore) Prune(context.Context, string, int) (Pruned, error)     { return Pruned{}, m.err }
func (m missingStore) DeleteJobs(context.Context, []ID, Act) ([]error, error) { return nil, m.err }

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

func (m missingStore) Settle(context.Context, []Settlement) ([]error, error) { return nil, m.err }

func (m missingStore) RecordQueueChange(context.Context, Queue, Act) (Queue, error) {
	return Queue{}, m.err
}

func (m missingStore) Terminate(context.Context, []ID, Act) ([]error, error) { return nil, m.err }
func (m missingStore) NextDue(context.Context, []string) (map[string]time.Duration, error) {
	return nil, m.err
}
func (m missingStore) Watch(context.Context, func(Signal)) error { return m.err }
