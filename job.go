package sluice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Job is one unit of work: a payload in a queue. The part above State is written at enqueue and
// never changes; the part below tells of its life.
type Job struct {
	ID       ID     `json:"id"`
	Queue    string `json:"queue"`
	Tenant   string `json:"tenant,omitempty"`
	Priority int    `json:"priority"`
	Key      string `json:"key,omitempty"`
	// KeyScope says how long the key still keeps others out, and KeyUntil until when if that is for a window. They
	// are known where one job is looked up; a job that keeps nobody out has no scope.
	KeyScope    KeyScope          `json:"key_scope,omitempty"`
	KeyUntil    time.Time         `json:"key_until,omitzero"`
	Payload     json.RawMessage   `json:"payload,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"` // 0: as the queue's setting says
	CreatedAt   time.Time         `json:"created_at"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"` // zero: never
	OrderKey    string            `json:"order_key,omitempty"`
	// After lists the jobs that had to complete before this one, AfterFailure what becomes of it if one
	// of them fails.
	After        []ID         `json:"after,omitempty"`
	AfterFailure AfterFailure `json:"after_failure,omitempty"`

	State State `json:"state"`
	// Generation is the job's life, counted from 1; a person's requeue begins the next one.
	Generation int       `json:"generation"`
	DueAt      time.Time `json:"due_at"`
	// Attempts counts the hand-outs that ended in the handler's or the engine's own failure.
	Attempts int `json:"attempts"`
	// Releases counts the hand-outs that were handed back uncounted, Recoveries those whose holder
	// was lost.
	Releases   int    `json:"releases"`
	Recoveries int    `json:"recoveries"`
	Holder     string `json:"holder,omitempty"`
	// ClaimedAt is when the present, or for a finished job the last, claim was made.
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	// DispatchedAt is when the engine had taken the run of the present, or for a finished job the last, claim. Zero: no
	// run was started.
	DispatchedAt time.Time `json:"dispatched_at,omitzero"`
	LeaseUntil   time.Time `json:"lease_until,omitzero"`
	// Ref names the engine's run, and Engine says where it runs; see engine.Location. They are set while a run is intended or
	// under way; history keeps the ref.
	Ref        string          `json:"ref,omitempty"`
	Engine     string          `json:"engine,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	// BlockedBy is the job that a queued job waits for although it may be due: its running twin,
	// behind which it was coalesced, the one before it in its order, or one that it runs after. It may
	// wait for others besides. Zero: none.
	BlockedBy  ID              `json:"blocked_by,omitzero"`
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	// Withheld says that Payload, Checkpoint and Result are not shown, because the store's role may not read them.
	Withheld bool `json:"withheld,omitempty"`
	// Error is the last failure's text.
	Error string `json:"error,omitempty"`
}

// Label is the word that people are shown for a job at an instant. It splits queued into blocked,
// scheduled, retrying and ready; for the other states it is the state.
func (j Job) Label(now time.Time) string {
	switch {
	case j.State != StateQueued:
		return string(j.State)
	case !j.BlockedBy.IsZero():
		return "blocked"
	case j.DueAt.After(now) && j.Attempts > 0:
		return "retrying"
	case j.DueAt.After(now):
		return "scheduled"
	default:
		return "ready"
	}
}

// Attempt is a hand-out that ended in the handler's or the engine's own failure.
type Attempt struct {
	JobID      ID        `json:"job_id"`
	Generation int       `json:"generation"`
	Attempt    int       `json:"attempt"` // counted from 1 within the generation
	ClaimedAt  time.Time `json:"claimed_at"`
	FailedAt   time.Time `json:"failed_at"`
	Holder     string    `json:"holder"`
	Error      string    `json:"error"`
	Stack      string    `json:"stack,omitempty"` // of a panic
}

// JobFilter chooses jobs. The zero value chooses all; each field that is set narrows it.
type JobFilter struct {
	Queue  string
	Tenant string
	Key    string
	States []State
	// Labels must all be on the job, with these values. Without a Key or a Tenant beside them, a page looks at
	// 20,000 unfinished and 20,000 finished jobs at the most, and may hold fewer jobs than its limit, even none, where
	// another page follows.
	Labels map[string]string
	// MinAttempts and MinRecoveries choose jobs in trouble: those of which at least so many attempts failed, and so many
	// holders were lost, in their present or last life.
	MinAttempts, MinRecoveries int
	// Before is the last id of the page before this one.
	Before ID
	// Mark is that of the page before this one, instead of Before: it holds also where jobs of that page have been deleted
	// since. A mark of another kind of store is an ErrInvalid.
	Mark string
	// Limit is the size of a page, 1 to 10,000. Default 100.
	Limit int
}

// Page is a part of a list of jobs, the newest first. One that is not the last may be empty: see JobFilter.Labels.
type Page struct {
	Jobs []Job
	// Next is the Before of the next page, Mark its Mark; zero: this is the last.
	Next ID
	Mark string
}

// EndOfPage gives the id before which a page begins, by the mark or the Before of a filter, in a store that marks pages by
// ids.
func (f JobFilter) EndOfPage() (ID, error) {
	if f.Mark == "" {
		return f.Before, nil
	}
	text, known := strings.CutPrefix(f.Mark, idMark)
	id, err := ParseID(text)
	if !known || err != nil {
		return ID{}, BadMark(f.Mark)
	}
	return id, nil
}

// idMark begins the mark of a page in stores that list by id.
const idMark = "id:"

// BadMark is the error of a mark that a store did not make.
func BadMark(mark string) error {
	return invalid("mark", fmt.Sprintf("%.60q is not where a page of this store ended; list from the beginning", mark))
}

// Depth counts the jobs of a queue. Counting stops at DepthLimit for each state, so that looking
// never costs more than a bounded read.
type Depth struct {
	Queue string `json:"queue"`
	// Ready jobs are due and may be claimed, Scheduled ones are not due yet, Blocked ones wait for
	// another job.
	Ready     int `json:"ready"`
	Scheduled int `json:"scheduled"`
	Blocked   int `json:"blocked"`
	// Claimed, Dispatched and Uncertain jobs are in those states.
	Claimed    int `json:"claimed"`
	Dispatched int `json:"dispatched"`
	Uncertain  int `json:"uncertain"`
	// StrayRuns are runs of jobs that have ended, which may still be open; see engine.OrphanRun.
	StrayRuns int `json:"stray_runs"`
	// Dead counts the dead letters that wait for a person.
	Dead int `json:"dead"`
	// OldestDue is the due_at of the ready job that waits longest; zero: none is ready.
	OldestDue time.Time `json:"oldest_due,omitzero"`
}

// InFlight counts what is under way, or may be: claimed and dispatched jobs, and stray runs.
func (d Depth) InFlight() int { return d.Claimed + d.Dispatched + d.StrayRuns }

// DepthLimit is where counting stops: a figure of DepthLimit means so many or more.
const DepthLimit = 100_000

// StoredText makes a text fit for every store: valid UTF-8 without NUL, at most MaxErrorBytes, cut
// in the middle, where the least is lost.
func StoredText(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) <= MaxErrorBytes {
		return text
	}
	const mark = "\n… cut …\n"
	half := (MaxErrorBytes - len(mark)) / 2
	return strings.ToValidUTF8(text[:half], "") + mark + strings.ToValidUTF8(text[len(text)-half:], "")
}

// briefBytes is how much of a text Brief leaves.
const briefBytes = 200

// Brief is a text in one line of at most 200 bytes, for where a word on the cause is enough. A longer one is cut in its
// middle: errors name what was done first, and the cause last.
func Brief(text string) string {
	text = strings.Join(strings.Fields(StoredText(text)), " ")
	if len(text) <= briefBytes {
		return text
	}
	const mark = " … "
	const head = (briefBytes - len(mark)) / 3
	const tail = briefBytes - len(mark) - head
	return strings.ToValidUTF8(text[:head], "") + mark + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// SplitStates parts states into those of unfinished jobs and those of finished ones. None at all
// means every state.
func SplitStates(states []State) (unfinished, finished []State) {
	if len(states) == 0 {
		states = States()
	}
	for _, s := range states {
		if s.Finished() {
			finished = append(finished, s)
		} else {
			unfinished = append(unfinished, s)
		}
	}
	return unfinished, finished
}

// NewestPage makes a page of jobs that a store found: the newest first, at most limit. A store
// looks for one more than the limit, so that the page knows whether another follows. A floor is the oldest job that it
// looked at, where older ones are left for another page; zero: it looked at all.
func NewestPage(found []Job, limit int, floor ID) Page {
	slices.SortFunc(found, func(a, b Job) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	page := Page{Jobs: found}
	if len(found) > limit {
		page.Jobs = found[:limit]
		page.Next = found[limit-1].ID
	} else {
		page.Next = floor
	}
	if !page.Next.IsZero() {
		page.Mark = idMark + page.Next.String()
	}
	return page
}
