// Package operation acts on all jobs that match a query. Upkeep requeues, cancels, reschedules, edits, deletes, holds or
// releases them in batches, at a rate, and stops by itself if too many fail again. A backfill makes the jobs of a
// schedule's past fires in the same way.
//
// Begin with [Start]. [Read] returns the progress of an operation; [Pause], [Resume], [Stop] and [SetRate] control
// it.
//
// Read next: docs/guide/operations.md. Package search previews the jobs that a query chooses.
package operation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/search"
)

// Kind is the act of an operation on each job.
type Kind string

// The kinds. The first four do the same as the methods of [sluice.Client] with their names.
const (
	// KindRequeue gives dead, cancelled and uncertain jobs a new life. A requeue of dead letters is called a
	// redrive.
	KindRequeue Kind = "requeue"
	// KindCancel cancels queued, claimed and dispatched jobs.
	KindCancel Kind = "cancel"
	// KindReschedule changes the due time of queued jobs.
	KindReschedule Kind = "reschedule"
	// KindDelete deletes dead and cancelled jobs.
	KindDelete Kind = "delete"
	// KindHold holds queued jobs, and KindRelease releases held jobs, as [hold.Hold] and [hold.Release] do.
	KindHold    Kind = "hold"
	KindRelease Kind = "release"
	// KindEdit changes the priority, the tenant or the due time of queued jobs, of each by itself; see [Edit].
	KindEdit Kind = "edit"
	// KindBackfill makes the jobs of a schedule's fires in a range of time. It has no query.
	KindBackfill Kind = "backfill"
)

// Backfill is the range of a [KindBackfill].
type Backfill struct {
	// Schedule is the name of the schedule. The operation makes the jobs of its present definition, also if it is paused.
	Schedule string `json:"schedule"`
	// From and To bound the instants, both included.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// State is where an operation is in its life.
type State string

// The states. The last three are final.
const (
	// StateRunning: the leader of upkeep carries the operation out.
	StateRunning State = "running"
	// StatePaused: a person paused the operation. Resume lets it go on.
	StatePaused State = "paused"
	// StateDone: no matching job is left, or Limit is reached.
	StateDone State = "done"
	// StateStopped: a person stopped it, or too many jobs failed again.
	StateStopped State = "stopped"
	// StateFailed: upkeep cannot carry the operation out; Why says the reason.
	StateFailed State = "failed"
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return s == StateDone || s == StateStopped || s == StateFailed
}

// Operation is an act on all jobs that match a query. Upkeep carries it out in steps, at a rate. It lives in the
// store, and goes on after the program that started it ends.
//
// It acts on jobs that existed, and on lives that had ended, when it began. It ignores later ones, so a job that
// dies again is not requeued for ever.
type Operation struct {
	// ID names the operation, Kind is its act, and Query chooses its jobs.
	ID    sluice.ID    `json:"id"`
	Kind  Kind         `json:"kind"`
	Query search.Query `json:"query"`
	// Backfill says which fires a backfill makes up for. Nil for other kinds.
	Backfill *Backfill `json:"backfill,omitempty"`
	// DueAt is the new due time of rescheduled jobs. Default: when the operation began.
	DueAt time.Time `json:"due_at,omitzero"`
	// Edit is what an edit changes. Nil for other kinds.
	Edit *Edit `json:"edit,omitempty"`
	// Limit is the most jobs to act on. 0: all.
	Limit int `json:"limit,omitempty"`
	// Rate is how many jobs to act on per time, by the store's clock. 0: as fast as upkeep can. After a time
	// without upkeep, the operation catches up for at most 1 s.
	Rate sluice.Rate `json:"rate,omitzero"`
	// Canary is how many jobs to requeue first, at most [MaxCanary]. The operation goes on when each of them has
	// ended. Default: 0, no canary.
	Canary int `json:"canary,omitempty"`
	// StopIfFailed is the greatest share of requeued jobs, 0 to 1, that may fail again. If more fail, the operation
	// stops. Default: 0, no check; with a canary [DefaultStopIfFailed].
	//
	// The share is of the canary, and afterwards of the last 100 watched jobs that ended, once there are 10.
	StopIfFailed float64 `json:"stop_if_failed,omitempty"`
	// By and Reason say who started the operation, and why. The audit entries of the jobs have them too.
	By     string `json:"by"`
	Reason string `json:"reason"`

	// State is where the operation is in its life.
	State State `json:"state"`
	// Why says why the operation is paused, stopped or failed.
	Why string `json:"why,omitempty"`
	// CreatedAt is when the operation began. ChangedAt and ChangedBy describe the last change of its state or
	// terms. UpdatedAt is when a store last stored its counts. EndedAt is when it ended; zero: not yet. All times
	// are by the store's clock.
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Version   int64     `json:"version"`

	// Expected is how many jobs matched before the start. ExpectedMore says that the preview left other jobs
	// uncounted.
	Expected     int  `json:"expected"`
	ExpectedMore bool `json:"expected_more,omitempty"`
	// Done counts jobs that the operation acted on. Skipped counts jobs that had changed before their turn, and fires
	// that had their jobs. Failed counts jobs that the store refused, for example because another job has the key. AtLeast says that the true
	// counts may be higher.
	Done    int  `json:"done"`
	Skipped int  `json:"skipped"`
	Failed  int  `json:"failed"`
	AtLeast bool `json:"at_least,omitempty"`
	// Watching counts requeued jobs that have not ended. WatchedEnded counts watched jobs that ended. WatchedFailed
	// counts watched jobs that failed again.
	Watching      int `json:"watching,omitempty"`
	WatchedEnded  int `json:"watched_ended,omitempty"`
	WatchedFailed int `json:"watched_failed,omitempty"`

	// Now is the store's clock when the store read the operation.
	Now time.Time `json:"-"`

	course   course
	readAt   time.Time // when the store read it, by the clock of this process
	lookedAt time.Time // when watch last looked at jobs, by the same clock
	carrier  string    // the process that carries the operation out here
	checker  sluice.PayloadChecker
}

// course is the progress of an operation beyond the figures that people see.
type course struct {
	Place search.Place `json:"place"`
	// Through is the last instant that a backfill has found. In place of jobs it has instants; see instantID.
	Through time.Time `json:"through,omitzero"`
	Found   idList    `json:"found,omitempty"` // matching jobs, in the order of their turns
	// Batch numbers the batches, from 1. Under are the jobs of the present batch, whose outcome is not known yet.
	Batch int64  `json:"batch"`
	Under idList `json:"under,omitempty"`
	Taken int    `json:"taken"`
	// Tokens is how many jobs the rate allows, as of FilledAt.
	Tokens   float64   `json:"tokens"`
	FilledAt time.Time `json:"filled_at,omitzero"`
	// Proved says that the canary has ended well. Watched are the jobs that have not ended. Verdicts has one
	// character for each of the last that ended: `.`, or `x` for a failure.
	Proved   bool   `json:"proved,omitempty"`
	Watched  idList `json:"watched,omitempty"`
	Verdicts string `json:"verdicts,omitempty"`
	// LastAct is the act that stored this version. It identifies an act that is sent again after a lost answer.
	LastAct sluice.ID `json:"last_act"`
}

// idList is written as one text, because stores write it often.
type idList []sluice.ID

// MarshalText writes the IDs one after another, in base 64.
func (l idList) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 16*len(l))
	for _, id := range l {
		raw = append(raw, id[:]...)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads the text of MarshalText.
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
	// DefaultStopIfFailed is the default of StopIfFailed with a canary: 10 %.
	DefaultStopIfFailed = 0.1
)

// Filter chooses operations. The zero value chooses all.
type Filter struct {
	// Open chooses operations that have not ended. Default: all.
	Open bool
	// Before is the last ID of the previous page. Default: begin with the newest operation.
	Before sluice.ID
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// kinds has the states on which each kind can act. Usual is how many of them, from the first, apply if the query
// names none.
var kinds = map[Kind]struct {
	states []sluice.State
	usual  int
}{
	KindRequeue:    {[]sluice.State{sluice.StateDead, sluice.StateCancelled, sluice.StateUncertain}, 1},
	KindCancel:     {[]sluice.State{sluice.StateQueued, sluice.StateClaimed, sluice.StateDispatched}, 3},
	KindReschedule: {[]sluice.State{sluice.StateQueued}, 1},
	KindDelete:     {[]sluice.State{sluice.StateDead, sluice.StateCancelled}, 1},
	KindHold:       {[]sluice.State{sluice.StateQueued}, 1},
	KindRelease:    {[]sluice.State{sluice.StateQueued}, 1},
	KindEdit:       {[]sluice.State{sluice.StateQueued}, 1},
	KindBackfill:   {},
}

// begin checks a new operation, and fills in defaults.
func (o *Operation) begin(act sluice.Act) error {
	if err := o.choose(); err != nil {
		return err
	}
	if act.Reason == "" && (o.Kind == KindRequeue || o.Kind == KindHold) {
		return feature.Invalid("reason", fmt.Sprintf("a %s needs a reason; the audit keeps it", o.Kind))
	}
	if len(act.Reason) > maxReason {
		return feature.Invalid("reason", fmt.Sprintf("it is longer than %d bytes", maxReason))
	}
	if o.Canary > 0 && o.StopIfFailed == 0 {
		o.StopIfFailed = DefaultStopIfFailed
	}
	o.By, o.Reason, o.State = act.By, act.Reason, StateRunning
	o.course.Tokens = 1
	return o.checkTerms()
}

// choose checks the query, and narrows it to the jobs on which the kind acts.
func (o *Operation) choose() error {
	kind, known := kinds[o.Kind]
	if !known {
		return feature.Invalid("kind", fmt.Sprintf("%.40q must be requeue, cancel, reschedule, edit, delete, hold, release or backfill", o.Kind))
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
	o.Query.Held = o.Query.Held || o.Kind == KindRelease
	return nil
}

// maxReason leaves room for the operation's name in the reasons of its acts.
const maxReason = 900

// checkTerms returns the rule that the rate, the limit or the canary break.
func (o *Operation) checkTerms() error {
	switch {
	case o.Limit < 0:
		return feature.Invalid("limit", "it is negative")
	case !o.Rate.Fits() || !o.Rate.IsZero() && o.Rate.PerSecond() < 1.0/86400:
		return feature.Invalid("rate", fmt.Sprintf("%s is not one job a day or more", o.Rate))
	case o.Canary < 0 || o.Canary > MaxCanary:
		return feature.Invalid("canary", fmt.Sprintf("%d must be from 0 to %d", o.Canary, MaxCanary))
	case o.StopIfFailed < 0 || o.StopIfFailed > 1:
		return feature.Invalid("stop_if_failed", fmt.Sprintf("%g is not a share from 0 to 1", o.StopIfFailed))
	case o.Kind != KindRequeue && (o.Canary > 0 || o.StopIfFailed > 0):
		return feature.Invalid("canary", fmt.Sprintf("only requeued jobs run again and can be watched; this one is to %s", o.Kind))
	case o.Kind != KindReschedule && !o.DueAt.IsZero():
		return feature.Invalid("due_at", "it is for operations that reschedule")
	case (o.Kind == KindBackfill) != (o.Backfill != nil):
		return feature.Invalid("backfill", "a backfill, and no other kind, must have a schedule and a range")
	case (o.Kind == KindEdit) != (o.Edit != nil):
		return feature.Invalid("edit", "an edit, and no other kind, must say what to change")
	case o.Edit != nil:
		return o.Edit.check()
	}
	return nil
}

// Left returns how many jobs the operation will probably still act on. A done one acts on none, although it has not met jobs
// that somebody else changed after they were counted.
func (o Operation) Left() int {
	if o.State == StateDone {
		return 0
	}
	expected := o.Expected
	if o.Limit > 0 {
		expected = min(expected, o.Limit)
	}
	return max(0, expected-o.Done-o.Skipped-o.Failed)
}

// Total returns how many jobs the operation deals with from its start to its end. False: unknown, because nobody counted them
// all before, or it has met more of them than that; then it is the least number.
func (o Operation) Total() (jobs int, known bool) {
	dealt, left := o.Done+o.Skipped+o.Failed, o.Left()
	if o.ExpectedMore && (o.Limit == 0 || o.Limit > o.Expected) {
		return dealt + left, o.State == StateDone || dealt > 0 && dealt == o.Limit
	}
	return dealt + left, o.State == StateDone || left > 0 || dealt > 0 && (dealt == o.Expected || dealt == o.Limit)
}

// ETA returns how long the operation will take at its present rate. False: unknown, because the operation does not
// run, waits for its canary, or has done nothing yet, or because its [Operation.Total] is.
func (o Operation) ETA() (time.Duration, bool) {
	pace := o.Rate.PerSecond()
	if passed := o.now().Sub(o.CreatedAt).Seconds(); pace == 0 && passed > 0 {
		pace = float64(o.Done+o.Skipped+o.Failed) / passed
	}
	if _, known := o.Total(); !known || o.State != StateRunning || o.OnProbation() || pace <= 0 {
		return 0, false
	}
	return time.Duration(float64(o.Left()) / pace * float64(time.Second)), true
}

// OnProbation reports whether the operation still tries its canary.
func (o Operation) OnProbation() bool { return o.Canary > 0 && !o.course.Proved }

// now returns the store's present time.
func (o Operation) now() time.Time { return o.Now.Add(time.Since(o.readAt)) }

// storedBody is an operation as stores keep it.
type storedBody struct {
	plain
	Course course `json:"course"`
}

// plain is Operation without its methods.
type plain Operation

// Body returns the text in which stores keep an operation.
func (o Operation) Body() (string, error) {
	text, err := json.Marshal(storedBody{plain(o), o.course})
	return string(text), err
}

// FromRow makes an operation of its stored version and body, and of the store's clock.
func FromRow(version int64, body string, now time.Time) (Operation, error) {
	var kept storedBody
	if err := json.Unmarshal([]byte(body), &kept); err != nil {
		return Operation{}, fmt.Errorf("an operation is stored that cannot be read: %w", err)
	}
	o := Operation(kept.plain)
	o.Version, o.course, o.Now, o.readAt = version, kept.Course, now.UTC(), time.Now()
	return o, nil
}

// Stored returns the operation as its next version, stored at an instant of the store's clock.
//
// Stores call it when they write an operation in place of the stored one. Stored is nil for a new operation.
func (o Operation) Stored(stored *Operation, at time.Time, act sluice.Act) Operation {
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
	if o.Audited(stored) {
		o.ChangedAt, o.ChangedBy = at, act.By
	}
	if o.State.Ended() && len(o.course.Under) == 0 && o.EndedAt.IsZero() {
		o.EndedAt = at
	}
	return o
}

// Audited reports whether the audit records that the operation replaces the stored one: the operation is new, or its
// state or terms have changed.
func (o Operation) Audited(stored *Operation) bool {
	return stored == nil || o.terms() != stored.terms()
}

// IsOf reports whether an act stored this version. Then the act was sent again after a lost answer.
func (o Operation) IsOf(act sluice.Act) bool { return !act.ID.IsZero() && o.course.LastAct == act.ID }

// terms are the parts whose changes get an audit entry.
func (o Operation) terms() string {
	return fmt.Sprint(o.State, o.Rate, o.Canary, o.StopIfFailed, o.Limit, o.Why)
}

// ForAudit returns the operation as the audit keeps it.
func (o Operation) ForAudit() map[string]any {
	told := map[string]any{
		"id": o.ID, "kind": o.Kind, "query": o.Query, "state": o.State, "rate": o.Rate.String(), "canary": o.Canary,
		"stop_if_failed": o.StopIfFailed, "limit": o.Limit, "done": o.Done, "skipped": o.Skipped, "failed": o.Failed,
	}
	if o.Backfill != nil {
		told["backfill"] = o.Backfill
	}
	if o.Why != "" {
		told["why"] = o.Why
	}
	return told
}
