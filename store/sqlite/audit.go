package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

//go:embed sql/tell.sql
var tellSQL string

//go:embed sql/audit.sql
var auditSQL string

//go:embed sql/audit_job.sql
var auditJobSQL string

//go:embed sql/audit_changes.sql
var auditChangesSQL string

//go:embed sql/audit_object.sql
var auditObjectSQL string

// tell adds an entry to the audit. An entry without a time gets the current one.
func tell(tx runner, e sluice.AuditEntry) error {
	at := now()
	if !e.At.IsZero() {
		at = e.At.UnixMicro()
	}
	_, err := tx.exec(tellSQL, at, e.Actor, string(e.Object), e.Name, string(e.Event), nullID(e.JobID), e.Generation, string(e.From),
		string(e.To), e.Reason, nullText(string(e.Before)), nullText(string(e.After)), nullID(e.ActID))
	return err
}

// moveEntry makes the audit entry of a move.
func moveEntry(id sluice.ID, queue string, generation int, event sluice.Event, from sluice.State, act sluice.Act) sluice.AuditEntry {
	return sluice.AuditEntry{
		Object: audit.ObjectJob, Name: queue, Event: event, JobID: id, Generation: generation, From: from,
		To: sluice.MoveOf(event).To, Actor: act.By, Reason: act.Reason, ActID: act.ID,
	}
}

// tellMove audits a move if it is notable, or if its queue audits every move.
func tellMove(tx runner, row held, event sluice.Event, act sluice.Act) error {
	if !event.Notable() {
		queue, err := gateOf(tx, row.queue)
		if err != nil || !queue.auditFull {
			return err
		}
	}
	return tell(tx, moveEntry(row.id, row.queue, row.generation, event, row.state, act))
}

// tellLost audits a write that the store refused because its token is not the job's.
func tellLost(tx runner, at standing, verb, holder string) error {
	return tell(tx, sluice.AuditEntry{
		Object: audit.ObjectJob, Name: at.queue, Event: audit.EventLost, JobID: at.id, Generation: at.generation,
		From: at.state, To: at.state, Actor: holder, Reason: "refused: " + verb,
	})
}

// Audit lists audit entries, newest first.
func (s *Store) Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error) {
	text := auditSQL
	switch {
	case filter.JobID.IsZero() && filter.Object != "" && filter.Name != "" && filter.Event == audit.EventChange:
		return s.auditChanges(ctx, filter)
	case !filter.JobID.IsZero():
		text = auditJobSQL
	case filter.Object != "" && filter.Object != audit.ObjectJob && filter.Name != "":
		text = auditObjectSQL
	}
	job := []byte{}
	if !filter.JobID.IsZero() {
		job = filter.JobID[:]
	}
	var out []sluice.AuditEntry
	err := s.read(ctx, "read audit", func(tx runner) (err error) {
		out, err = list(tx, scanAudit, text, string(filter.Object), filter.Name, job, filter.Before, cmp.Or(filter.Limit, 100), filter.Actor, string(filter.Event), filter.After)
		return err
	})
	return out, err
}

// auditChanges lists the changes of one object.
func (s *Store) auditChanges(ctx context.Context, filter sluice.AuditFilter) (out []sluice.AuditEntry, err error) {
	err = s.read(ctx, "read audit", func(tx runner) (err error) {
		out, err = list(tx, scanAudit, auditChangesSQL, string(filter.Object), filter.Name, filter.Before, cmp.Or(filter.Limit, 100), filter.Actor, filter.After)
		return err
	})
	return out, err
}

func scanAudit(rows *sql.Rows) (sluice.AuditEntry, error) {
	var e sluice.AuditEntry
	var at int64
	var object, event, from, to string
	var job, act []byte
	var before, after *string
	err := rows.Scan(&e.Seq, &at, &e.Actor, &object, &e.Name, &event, &job, &e.Generation, &from, &to, &e.Reason, &before, &after, &act)
	e.At, e.JobID, e.ActID = time.UnixMicro(at).UTC(), idOf(job), idOf(act)
	e.Object, e.Event, e.From, e.To = sluice.Object(object), sluice.Event(event), sluice.State(from), sluice.State(to)
	if before != nil {
		e.Before = json.RawMessage(*before)
	}
	if after != nil {
		e.After = json.RawMessage(*after)
	}
	return e, err
}
