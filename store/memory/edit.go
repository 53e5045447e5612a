package memory

import (
	"bytes"
	"container/heap"
	"context"
	"maps"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
)

// EditJob changes a queued job.
func (s *Store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	j := s.jobs[e.JobID]
	switch {
	case s.did(act, e.JobID):
		return nil
	case j == nil:
		return sluice.ErrNotFound
	case j.State != sluice.StateQueued:
		return notAllowed(audit.EventEdit, j)
	case edit.VersionOf(j.Job) != e.Version:
		return sluice.ErrConflict
	}
	entry := moveEntry(j, audit.EventEdit, j.State, act)
	entry.Before = e.AuditText(j.Job)
	s.leaveHeaps(j)
	e.Apply(&j.Job)
	j.Payload, j.Labels = bytes.Clone(j.Payload), maps.Clone(j.Labels)
	entry.After = e.AuditText(j.Job)
	s.add(entry)
	s.wait(j)
	s.signal(sluice.Signal{Queue: j.Queue})
	return nil
}

// leaveHeaps removes the entries of a job that is about to wait in another place.
func (s *Store) leaveHeaps(j *job) {
	l := s.backlog(j.Queue)
	heaps := []*dueHeap{&l.waiting[j.Priority]}
	if lane := l.parked[j.LimitKey]; lane != nil {
		heaps = append(heaps, &lane[j.Priority])
	}
	if n := l.tenantQueues[j.Tenant]; n != nil {
		heaps = append(heaps, &n.waiting[j.Priority])
	}
	for _, h := range heaps {
		*h = slices.DeleteFunc(*h, func(p place) bool { return p.id == j.ID })
		heap.Init(h)
	}
}
