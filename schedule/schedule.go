// Package schedule runs jobs again and again: at the times of a cron expression, at an interval, or at a list of instants.
// Upkeep fires each schedule, so programs need no timer of their own.
//
// Begin with [Ensure], which a program calls at its start with the schedules that it declares. [Set], [Pause], [Resume],
// [Trigger], [Lift] and [Undo] are for operators. Package operation backfills fires that have been missed.
//
// A fire and its job are stored in one transaction. So each fire makes exactly one job, whichever process is killed.
//
// Read next: docs/guide/schedules.md. Package schedule/cron has the rules for the days on which clocks change.
package schedule

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// Overlap says how a schedule fires while a job of an earlier fire is unfinished.
type Overlap string

// The rules for overlaps.
const (
	// Skip drops the fire. It is the default.
	Skip Overlap = "skip"
	// QueueOne lets one job wait until the unfinished one has ended, and drops further fires.
	QueueOne Overlap = "queue one"
	// QueueAll makes all jobs wait for each other: they run one at a time, in the order of their fires.
	QueueAll Overlap = "queue all"
	// CancelOther cancels the unfinished job, and enqueues the new one.
	CancelOther Overlap = "cancel other"
)

// CatchUp says which fires a schedule makes up for after a time without upkeep.
type CatchUp string

// The rules for missed fires. A fire that is at most 1 minute late is not missed.
const (
	// Last makes up for the last missed fire. It is the default.
	Last CatchUp = "last"
	// All makes up for every missed fire. The rule for overlaps holds for them too.
	All CatchUp = "all"
	// None makes up for no fire.
	None CatchUp = "none"
)

// Bounds of a schedule.
const (
	// MaxInstants is the most instants of a list.
	MaxInstants = 1000
	// MaxBackfill is the most fires of one backfill.
	MaxBackfill = 100_000
	// RecentFires is how many of its last fires a schedule keeps.
	RecentFires = 20
	// Label is the name of the label that every job of a schedule has. Its value is the schedule's name.
	Label = "schedule"
)

// Definition says when a schedule fires, and which job a fire makes. Exactly one of Cron, Every and At says when.
type Definition struct {
	// Queue is the queue of the jobs. Required.
	Queue string
	// Cron is a cron expression of 5 fields, or of 6 with the second first, such as `0 2 * * *`; or a shorthand such as
	// `@daily` or `@every 10m`.
	Cron string
	// Every is the interval between fires, at least 1 s. Fires are whole intervals after Start; without one, after
	// midnight of 1970-01-01 in UTC.
	Every time.Duration
	// At lists the instants, at most [MaxInstants].
	At []time.Time
	// Zone is the IANA time zone of Cron, such as Europe/Berlin. Default: UTC.
	Zone string
	// Start and End bound the fires: none is before Start or after End. Default: no bound.
	Start, End time.Time
	// MaxFires ends the schedule after this many jobs. 0: no end.
	MaxFires int

	// Payload is the payload of the jobs, as JSON. In it, and in Key and the values of Labels, {{fire}} becomes the fire's
	// instant such as 2026-11-25T01:00:00Z, and {{date}} the date in Zone. Default: {"fire":"{{fire}}"}.
	Payload json.RawMessage
	// Key, Tenant, Priority and Labels are those of the jobs; see [sluice.EnqueueOptions].
	Key      string
	Tenant   string
	Priority int
	Labels   map[string]string

	// Overlap says how the schedule fires while an earlier job is unfinished. Default: Skip.
	Overlap Overlap
	// CatchUp says which missed fires the schedule makes up for, among those of the last CatchUpWindow. Default: Last,
	// with a window of 24 h.
	CatchUp       CatchUp
	CatchUpWindow time.Duration
	// Jitter spreads the jobs: each is due up to this much after its fire. The delay follows from the schedule's name and
	// the instant. Default: 0.
	Jitter time.Duration
	// PauseAfter pauses the schedule when this many of its jobs in a row have died or were refused by the queue. 0: never. A
	// job that the store does not have any more at the next fire counts as completed.
	PauseAfter int
}

// DefaultWindow is the default of CatchUpWindow.
const DefaultWindow = 24 * time.Hour

// Schedule is a definition with a name, and with its course in the store.
type Schedule struct {
	// Name names the schedule, by the rule of queue names.
	Name string
	Definition
	// Paused stops the fires. A paused schedule misses none: it goes on with the first fire after the resume. Note says
	// why it is paused.
	Paused bool
	Note   string
	// Declared is the definition that a program declared last by Ensure. Nil: no program did.
	Declared *Definition

	// NextAt is the instant of the next fire. Zero: there is none.
	NextAt time.Time
	// Progress counts the fires.
	Progress Progress

	// Version counts the changes. 0: the schedule is not stored. ChangedAt, ChangedBy and Reason describe the last change.
	Version   int64
	ChangedAt time.Time
	ChangedBy string
	Reason    string
	// Now is the store's clock when the store read the schedule.
	Now time.Time
}

// Progress is what a schedule has done.
type Progress struct {
	// Fired counts the jobs. Skipped counts fires without a job: by the rule for overlaps, or because another job had the
	// key. Missed counts fires that were too late. Refused counts fires whose job the queue did not take.
	Fired   int `json:"fired"`
	Skipped int `json:"skipped"`
	Missed  int `json:"missed"`
	Refused int `json:"refused,omitempty"`
	// Failures counts the dead jobs and the refused fires since the last completed job, as of the last fire.
	Failures int `json:"failures,omitempty"`
	// Through is the last instant that the schedule has dealt with. No later change brings it back.
	Through time.Time `json:"through,omitzero"`
	// Resumed is when a SQL function resumed the schedule. The next FireSchedules finds its next fire. Zero: that is done.
	Resumed time.Time `json:"resumed,omitzero"`
	// Recent lists the last fires, the oldest first, at most [RecentFires]. A fire whose job is unfinished stays: one whose
	// job has ended makes room for the next.
	Recent []Fire `json:"recent,omitempty"`

	seed string // of the IDs of jobs; only stores keep it
}

// Fire is one fire of a schedule.
type Fire struct {
	// At is the instant.
	At time.Time `json:"at"`
	// Job is the job that the fire made. Zero: none.
	Job sluice.ID `json:"job,omitzero"`
	// Result says how the fire went.
	Result Result `json:"result"`
	// State is the state of the job when the store last looked. Empty: the job is not in the store any more.
	State sluice.State `json:"state,omitempty"`
	// Reason says why a fire was refused. Empty: it was not.
	Reason string `json:"reason,omitempty"`
}

// Result says how a fire went.
type Result string

// The results of a fire.
const (
	// Enqueued: the fire made a job.
	Enqueued Result = "enqueued"
	// Skipped: an earlier job was unfinished.
	Skipped Result = "skipped"
	// Duplicate: another job had the key, or the fire had made its job before.
	Duplicate Result = "duplicate"
	// Refused: the queue did not take the job, because it was full or the payload broke a rule of it. A backfill of the
	// instant makes up for it.
	Refused Result = "refused"
	// ByHand: a person triggered the fire, and it made a job.
	ByHand Result = "by hand"
)

// Overridden reports whether an operator has changed a declared schedule. A deploy then leaves the schedule as it is,
// until [Lift].
func (s Schedule) Overridden() bool { return s.Declared != nil && !s.Declared.equal(s.Definition) }

// equal reports whether two definitions are stored as the same text.
func (d Definition) equal(other Definition) bool {
	one, err := json.Marshal(d)
	if err != nil {
		return false
	}
	two, err := json.Marshal(other)
	return err == nil && bytes.Equal(one, two)
}

// clone returns a copy whose progress shares nothing.
func (s Schedule) clone() Schedule {
	s.Progress.Recent = append([]Fire(nil), s.Progress.Recent...)
	return s
}

// clone returns a copy that shares nothing.
func (d Definition) clone() Definition {
	d.At, d.Payload, d.Labels = slices.Clone(d.At), slices.Clone(d.Payload), maps.Clone(d.Labels)
	return d
}
