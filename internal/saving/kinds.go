package saving

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/storing"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/tenancy"
)

// Tenants, Tiers, Limits, NamedLimits, Policies, Rules and Notes are kinds whose audit entries are their content, before and after.
var (
	Tenants = plain(plainKind[tenancy.Tenant]{
		object:  func(tenancy.Tenant) sluice.Object { return audit.ObjectTenant },
		name:    func(t tenancy.Tenant) string { return t.Name },
		last:    func(t *tenancy.Tenant) last { return last{&t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason} },
		content: func(t tenancy.Tenant) any { return map[string]string{"tier": t.Tier} },
	})
	Tiers = plain(plainKind[tenancy.Tier]{
		object:  func(tenancy.Tier) sluice.Object { return audit.ObjectTier },
		name:    func(t tenancy.Tier) string { return t.Name },
		last:    func(t *tenancy.Tier) last { return last{&t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason} },
		content: func(tenancy.Tier) any { return map[string]string{} },
	})
	Limits = plain(plainKind[tenancy.Limits]{
		object:  tenancy.Limits.Object,
		name:    tenancy.Limits.Name,
		last:    func(l *tenancy.Limits) last { return last{&l.Version, &l.ChangedAt, &l.ChangedBy, &l.Reason} },
		content: func(l tenancy.Limits) any { return l },
	})
	NamedLimits = plain(plainKind[limit.Limit]{
		object:  func(limit.Limit) sluice.Object { return audit.ObjectLimit },
		name:    func(l limit.Limit) string { return l.Name },
		last:    func(l *limit.Limit) last { return last{&l.Version, &l.ChangedAt, &l.ChangedBy, &l.Reason} },
		content: func(l limit.Limit) any { return l },
	})
	Policies = plain(plainKind[admission.Policy]{
		object:  func(admission.Policy) sluice.Object { return audit.ObjectPolicy },
		name:    func(admission.Policy) string { return "queues" },
		last:    func(p *admission.Policy) last { return last{&p.Version, &p.ChangedAt, &p.ChangedBy, &p.Reason} },
		content: func(p admission.Policy) any { return p.ForAudit() },
		keep: func(p *admission.Policy, stored *admission.Policy) {
			if stored != nil {
				p.Stored = stored.Stored
			}
		},
	})
	Rules = plain(plainKind[alert.Rule]{
		object:  func(alert.Rule) sluice.Object { return audit.ObjectAlert },
		name:    alert.Rule.Object,
		last:    func(r *alert.Rule) last { return last{&r.Version, &r.ChangedAt, &r.ChangedBy, &r.Reason} },
		content: func(r alert.Rule) any { return r },
		keep:    func(r *alert.Rule, _ *alert.Rule) { r.Source = "" },
	})
	Notes = plain(plainKind[deadletter.Note]{
		object:  func(deadletter.Note) sluice.Object { return audit.ObjectNote },
		name:    func(n deadletter.Note) string { return n.Fingerprint },
		last:    func(n *deadletter.Note) last { return last{&n.Version, &n.ChangedAt, &n.ChangedBy, &n.Reason} },
		content: deadletter.Note.ForAudit,
	})
)

// Queues is the kind of queues with their settings and scheduled changes.
var Queues = Kind[sluice.Queue]{
	Object:  func(sluice.Queue) sluice.Object { return audit.ObjectQueue },
	Name:    func(q sluice.Queue) string { return q.Name },
	Version: func(q sluice.Queue) int64 { return q.Version },
	Next: func(q sluice.Queue, _ *sluice.Queue, at time.Time, act sluice.Act) sluice.Queue {
		return q.Stored(at, act)
	},
	Entries: func(stored *sluice.Queue, next sluice.Queue, act sluice.Act) ([]sluice.AuditEntry, error) {
		var entries []sluice.AuditEntry
		for _, c := range storing.QueueChanges(stored, next, act) {
			e, err := Change(audit.ObjectQueue, next.Name, c.Before, c.After, c.Act)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
		return entries, nil
	},
}

// QueueRecords is the kind of stored queues whose settings were changed by plain SQL. Stores record such a change in the audit.
var QueueRecords = func() Kind[sluice.Queue] {
	k := Queues
	k.OnlyStored = true
	k.Next = func(q sluice.Queue, stored *sluice.Queue, at time.Time, act sluice.Act) sluice.Queue {
		next := q.Stored(at, act)
		next.Wrong = stored.Wrong // stored values that make no sense still make none
		return next
	}
	k.Entries = func(stored *sluice.Queue, next sluice.Queue, act sluice.Act) ([]sluice.AuditEntry, error) {
		return one(Change(audit.ObjectQueue, next.Name, stored.RecordedForAudit(), next.ForAudit(), act))
	}
	return k
}()

// Schedules is the kind of schedules. A save keeps their progress.
var Schedules = func() Kind[schedule.Schedule] {
	k := plain(plainKind[schedule.Schedule]{
		object:  func(schedule.Schedule) sluice.Object { return audit.ObjectSchedule },
		name:    func(s schedule.Schedule) string { return s.Name },
		last:    func(s *schedule.Schedule) last { return last{&s.Version, &s.ChangedAt, &s.ChangedBy, &s.Reason} },
		content: schedule.Schedule.ForAudit,
	})
	k.Next = schedule.Schedule.Stored
	return k
}()

// AccessTokens is the kind of tokens of the HTTP API. A save keeps their last use.
var AccessTokens = func() Kind[access.Token] {
	k := plain(plainKind[access.Token]{
		object:  func(access.Token) sluice.Object { return audit.ObjectToken },
		name:    func(t access.Token) string { return t.Name },
		last:    func(t *access.Token) last { return last{&t.Version, &t.ChangedAt, &t.ChangedBy, &t.Reason} },
		content: access.Token.ForAudit,
	})
	k.Next = access.Token.Stored
	return k
}()

// Operations is the kind of operations. An operation keeps the last act itself, because the audit lacks its steps.
var Operations = Kind[operation.Operation]{
	Object:  func(operation.Operation) sluice.Object { return audit.ObjectOperation },
	Name:    func(o operation.Operation) string { return o.ID.String() },
	Version: func(o operation.Operation) int64 { return o.Version },
	Next:    operation.Operation.Stored,
	Entries: func(stored *operation.Operation, next operation.Operation, act sluice.Act) ([]sluice.AuditEntry, error) {
		if !next.Audited(stored) {
			return nil, nil
		}
		var before any
		if stored != nil {
			before = stored.ForAudit()
		}
		return one(Change(audit.ObjectOperation, next.ID.String(), before, next.ForAudit(), act))
	},
	Did: operation.Operation.IsOf,
}

// Instructions is the kind of instructions to processes. Newest is when the newest of all was given; the next one is later,
// also if the clock was set back since.
func Instructions(newest *time.Time) Kind[presence.Instruction] {
	return Kind[presence.Instruction]{
		Object:  func(presence.Instruction) sluice.Object { return audit.ObjectHolder },
		Name:    func(i presence.Instruction) string { return i.Target.String() },
		Version: func(i presence.Instruction) int64 { return i.Version },
		Next: func(i presence.Instruction, _ *presence.Instruction, at time.Time, act sluice.Act) presence.Instruction {
			if !at.After(*newest) {
				at = newest.Add(time.Microsecond)
			}
			i.Version++
			i.ChangedAt, i.ChangedBy, i.Reason, i.ActID = at.UTC(), act.By, act.Reason, act.ID
			return i
		},
		Entries: func(stored *presence.Instruction, next presence.Instruction, act sluice.Act) ([]sluice.AuditEntry, error) {
			var before any
			if stored != nil {
				before = instructed(*stored)
			}
			return one(Change(audit.ObjectHolder, next.Target.String(), before, instructed(next), act))
		},
		Did: func(i presence.Instruction, act sluice.Act) bool { return i.ActID == act.ID },
	}
}

// instructed returns an instruction as the audit keeps it.
func instructed(i presence.Instruction) any {
	return struct {
		Wanted presence.Wanted `json:"wanted"`
		Until  time.Time       `json:"until,omitzero"`
	}{i.Wanted, i.Until}
}

// Silences is the kind of silences. A silence never changes, so its ID alone tells that it is stored.
var Silences = Kind[alert.Silence]{
	Object:  func(alert.Silence) sluice.Object { return audit.ObjectAlert },
	Name:    alert.Silence.Name,
	Version: func(alert.Silence) int64 { return 0 },
	Next: func(s alert.Silence, _ *alert.Silence, at time.Time, act sluice.Act) alert.Silence {
		s.CreatedAt, s.By, s.Reason = at, act.By, act.Reason
		s.Until, s.During = at.Add(s.During.Truncate(time.Microsecond)), 0
		return s
	},
	Entries: func(_ *alert.Silence, next alert.Silence, act sluice.Act) ([]sluice.AuditEntry, error) {
		e, err := Change(audit.ObjectAlert, next.Name(), nil, next, act)
		e.Event = audit.EventSilence
		return one(e, err)
	},
	Did: func(alert.Silence, sluice.Act) bool { return true },
}

func one(entry sluice.AuditEntry, err error) ([]sluice.AuditEntry, error) {
	return []sluice.AuditEntry{entry}, err
}

// plainKind has the parts in which one kind differs from others.
type plainKind[T any] struct {
	object  func(T) sluice.Object
	name    func(T) string
	last    func(*T) last
	content func(T) any
	// keep sets fields of the next version that do not come from the caller. Nil: there are none.
	keep func(next, stored *T)
}

// last points to the fields of a thing that describe its last change.
type last struct {
	version *int64
	at      *time.Time
	by      *string
	reason  *string
}

func plain[T any](p plainKind[T]) Kind[T] {
	return Kind[T]{
		Object: p.object, Name: p.name,
		Version: func(thing T) int64 { return *p.last(&thing).version },
		Next: func(thing T, stored *T, at time.Time, act sluice.Act) T {
			if p.keep != nil {
				p.keep(&thing, stored)
			}
			l := p.last(&thing)
			*l.version++
			*l.at, *l.by, *l.reason = at, act.By, act.Reason
			return thing
		},
		Entries: func(stored *T, next T, act sluice.Act) ([]sluice.AuditEntry, error) {
			var before any
			if stored != nil {
				before = p.content(*stored)
			}
			return one(Change(p.object(next), p.name(next), before, p.content(next), act))
		},
	}
}
