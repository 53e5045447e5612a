package memory

import (
	"bytes"
	"context"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// tell adds a job's move to the audit.
func (s *Store) tell(j *job, event sluice.Event, from sluice.State, act sluice.Act) {
	entry := moveEntry(j, event, from, act)
	if event == sluice.EventClaim {
		entry.At = j.ClaimedAt
	}
	s.add(entry)
}

// moveEntry makes the audit entry of a move.
func moveEntry(j *job, event sluice.Event, from sluice.State, act sluice.Act) sluice.AuditEntry {
	return sluice.AuditEntry{
		Object: audit.ObjectJob, Name: j.Queue, Event: event, JobID: j.ID, Generation: j.Generation,
		From: from, To: j.State, Actor: act.By, Reason: act.Reason, ActID: act.ID,
	}
}

// tellLost audits a write that the store refused because its token is not the job's.
func (s *Store) tellLost(id sluice.ID, j *job, verb, holder string) {
	entry := sluice.AuditEntry{Object: audit.ObjectJob, Event: audit.EventLost, JobID: id, Actor: holder, Reason: "refused: " + verb}
	if j != nil {
		entry.Name, entry.Generation, entry.From, entry.To = j.Queue, j.Generation, j.State, j.State
	}
	s.add(entry)
}

func (s *Store) add(entry sluice.AuditEntry) {
	s.chain.next++
	entry.Seq = s.chain.next
	if entry.At.IsZero() {
		entry.At = s.now()
	}
	s.audit = append(s.audit, entry)
	if !entry.ActID.IsZero() {
		s.acts[actOn{entry.ActID, entry.JobID}] = true
	}
}

// AppendAudit adds entries to the audit that record no move.
func (s *Store) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	for _, entry := range entries {
		if err := entry.CheckAppended(); err != nil {
			return err
		}
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, entry := range entries {
		entry.At = s.now()
		entry.Before, entry.After = bytes.Clone(entry.Before), bytes.Clone(entry.After)
		s.add(entry)
	}
	return nil
}

// did reports whether an act was already done on a job.
func (s *Store) did(act sluice.Act, id sluice.ID) bool { return s.acts[actOn{act.ID, id}] }

// Audit lists audit entries, newest first.
func (s *Store) Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []sluice.AuditEntry
	for i := len(s.audit) - 1; i >= 0 && len(out) < filter.Limit; i-- {
		e := s.audit[i]
		if e.Seq <= filter.After {
			break
		}
		if filter.Actor != "" && e.Actor != filter.Actor && !strings.HasPrefix(e.Actor, filter.Actor+" ") || filter.Event != "" && e.Event != filter.Event {
			continue
		}
		if filter.Object != "" && e.Object != filter.Object || filter.Name != "" && e.Name != filter.Name ||
			!filter.JobID.IsZero() && e.JobID != filter.JobID || filter.Before > 0 && e.Seq >= filter.Before {
			continue
		}
		out = append(out, e)
	}
	return out, nil
}
