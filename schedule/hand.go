package schedule

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/pressure"
)

// DecideByHand decides the fires that a person asked for: those at instants, or one now if there are none. They move
// NextAt no further, pay no heed to unfinished jobs, and count nothing. A fire for an instant makes the job that the
// schedule itself makes for it, so a fire that has been is a duplicate.
func DecideByHand(s Schedule, now time.Time, instants []time.Time, act sluice.Act) Decision {
	d := Decision{Before: s, After: s.clone(), now: feature.Instant(now), Hand: []Fire{}, listed: len(instants) > 0}
	for k, at := range instants {
		at = feature.Instant(at)
		job := s.insert(at, s.jobID(at))
		d.Jobs, d.hand = append(d.Jobs, job), append(d.hand, k)
		d.Hand = append(d.Hand, Fire{At: at, Job: job.ID, Result: Enqueued, State: sluice.StateQueued})
	}
	if d.listed {
		return d
	}
	id := s.handID(act.ID)
	if place := slices.IndexFunc(s.Progress.Recent, func(f Fire) bool { return f.Job == id }); place >= 0 {
		d.Hand = append(d.Hand, s.Progress.Recent[place]) // the act is repeated
		return d
	}
	d.Jobs, d.hand = append(d.Jobs, s.insert(d.now, id)), []int{0}
	fire := Fire{At: d.now, Job: id, Result: ByHand, State: sluice.StateQueued}
	d.Hand = append(d.Hand, fire)
	d.After.Progress.keep(fire)
	return d
}

// waits reports whether a fire by hand that a queue refuses is a result for its caller, who tries it again later: one of a
// list of instants, because the queue is full.
func (d *Decision) waits(reason error) bool {
	return d.listed && errors.Is(reason, pressure.ErrFull)
}

// refuseByHand takes back jobs that a full queue does not take, by their places.
func (d *Decision) refuseByHand(reasons map[int]error) {
	var jobs []sluice.Insert
	var hand []int
	for k, job := range d.Jobs {
		if reason := reasons[k]; reason != nil {
			f := &d.Hand[d.hand[k]]
			f.Job, f.Result, f.State, f.Reason = sluice.ID{}, Refused, "", sluice.Brief(reason.Error())
			continue
		}
		jobs, hand = append(jobs, job), append(hand, d.hand[k])
	}
	d.Jobs, d.hand = jobs, hand
}

// handText is what the audit keeps of fires that a person asked for.
type handText struct {
	Fires   int         `json:"fires"`
	From    time.Time   `json:"from"`
	To      time.Time   `json:"to"`
	Skipped []time.Time `json:"skipped,omitempty"` // they had their jobs
	Refused []time.Time `json:"refused,omitempty"` // the queue was full
}

// HandText returns what the audit keeps of fires that a person asked for. Nil: they made no job.
func (d Decision) HandText() json.RawMessage {
	var text handText
	for _, f := range d.Hand {
		switch f.Result {
		case Duplicate:
			text.Skipped = append(text.Skipped, f.At)
		case Refused:
			text.Refused = append(text.Refused, f.At)
		default:
			if text.Fires++; text.Fires == 1 {
				text.From = f.At
			}
			text.To = f.At
		}
	}
	if text.Fires == 0 || len(d.Jobs) == 0 {
		return nil
	}
	out, err := json.Marshal(text)
	if err != nil {
		return nil // an instant that JSON cannot write; check lets none through
	}
	return out
}

// Told returns fires, of which all made their jobs, with the results that the audit keeps of their act. Stores call it if the act is
// repeated.
func Told(fires []Fire, after json.RawMessage) ([]Fire, error) {
	var text handText
	if err := json.Unmarshal(after, &text); err != nil {
		return nil, err
	}
	fires = slices.Clone(fires)
	for i := range fires {
		f := &fires[i]
		switch {
		case slices.ContainsFunc(text.Skipped, f.At.Equal):
			f.Result, f.State = Duplicate, ""
		case slices.ContainsFunc(text.Refused, f.At.Equal):
			f.Job, f.Result, f.State = sluice.ID{}, Refused, ""
		}
	}
	return fires, nil
}
