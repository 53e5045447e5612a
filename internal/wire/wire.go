// Package wire has the requests and answers of the HTTP API that both sides use: package cmd/httpapi answers them, and
// package store/remote sends them. Each is written once, with the comments from which docs/api.md is made.
//
// Begin with [LimitView]. Objects that the library has in JSON already, such as jobs and operations, are not here.
//
// Read next: package store/remote, and docs/decisions/0042-store-over-http.md.
package wire

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/schedule"
)

// ReasonBody says why.
type ReasonBody struct {
	// Reason says why, for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// MaintainBody starts a task of maintenance.
type MaintainBody struct {
	// DryRun says what the task would do, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	ReasonBody
}

// LimitList lists limits.
type LimitList struct {
	// Limits are sorted by name.
	Limits []LimitView `json:"limits"`
}

// LimitView is a limit with its use, in answers and in the output of the command line.
type LimitView struct {
	limit.Limit
	// Version counts the changes. ChangedAt, ChangedBy and Reason describe the last one.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason"`
	// Queues are the queues whose setting limits names the limit.
	Queues []string `json:"queues"`
	// InFlight counts their claimed and dispatched jobs.
	InFlight int `json:"in_flight"`
	// WaitSeconds is how long until the rate lets a job start. 0: now.
	WaitSeconds float64 `json:"wait_seconds"`
	// Keys are limit keys, if the limit is per key.
	Keys []LimitKeyView `json:"keys,omitempty"`
}

// LimitKeyView is a limit key with its use.
type LimitKeyView struct {
	// Key is the limit key of jobs, such as a host.
	Key string `json:"key"`
	// InFlight counts claimed and dispatched jobs, and Waiting due jobs that the limit holds back.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// WaitSeconds is how long until the rate lets a job start. 0: now.
	WaitSeconds float64 `json:"wait_seconds"`
	// ClosedUntil is when the key opens by itself. Missing: it is open.
	ClosedUntil time.Time `json:"closed_until,omitzero"`
}

// LimitViewOf shows the use of a limit, and of keys.
func LimitViewOf(u limit.Use, keys ...limit.KeyUse) LimitView {
	l := u.Limit
	out := LimitView{l, l.Version, l.ChangedAt, l.ChangedBy, l.Reason, append([]string{}, u.Queues...), u.InFlight, u.Wait.Seconds(), nil}
	for _, k := range keys {
		out.Keys = append(out.Keys, LimitKeyView{k.Key, k.InFlight, k.Waiting, k.Wait.Seconds(), k.ClosedUntil})
	}
	return out
}

// Use reads the view.
func (v LimitView) Use() limit.Use {
	l := v.Limit
	l.Version, l.ChangedAt, l.ChangedBy, l.Reason = v.Version, v.ChangedAt, v.ChangedBy, v.Reason
	return limit.Use{Limit: l, Queues: v.Queues, InFlight: v.InFlight, Wait: seconds(v.WaitSeconds)}
}

// Use reads the view.
func (v LimitKeyView) Use() limit.KeyUse {
	return limit.KeyUse{Key: v.Key, InFlight: v.InFlight, Waiting: v.Waiting, Wait: seconds(v.WaitSeconds), ClosedUntil: v.ClosedUntil}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// SaveLimitBody is a limit to store.
type SaveLimitBody struct {
	limit.Limit
	// Version is that of the limit as the caller read it. 0: the limit is new.
	Version int64 `json:"version,omitempty"`
	// Reason says why, for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// SaveLimitKeyBody closes or opens a limit key.
type SaveLimitKeyBody struct {
	// Key is the limit key.
	Key string `json:"key" minLength:"1" maxLength:"255"`
	// ClosedUntil is when the key opens by itself. Missing: it opens now.
	ClosedUntil time.Time `json:"closed_until,omitzero"`
	ReasonBody
}

// ScheduleList lists schedules.
type ScheduleList struct {
	// Schedules are sorted by name.
	Schedules []schedule.Schedule `json:"schedules"`
	// Next is the `after` of the next page. Missing: there is none.
	Next string `json:"next,omitempty"`
	// Now is the store's clock. Missing: the page is empty.
	Now time.Time `json:"now,omitzero"`
}

// ScheduleDetail is a schedule with its fires.
type ScheduleDetail struct {
	// Schedule is the schedule.
	Schedule schedule.Schedule `json:"schedule"`
	// Next are the instants of the next fires.
	Next []time.Time `json:"next"`
	// Results are the last fires, with the states of their jobs.
	Results []schedule.Fire `json:"results"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// SaveScheduleBody is a schedule to store.
type SaveScheduleBody struct {
	// Schedule is the schedule, with the version that the caller read; 0: the schedule is new. Its progress stays as it is
	// stored.
	Schedule schedule.Schedule `json:"schedule"`
	ReasonBody
}

// FireBody fires a schedule.
type FireBody struct {
	// At lists the instants whose jobs are made. Missing: one fire, now.
	At []time.Time `json:"at,omitempty" maxItems:"10000"`
	ReasonBody
}

// FireList lists fires.
type FireList struct {
	// Fires are in the order of the instants.
	Fires []schedule.Fire `json:"fires"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// BatchList lists batches.
type BatchList struct {
	// Batches are the batches, the newest first.
	Batches []BatchView `json:"batches"`
}

// BatchView is a batch with its state.
type BatchView struct {
	batch.Batch
	// State is open, closed, complete or succeeded. Progress is the share of ended jobs, from 0 to 1.
	State    batch.State `json:"state"`
	Progress float64     `json:"progress"`
	// ETASeconds is about how long until all jobs have ended. Missing: not known.
	ETASeconds *float64 `json:"eta_seconds,omitempty"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// BatchViewOf shows a batch.
func BatchViewOf(b batch.Batch) BatchView {
	out := BatchView{Batch: b, State: b.State(), Progress: b.Progress(), Now: b.Now}
	if eta, known := b.ETA(); known && b.Unfinished() > 0 {
		seconds := eta.Seconds()
		out.ETASeconds = &seconds
	}
	return out
}

// Read reads the view.
func (v BatchView) Read() batch.Batch {
	v.Batch.Now = v.Now
	return v.Batch
}

// OpenBatchBody is a new batch.
type OpenBatchBody struct {
	// ID names the batch. Missing: a new one.
	ID sluice.ID `json:"id,omitzero"`
	// Name is for people.
	Name string `json:"name,omitempty" maxLength:"200"`
	// Parent is the open batch that this one is in, which completes only after it.
	Parent sluice.ID `json:"parent,omitzero"`
	batch.Callbacks
	ReasonBody
}

// CloseBatchBody closes a batch.
type CloseBatchBody struct {
	// All closes the batches in the batch too.
	All bool `json:"all,omitempty"`
	ReasonBody
}

// DeadNoteList lists notes on groups of dead letters.
type DeadNoteList struct {
	// Notes are sorted by fingerprint.
	Notes []deadletter.Note `json:"notes"`
}

// SaveDeadNoteBody is a note on a group of dead letters to store.
type SaveDeadNoteBody struct {
	// Text is the note, and Owner who looks after the cause. Empty: nobody.
	Text  string `json:"text,omitempty" maxLength:"4096"`
	Owner string `json:"owner,omitempty" maxLength:"200"`
	// ResolvedAt is when the cause was resolved. Missing: it is open.
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// Version is that of the note as the caller read it. 0: the note is new.
	Version int64 `json:"version,omitempty"`
	ReasonBody
}
