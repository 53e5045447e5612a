package schedule

import (
	"github.com/sluice-queue/sluice"
)

// Batch is the decisions of one transaction, as a store carries them out: it cancels, stores the jobs, takes over the
// receipts, and writes each After.
type Batch []*Decision

// Open lists the unfinished jobs of schedules, for one read of their states.
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

// Jobs lists the jobs to store, by the settings of their queues. An unknown queue has the defaults.
func (b Batch) Jobs(queues []sluice.Queue) (jobs []sluice.Insert) {
	byName := make(map[string]sluice.Queue, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
	}
	for _, d := range b {
		q := byName[d.After.Queue]
		for _, job := range d.Jobs {
			job.AuditFull, job.ByTenant = q.Settings.Audit == sluice.AuditFull, q.ByTenant
			jobs = append(jobs, job)
		}
	}
	return jobs
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
