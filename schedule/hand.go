package schedule

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// DecideByHand decides the fires that a person asked for: those at instants, or one now if there are none. They move
// NextAt no further, pay no heed to unfinished jobs, and count nothing. A fire for an instant makes the job that the
// schedule itself makes for it, so a fire that has been is a duplicate.
func DecideByHand(s Schedule, now time.Time, instants []time.Time, act sluice.Act) Decision {
	d := Decision{Before: s, After: s.clone(), now: feature.Instant(now), Hand: []Fire{}}
	for _, at := range instants {
		at = feature.Instant(at)
		job := s.insert(at, s.jobID(at))
		d.Jobs = append(d.Jobs, job)
		d.Hand = append(d.Hand, Fire{At: at, Job: job.ID, Result: Enqueued, State: sluice.StateQueued})
	}
	if len(instants) > 0 {
		return d
	}
	id := s.handID(act.ID)
	if place := slices.IndexFunc(s.Progress.Recent, func(f Fire) bool { return f.Job == id }); place >= 0 {
		d.Hand = append(d.Hand, s.Progress.Recent[place]) // the act is repeated
		return d
	}
	d.Jobs = append(d.Jobs, s.insert(d.now, id))
	fire := Fire{At: d.now, Job: id, Result: ByHand, State: sluice.StateQueued}
	d.Hand = append(d.Hand, fire)
	d.keep(fire)
	d.fires = []int{len(d.After.Progress.Recent) - 1 + d.lost}
	return d
}

// HandText returns what the audit keeps of fires that a person asked for. Nil: they made no job.
func (d Decision) HandText() json.RawMessage {
	var made []Fire
	for _, f := range d.Hand {
		if f.Result != Duplicate {
			made = append(made, f)
		}
	}
	if len(made) == 0 || len(d.Jobs) == 0 {
		return nil
	}
	text, err := json.Marshal(struct {
		Fires int       `json:"fires"`
		From  time.Time `json:"from"`
		To    time.Time `json:"to"`
	}{len(made), made[0].At, made[len(made)-1].At})
	if err != nil {
		return nil // an instant that JSON cannot write; check lets none through
	}
	return text
}
