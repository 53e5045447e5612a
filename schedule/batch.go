package schedule

import (
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Batch is the decisions of one transaction, as a store carries them out: it cancels, stores the jobs, takes over the
// receipts, and writes each After.
type Batch []*Decision

// Open lists what Open of each schedule lists, for one read of the states.
func Open(schedules []Schedule) (ids []sluice.ID) {
	for _, s := range schedules {
		ids = append(ids, s.Open()...)
	}
	return ids
}

// Queues lists the queues of the jobs, each once.
func (b Batch) Queues() (names []string) {
	seen := make(map[string]bool)
	for _, d := range b {
		if len(d.Jobs) > 0 && !seen[d.After.Queue] {
			seen[d.After.Queue] = true
			names = append(names, d.After.Queue)
		}
	}
	return names
}

// Cancel lists the jobs to cancel.
func (b Batch) Cancel() (ids []sluice.ID) {
	for _, d := range b {
		ids = append(ids, d.Cancel...)
	}
	return ids
}

// CancelAct is the act that cancels a job because its schedule fires again.
func CancelAct() sluice.Act { return upkeepAct("its schedule fires again") }

// Rules are the rules by which queues take jobs.
type Rules struct {
	// Queues are the queues of the jobs. A queue that is not stored has no rules.
	Queues []sluice.Queue
	// Checker compares payloads with payload_schema. Nil: only workers do.
	Checker sluice.PayloadChecker
	// Enter reserves room for a job in a queue that limits its waiting jobs.
	Enter func(job sluice.Insert) error
}

// Jobs lists the jobs that their queues take, by the settings of the queues. A job that its queue does not take leaves the
// batch, and its fire is [Refused]. If a person asked for the fire, Jobs returns the reason instead, except that a list of
// instants goes on without those for which a full queue has no room.
func (b Batch) Jobs(rules Rules) (jobs []sluice.Insert, err error) {
	byName := make(map[string]*sluice.Queue, len(rules.Queues))
	for i := range rules.Queues {
		byName[rules.Queues[i].Name] = &rules.Queues[i]
	}
	for _, d := range b {
		q := byName[d.After.Queue]
		refused := make(map[int]error)
		for k := range d.Jobs {
			if q == nil {
				break
			}
			reason, err := rules.refusal(*q, &d.Jobs[k])
			switch {
			case err != nil:
				return nil, err
			case reason != nil && d.Hand != nil && !d.waits(reason):
				return nil, reason
			case reason != nil:
				refused[k] = reason
			}
		}
		if len(refused) > 0 {
			d.refuse(refused)
		}
		jobs = append(jobs, d.Jobs...)
	}
	return jobs, nil
}

// refusal fills in what the settings of a queue say of a job, and returns why the queue does not take the job. Err is an
// error of the store.
func (r Rules) refusal(q sluice.Queue, job *sluice.Insert) (reason, err error) {
	of := &q.Settings
	job.AuditFull, job.ByTenant = of.Audit == sluice.AuditFull, q.ByTenant
	job.MaxWaiting, job.TenantMaxWaiting, job.Shed = of.MaxWaiting, of.TenantMaxWaiting, of.Shed
	if reason := checkPayload(q, job.Payload, r.Checker); reason != nil {
		return reason, nil
	}
	err = r.Enter(*job)
	var full *sluice.BatchError
	if errors.As(err, &full) {
		return full.Failed[0], nil
	}
	return nil, err
}

// checkPayload returns the rule of a queue that a payload breaks.
func checkPayload(q sluice.Queue, payload []byte, checker sluice.PayloadChecker) error {
	if limit := q.Settings.PayloadLimit; len(payload) > limit {
		return feature.Invalid("payload", fmt.Sprintf("%d bytes are more than the payload_limit of queue %q, %d", len(payload), q.Name, limit))
	}
	if checker == nil {
		return nil
	}
	return sluice.CheckSchema(checker, q, payload)
}

// Receive takes over the receipts of Jobs, in their order.
func (b Batch) Receive(receipts []sluice.Receipt) {
	for _, d := range b {
		d.Receive(receipts[:len(d.Jobs)])
		receipts = receipts[len(d.Jobs):]
	}
}

// Fired counts what the decisions have done.
func (b Batch) Fired() (f Fired) {
	for _, d := range b {
		f.add(*d)
	}
	return f
}
