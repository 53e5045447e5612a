package sluice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Job is one unit of work: a payload in a queue. The producer sets the fields above State, and the fields from
// State on describe the job's life.
//
// Few fields above State change later: a duplicate with [Coalesce] replaces Payload and Labels, a requeue
// clears ExpiresAt, and package edit changes waiting jobs.
type Job struct {
	// ID names the job. The producer sets it, and the fields below, with [EnqueueOptions].
	ID       ID     `json:"id"`
	Queue    string `json:"queue"`
	Tenant   string `json:"tenant,omitempty"`
	Priority int    `json:"priority"`
	Key      string `json:"key,omitempty"`
	// KeyScope says how long the key still refuses other jobs. KeyUntil is the end of a window. Only a lookup of
	// one job fills them in. Empty: the key refuses no jobs.
	KeyScope    KeyScope          `json:"key_scope,omitempty"`
	KeyUntil    time.Time         `json:"key_until,omitzero"`
	Payload     json.RawMessage   `json:"payload,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"` // 0: the queue's setting
	Timeout     time.Duration     `json:"timeout_ns,omitempty"`   // of an attempt or run; 0: the handler's or the queue's
	CreatedAt   time.Time         `json:"created_at"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"` // zero: never
	OrderKey    string            `json:"order_key,omitempty"`
	// After lists the jobs that must complete before this job. AfterFailure says how this job goes on if one of
	// them fails, and AfterFailures are the rules for some of them instead.
	After         []ID                `json:"after,omitempty"`
	AfterFailure  AfterFailure        `json:"after_failure,omitempty"`
	AfterFailures map[ID]AfterFailure `json:"after_failures,omitempty"`
	Batch         ID                  `json:"batch,omitzero"`      // see package batch; zero: none
	LimitKey      string              `json:"limit_key,omitempty"` // by which limits that are per key bound the job; empty: none
	Cost          int                 `json:"cost,omitempty"`      // units of limits by cost; 0: 1

	// State is where the job is in its life.
	State State `json:"state"`
	// Generation is the number of the job's life, from 1. Each requeue begins the next one.
	Generation int `json:"generation"`
	// DueAt is the earliest start.
	DueAt time.Time `json:"due_at"`
	// Attempts counts the attempts that ended in a failure of the handler or the engine.
	Attempts int `json:"attempts"`
	// Releases counts the claims that a holder handed back. Recoveries counts the claims whose holder was lost.
	Releases   int `json:"releases"`
	Recoveries int `json:"recoveries"`
	// Holder names the process that has the claim, as host:pid:nonce. A finished job keeps the last one. Empty:
	// none.
	Holder string `json:"holder,omitempty"`
	// ClaimedAt is when the holder claimed the job; for a finished job, the last claim.
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	// DispatchedAt is when the engine accepted the run of that claim. Zero: no run was started, or none was noted.
	DispatchedAt time.Time `json:"dispatched_at,omitzero"`
	// LeaseUntil is when the lease runs out. Zero: no lease.
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Ref names the engine's run, and Engine says where the run is; see engine.Location. They are set while a run
	// is intended or under way. The history keeps only Ref.
	Ref    string `json:"ref,omitempty"`
	Engine string `json:"engine,omitempty"`
	// Checkpoint is the progress that a handler saved for the next attempt, as JSON. Empty: none.
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	// BlockedBy is the job that a queued job waits for: an earlier job of the key or order key, or one that it runs after.
	// A held job waits for its own ID (package hold), like a requeued job with an orphan run. Zero: none.
	BlockedBy ID `json:"blocked_by,omitzero"`
	// FinishedAt is when the job ended. Zero: it has not ended.
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Result is the handler's or the engine's result, as JSON. Empty: none.
	Result json.RawMessage `json:"result,omitempty"`
	// Withheld says that Payload, Checkpoint and Result are missing because the store's role may not read them.
	Withheld bool `json:"withheld,omitempty"`
	// Error is the text of the last failure. Empty: none.
	Error string `json:"error,omitempty"`
}

// Label returns the word that people see for a job's state: it splits queued into blocked, scheduled, retrying, ready.
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

// Attempt is an attempt that ended in a failure of the handler or the engine.
type Attempt struct {
	JobID      ID        `json:"job_id"`     // the job
	Generation int       `json:"generation"` // the life of the job
	Attempt    int       `json:"attempt"`    // from 1 in each generation
	ClaimedAt  time.Time `json:"claimed_at"`
	FailedAt   time.Time `json:"failed_at"`
	Holder     string    `json:"holder"`
	Error      string    `json:"error"`
	Stack      string    `json:"stack,omitempty"` // of a panic
}

// JobFilter chooses jobs. The zero value chooses all, and each field that is set narrows the choice.
type JobFilter struct {
	// Queue, Tenant, Key and States choose jobs by those fields. Default: any.
	Queue  string
	Tenant string
	Key    string
	States []State
	// Batch chooses the jobs of a batch and of the batches in it. Default: any.
	Batch ID
	// Labels chooses the jobs that have all these labels, with these values. Default: any.
	//
	// With Labels but no Key or Tenant, and with Batch, a page looks at 20,000 unfinished and finished jobs each at most.
	// It may hold fewer jobs than Limit, even none, although another page follows.
	Labels map[string]string
	// MinAttempts chooses jobs with at least this many failed attempts in their present or last life, and
	// MinRecoveries with this many lost holders. Default: 0.
	MinAttempts, MinRecoveries int
	// Before is the Next of the previous page. Default: begin with the first job.
	Before ID
	// Cursor is the Cursor of the previous page, instead of Before. It stays valid if jobs of that page are deleted. A
	// cursor of another kind of store is an [ErrInvalid]. Default: use Before.
	Cursor string
	// OldestFirst lists the oldest job first; Before is then the job after which a page begins. Default: the newest first.
	OldestFirst bool
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// Page is a part of a list of jobs. It may be empty although another follows; see Labels of [JobFilter].
type Page struct {
	// Jobs are the jobs of the page.
	Jobs []Job
	// Next is the Before of the next page, and Cursor its Cursor. Zero: this page is the last.
	Next   ID
	Cursor string
}

// EndOfPage returns the ID at which the page before ended, from Cursor or Before. Stores that mark pages by IDs call it.
func (f JobFilter) EndOfPage() (ID, error) {
	if f.Cursor == "" {
		return f.Before, nil
	}
	text, known := strings.CutPrefix(f.Cursor, idCursor)
	id, err := ParseID(text)
	if !known || err != nil {
		return ID{}, BadCursor(f.Cursor)
	}
	return id, nil
}

// idCursor begins the cursor of a page in stores that list by ID.
const idCursor = "id:"

// BadCursor returns the [ErrInvalid] for a cursor that the store did not make.
func BadCursor(mark string) error {
	return invalid("mark", fmt.Sprintf("%.60q must be a cursor of this store; list from the beginning", mark))
}

// Depth counts the jobs of a queue by state. Each count stops at a limit, so that a count costs a bounded read; see
// [DepthLimit].
type Depth struct {
	// Queue is the name of the queue.
	Queue string `json:"queue"`
	// Ready counts jobs that are due and may be claimed. Scheduled counts jobs that are not due yet, and Blocked
	// counts jobs that wait for another job.
	Ready     int `json:"ready"`
	Scheduled int `json:"scheduled"`
	Blocked   int `json:"blocked"`
	// Claimed, Dispatched and Uncertain count the jobs in those states.
	Claimed    int `json:"claimed"`
	Dispatched int `json:"dispatched"`
	Uncertain  int `json:"uncertain"`
	// OrphanRuns counts orphan runs: runs that may be open although their job has ended; see engine.OrphanRun.
	OrphanRuns int `json:"orphan_runs"`
	// Dead counts the dead letters, which wait for a person.
	Dead int `json:"dead"`
	// OldestDue is the due time of the ready job that waits longest. Zero: no job is ready.
	OldestDue time.Time `json:"oldest_due,omitzero"`
}

// InFlight counts the jobs that run or may run: claimed and dispatched jobs, and orphan runs.
func (d Depth) InFlight() int { return d.Claimed + d.Dispatched + d.OrphanRuns }

// DepthLimit is the highest count in a [Depth] of [Client.Depth]: it means that many jobs or more.
const DepthLimit = 100_000

// StoredText makes a text fit for every store: UTF-8 without NUL, cut in its middle to [MaxErrorBytes].
func StoredText(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) <= MaxErrorBytes {
		return text
	}
	const mark = "\n… cut …\n"
	half := (MaxErrorBytes - len(mark)) / 2
	return strings.ToValidUTF8(text[:half], "") + mark + strings.ToValidUTF8(text[len(text)-half:], "")
}

// briefBytes is the most bytes of a text from Brief.
const briefBytes = 200

// Brief returns a text as one line of at most 200 bytes, cut in its middle: errors end with the cause.
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

// SplitStates splits states into unfinished and finished ones. No states at all mean every state.
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

// Page makes a page of the jobs that a store found: sorted, at most Limit. The store must look for Limit + 1 jobs, so
// that Page knows whether another page follows.
//
// Floor is the last job that the store looked at, if it left jobs to the next page. Zero: it looked at all.
func (f JobFilter) Page(found []Job, floor ID) Page {
	slices.SortFunc(found, func(a, b Job) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	if f.OldestFirst {
		slices.Reverse(found)
	}
	page := Page{Jobs: found, Next: floor}
	if len(found) > f.Limit {
		page.Jobs, page.Next = found[:f.Limit], found[f.Limit-1].ID
	}
	if !page.Next.IsZero() {
		page.Cursor = idCursor + page.Next.String()
	}
	return page
}
