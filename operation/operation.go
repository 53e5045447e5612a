// Package operation acts on all jobs that match a query: upkeep requeues, cancels, reschedules or deletes them in batches, at
// a rate, and stops by itself if too many fail again. Begin with [Start]; [Read] tells how far an operation has come.
package operation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/search"
)

// Kind is what an operation does to the jobs that match.
type Kind string

// The kinds, each of which does what the verb of the same name does.
const (
	// KindRequeue gives dead, cancelled and uncertain jobs a new life; of dead letters it is called a redrive.
	KindRequeue Kind = "requeue"
	// KindCancel ends unfinished jobs.
	KindCancel Kind = "cancel"
	// KindReschedule changes when queued jobs are due.
	KindReschedule Kind = "reschedule"
	// KindDelete deletes dead and cancelled jobs.
	KindDelete Kind = "delete"
)

// State is where an operation is.
type State string

// The states. The last three are final.
const (
	// StateRunning: whoever leads upkeep carries it out.
	StateRunning State = "running"
	// StatePaused: a person paused it; it goes on where it was.
	StatePaused State = "paused"
	// StateDone: no job is left that matches.
	StateDone State = "done"
	// StateStopped: a person stopped it, or too many jobs failed again.
	StateStopped State = "stopped"
	// StateFailed: it cannot be carried out.
	StateFailed State = "failed"
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return s == StateDone || s == StateStopped || s == StateFailed
}

// Operation is an act on all jobs that match a query, which upkeep carries out in steps, at a pace. It is kept in the store,
// and goes on whatever becomes of the program that began it. It acts on jobs that were there, and on lives that had ended,
// when it began; what comes later is left alone, so that a job that dies again is not sent round for ever.
type Operation struct {
	ID    sluice.ID    `json:"id"`
	Kind  Kind         `json:"kind"`
	Query search.Query `json:"query"`
	// DueAt is when jobs that are rescheduled are due. Zero: when the operation began.
	DueAt time.Time `json:"due_at,omitzero"`
	// Limit is on how many jobs it acts at the most; 0: all.
	Limit int `json:"limit,omitempty"`
	// Rate is on how many jobs it acts per second, by the store's clock; 0: as fast as upkeep can. What it could not use,
	// because nobody did upkeep, is not made up for, beyond one second's worth.
	Rate sluice.Rate `json:"rate,omitzero"`
	// Canary is how many jobs are requeued first, and waited for until each has ended; 0: none. At most MaxCanary.
	Canary int `json:"canary,omitempty"`
	// StopIfFailed is the share of the requeued jobs, 0 to 1, of which more may not fail again: of the canary, and after
	// it of the last 100 that were watched to their end, once that are 10. 0: it is not looked at; with a canary it is
	// DefaultStopIfFailed then.
	StopIfFailed float64 `json:"stop_if_failed,omitempty"`
	// By and Reason say who began it, and why; the audit of each job has them, too.
	By     string `json:"by"`
	Reason string `json:"reason"`

	State State `json:"state"`
	// Why says why it was paused or stopped, or has failed.
	Why string `json:"why,omitempty"`
	// CreatedAt is when it began; ChangedAt and ChangedBy tell of the last change of its state or its terms; UpdatedAt is
	// when its counts were last stored; EndedAt is zero while something is left to do. All by the store's clock.
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Version   int64     `json:"version"`

	// Expected is how many jobs matched before it began; ExpectedMore says that there were more, at which nobody looked.
	Expected     int  `json:"expected"`
	ExpectedMore bool `json:"expected_more,omitempty"`
	// Done jobs were acted on; Skipped ones had changed before it was their turn; Failed ones were refused, such as for a
	// key that another job holds. AtLeast: there may have been more.
	Done    int  `json:"done"`
	Skipped int  `json:"skipped"`
	Failed  int  `json:"failed"`
	AtLeast bool `json:"at_least,omitempty"`
	// Watching jobs were requeued and have not ended; WatchedEnded ended, of which WatchedFailed failed again.
	Watching      int `json:"watching,omitempty"`
	WatchedEnded  int `json:"watched_ended,omitempty"`
	WatchedFailed int `json:"watched_failed,omitempty"`

	// Now is the store's clock when it was read.
	Now time.Time `json:"-"`

	course   course
	readAt   time.Time // when it was read, by the clock of this process
	lookedAt time.Time // when watched jobs were last looked at, by the same
	carrier  string    // who carries it out here
}

// course is how far an operation has come, beyond what people are shown.
type course struct {
	Place search.Place `json:"place"`
	Found idList       `json:"found,omitempty"` // jobs that match, in the order of their turns
	// Batch numbers the batches, from 1. Under are the jobs of the present one: it was decided to act on them, and is not
	// known yet what became of that.
	Batch int64  `json:"batch"`
	Under idList `json:"under,omitempty"`
	Taken int    `json:"taken"`
	// Tokens are for how many jobs the pace has room, as of FilledAt.
	Tokens   float64   `json:"tokens"`
	FilledAt time.Time `json:"filled_at,omitzero"`
	// Proved says that the canary is over. Watched jobs are waited for; Verdicts has one sign for each of the last that
	// ended, `.` or `x` for one that failed.
	Proved   bool   `json:"proved,omitempty"`
	Watched  idList `json:"watched,omitempty"`
	Verdicts string `json:"verdicts,omitempty"`
	// LastAct is the act that stored this version, by which an answer that was lost is known again.
	LastAct sluice.ID `json:"last_act"`
}

// idList is written as one text, because it is written often.
type idList []sluice.ID

// MarshalText writes the ids behind each other, in base 64.
func (l idList) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 16*len(l))
	for _, id := range l {
		raw = append(raw, id[:]...)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads what MarshalText wrote.
func (l *idList) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(raw)%16 != 0 {
		return feature.Invalid("ids", "they are not what an operation stores")
	}
	*l = nil
	for ; len(raw) > 0; raw = raw[16:] {
		*l = append(*l, sluice.ID(raw[:16]))
	}
	return nil
}

// Bounds of an operation.
const (
	// MaxCanary is the largest canary.
	MaxCanary = 1000
	// DefaultStopIfFailed is the share of a canary that may fail again, if none is given.
	DefaultStopIfFailed = 0.1
)

// Filter chooses operations. The zero value chooses all.
type Filter struct {
	// Open ones have something left to do.
	Open bool
	// Before is the last id of the page before this one.
	Before sluice.ID
	// Limit is the size of a page, 1 to 10,000. Default 100.
	Limit int
}

// kinds says on which jobs a kind can act; the first of them, up to the number, if the query names none.
var kinds = map[Kind]struct {
	states []sluice.State
	usual  int
}{
	KindRequeue:    {[]sluice.State{sluice.StateDead, sluice.StateCancelled, sluice.StateUncertain}, 1},
	KindCancel:     {[]sluice.State{sluice.StateQueued, sluice.StateClaimed, sluice.StateDispatched}, 3},
	KindReschedule: {[]sluice.State{sluice.StateQueued}, 1},
	KindDelete:     {[]sluice.State{sluice.StateDead, sluice.StateCancelled}, 1},
}

// begin checks an operation, and fills in what it leaves open.
func (o *Operation) begin(act sluice.Act) error {
	kind, known := kinds[o.Kind]
	if !known {
		return feature.Invalid("kind", fmt.Sprintf("%.40q is none of requeue, cancel, reschedule and prune", o.Kind))
	}
	if err := o.Query.Check(); err != nil {
		return err
	}
	if len(o.Query.States) == 0 {
		o.Query.States = slices.Clone(kind.states[:kind.usual])
	}
	for _, state := range o.Query.States {
		if !slices.Contains(kind.states, state) {
			return feature.Invalid("states", fmt.Sprintf("a job that is %s cannot be acted on with %s", state, o.Kind))
		}
	}
	if o.Kind == KindRequeue && act.Reason == "" {
		return feature.Invalid("reason", "a requeue needs one; it is kept in the audit")
	}
	if len(act.Reason) > maxReason {
		return feature.Invalid("reason", fmt.Sprintf("it is longer than %d bytes", maxReason))
	}
	if o.Canary > 0 && o.StopIfFailed == 0 {
		o.StopIfFailed = DefaultStopIfFailed
	}
	if o.ID.IsZero() {
		o.ID = sluice.NewID()
	}
	o.By, o.Reason, o.State = act.By, act.Reason, StateRunning
	o.course.Tokens = 1
	return o.checkTerms()
}

// maxReason leaves room for the name of the operation in the reasons of its acts.
const maxReason = 900

// checkTerms says which rule the pace and the canary break.
func (o *Operation) checkTerms() error {
	switch {
	case o.Limit < 0:
		return feature.Invalid("limit", "it is negative")
	case !o.Rate.Fits() || !o.Rate.IsZero() && o.Rate.PerSecond() < 1.0/86400:
		return feature.Invalid("rate", fmt.Sprintf("%s is not one job a day or more", o.Rate))
	case o.Canary < 0 || o.Canary > MaxCanary:
		return feature.Invalid("canary", fmt.Sprintf("%d is not from 0 to %d", o.Canary, MaxCanary))
	case o.StopIfFailed < 0 || o.StopIfFailed > 1:
		return feature.Invalid("stop_if_failed", fmt.Sprintf("%g is not a share from 0 to 1", o.StopIfFailed))
	case o.Kind != KindRequeue && (o.Canary > 0 || o.StopIfFailed > 0):
		return feature.Invalid("canary", fmt.Sprintf("only requeued jobs run again and can be watched; this one is to %s", o.Kind))
	case o.Kind != KindReschedule && !o.DueAt.IsZero():
		return feature.Invalid("due_at", "it is for operations that reschedule")
	}
	return nil
}

// Left is how many jobs it is expected to act on yet.
func (o Operation) Left() int {
	expected := o.Expected
	if o.Limit > 0 {
		expected = min(expected, o.Limit)
	}
	return max(0, expected-o.Done-o.Skipped-o.Failed)
}

// ETA is how long it takes at the present pace until nothing is left; false: that cannot be said, because it does not run,
// waits for its canary, or has done nothing yet.
func (o Operation) ETA() (time.Duration, bool) {
	pace := o.Rate.PerSecond()
	if passed := o.now().Sub(o.CreatedAt).Seconds(); pace == 0 && passed > 0 {
		pace = float64(o.Done+o.Skipped+o.Failed) / passed
	}
	if o.State != StateRunning || o.OnProbation() || pace <= 0 {
		return 0, false
	}
	return time.Duration(float64(o.Left()) / pace * float64(time.Second)), true
}

// OnProbation reports whether its canary is not over.
func (o Operation) OnProbation() bool { return o.Canary > 0 && !o.course.Proved }

// now is the store's clock.
func (o Operation) now() time.Time { return o.Now.Add(time.Since(o.readAt)) }

// storedBody is an operation as stores keep it.
type storedBody struct {
	plain
	Course course `json:"course"`
}

type plain Operation

// Body is an operation as stores keep it, in one text.
func (o Operation) Body() (string, error) {
	text, err := json.Marshal(storedBody{plain(o), o.course})
	return string(text), err
}

// FromRow makes an operation of what a store keeps: its version, its body, and the store's clock.
func FromRow(version int64, body string, now time.Time) (Operation, error) {
	var kept storedBody
	if err := json.Unmarshal([]byte(body), &kept); err != nil {
		return Operation{}, fmt.Errorf("an operation is stored that cannot be read: %w", err)
	}
	o := Operation(kept.plain)
	o.Version, o.course, o.Now, o.readAt = version, kept.Course, now.UTC(), time.Now()
	return o, nil
}

// Stored is the operation as its next version, stored at an instant of the store's clock, and whether the audit is to be told:
// it is new, or its state or its terms have changed. Stores call it when they write an operation in place of another, nil
// if it is new.
func (o Operation) Stored(stored *Operation, at time.Time, act sluice.Act) (next Operation, told bool) {
	at = feature.Instant(at)
	o.Version++
	o.Now, o.UpdatedAt, o.readAt, o.course.LastAct = at, at, time.Now(), act.ID
	if stored == nil {
		o.CreatedAt, o.course.FilledAt = at, at
		o.Query.ThereAt = at
		if o.Kind == KindReschedule && o.DueAt.IsZero() {
			o.DueAt = at
		}
	}
	told = stored == nil || o.terms() != stored.terms()
	if told {
		o.ChangedAt, o.ChangedBy = at, act.By
	}
	if o.State.Ended() && len(o.course.Under) == 0 && o.EndedAt.IsZero() {
		o.EndedAt = at
	}
	return o, told
}

// IsOf reports whether this version was stored by an act: it was sent again, because its answer was lost.
func (o Operation) IsOf(act sluice.Act) bool { return !act.ID.IsZero() && o.course.LastAct == act.ID }

// terms are what the audit is told of.
func (o Operation) terms() string {
	return fmt.Sprint(o.State, o.Rate, o.Canary, o.StopIfFailed, o.Limit, o.Why)
}

// ForAudit gives what the audit keeps of an operation.
func (o Operation) ForAudit() map[string]any {
	told := map[string]any{
		"id": o.ID, "kind": o.Kind, "query": o.Query, "state": o.State, "rate": o.Rate.String(), "canary": o.Canary,
		"stop_if_failed": o.StopIfFailed, "limit": o.Limit, "done": o.Done, "skipped": o.Skipped, "failed": o.Failed,
	}
	if o.Why != "" {
		told["why"] = o.Why
	}
	return told
}

// Telling is the entry of the audit that tells of a change of an operation.
func (o Operation) Telling(stored *Operation, act sluice.Act) (sluice.AuditEntry, error) {
	entry := sluice.AuditEntry{
		Object: audit.ObjectOperation, Name: o.ID.String(), Event: audit.EventChange, Actor: act.By, Reason: act.Reason, ActID: act.ID,
	}
	var err error
	if stored != nil {
		if entry.Before, err = json.Marshal(stored.ForAudit()); err != nil {
			return entry, err
		}
	}
	entry.After, err = json.Marshal(o.ForAudit())
	return entry, err
}
