package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

const (
	// grace is how late a fire may be without being missed. It is longer than upkeep takes to hand over its lead.
	grace = time.Minute
	// maxStep is how many instants of a schedule one transaction handles. The next one goes on.
	maxStep = 1000
)

// Decision is what a fire does. A store carries it out in the transaction in which it read the schedule.
type Decision struct {
	// Before is the schedule as the store read it, After as the store writes it.
	Before, After Schedule
	// Cancel lists jobs to cancel before the new jobs are stored.
	Cancel []sluice.ID
	// Jobs are the jobs to store. The store fills in what their queue's settings say.
	Jobs []sluice.Insert

	// Hand has the fires that a person asked for, if one did.
	Hand []Fire

	hand   []int // by job: its place in Hand
	listed bool  // a person asked for instants: the schedule keeps none of the fires
	now    time.Time

	next    time.Time // the next fire, also if MaxFires forbids it
	refusal string    // why the queue did not take the last refused job
}

// Open lists the jobs of the last fires that were not completed when the store last looked: unfinished ones, and dead or
// cancelled ones, which somebody may have requeued. A store passes their states to [Decide].
func (s Schedule) Open() (ids []sluice.ID) {
	for _, f := range s.Progress.Recent {
		if f.mayMove() {
			ids = append(ids, f.Job)
		}
	}
	return ids
}

// open reports whether the job of a fire was unfinished when the store last looked.
func (f Fire) open() bool { return f.State != "" && !f.State.Finished() }

// mayMove reports whether the job of a fire may have another state since the store last looked.
func (f Fire) mayMove() bool { return f.State != "" && f.State != sluice.StateCompleted }

// Decide decides what a schedule whose NextAt has come does, by the store's clock. States has the state of each job of
// [Schedule.Open] that the store still has.
func Decide(s Schedule, now time.Time, states map[sluice.ID]sluice.State) Decision {
	d := Decision{Before: s, After: s.clone(), now: feature.Instant(now)}
	d.learn(states)
	if s.PauseAfter > 0 && d.After.Progress.Failures >= s.PauseAfter {
		d.pause(d.After.failed())
		return d
	}
	t, err := s.timing()
	if err != nil {
		d.pause(sluice.Brief("this version of the program cannot read the schedule: " + err.Error()))
		return d
	}
	first := s.NextAt
	if resumed := s.Progress.Resumed; !resumed.IsZero() {
		if through := s.Progress.Through; through.After(resumed) {
			resumed = through
		}
		d.After.Progress.Resumed = time.Time{}
		if first, _ = t.next(resumed); d.After.spent() {
			first = time.Time{}
		}
		if d.After.NextAt = first; first.IsZero() || first.After(d.now) {
			return d
		}
	}
	due, next, rest := t.due(first, d.now)
	for i, at := range due {
		switch {
		case d.After.spent():
		case !s.wants(at, d.now, i == len(due)-1 && !rest):
			d.After.Progress.Missed++
		default:
			d.fire(at)
		}
	}
	d.After.Progress.Through = due[len(due)-1]
	d.next = next
	if d.After.NextAt = next; d.After.spent() {
		d.After.NextAt = time.Time{}
	}
	return d
}

// failed says why a schedule pauses itself.
func (s Schedule) failed() string {
	why := fmt.Sprintf("%d fires in a row have failed", s.Progress.Failures)
	for _, f := range slices.Backward(s.Progress.Recent) {
		switch {
		case f.State == sluice.StateDead:
			return why + ", the last because its job died"
		case f.Result == Refused:
			return why + ", the last because the queue refused its job: " + f.Reason
		}
	}
	return why
}

// spent reports whether a schedule has made all its jobs.
func (s Schedule) spent() bool { return s.MaxFires > 0 && s.Progress.Fired >= s.MaxFires }

// due lists the instants from a first one until now, at most maxStep, and the next instant. Rest says that the next one is
// due too.
func (t timing) due(first, now time.Time) (due []time.Time, next time.Time, rest bool) {
	for next = first; len(due) < maxStep; {
		due = append(due, next)
		var found bool
		if next, found = t.next(next); !found {
			return due, time.Time{}, false
		}
		if next.After(now) {
			return due, next, false
		}
	}
	return due, next, true
}

// wants reports whether a schedule makes a job at an instant that has come. Last: no later instant has come.
func (s Schedule) wants(at, now time.Time, last bool) bool {
	late := now.Sub(at)
	switch {
	case late <= grace:
		return true
	case late > s.CatchUpWindow:
		return false
	}
	return s.CatchUp == All || s.CatchUp == Last && last
}

// learn takes over the states of the jobs, and counts the dead ones in a row. A job that the store has deleted since counts as
// completed: queues keep dead jobs longest. A dead job that was requeued counts by its next end.
func (d *Decision) learn(states map[sluice.ID]sluice.State) {
	p := &d.After.Progress
	for i := range p.Recent {
		f := &p.Recent[i]
		if !f.mayMove() {
			continue
		}
		was := f.State
		f.State = states[f.Job]
		switch {
		case f.State == was, f.State == "" && was.Finished():
		case f.State == sluice.StateDead:
			p.Failures++
		case f.State == sluice.StateCompleted, f.State == "":
			p.Failures = 0
		case was == sluice.StateDead:
			p.Failures = max(0, p.Failures-1)
		}
	}
}

// pause pauses the schedule, as the act of upkeep.
func (d *Decision) pause(note string) {
	d.After.Paused, d.After.Note, d.After.NextAt = true, note, time.Time{}
	d.After.Version++
	d.After.ChangedAt, d.After.ChangedBy, d.After.Reason = d.now, upkeepAct(note).By, note
}

func upkeepAct(note string) sluice.Act { return sluice.Act{By: "upkeep", Reason: note} }

// Paused returns the act of upkeep that pauses the schedule. False: the decision does not pause the schedule.
func (d Decision) Paused() (sluice.Act, bool) {
	return upkeepAct(d.After.Note), d.After.Version != d.Before.Version
}

// fire decides about the fire at one instant.
func (d *Decision) fire(at time.Time) {
	open := d.After.Progress.Recent
	busy := slices.ContainsFunc(open, Fire.open)
	waits := slices.ContainsFunc(open, func(f Fire) bool { return f.State == sluice.StateQueued })
	switch {
	case busy && d.After.Overlap == Skip, waits && d.After.Overlap == QueueOne:
		d.After.Progress.Skipped++
		d.After.Progress.keep(Fire{At: at, Result: Skipped})
		return
	case d.After.Overlap == CancelOther:
		d.drop()
		d.Cancel = d.Before.Open()
		d.Cancel = slices.DeleteFunc(d.Cancel, func(id sluice.ID) bool { return !d.isOpen(id) })
	}
	job := d.After.insert(at, d.After.jobID(at))
	d.After.due(&job, at, d.now)
	d.add(job, Fire{At: at, Job: job.ID, Result: Enqueued, State: sluice.StateQueued})
}

func (d *Decision) isOpen(id sluice.ID) bool {
	return slices.ContainsFunc(d.After.Progress.Recent, func(f Fire) bool { return f.Job == id && f.open() })
}

// drop takes back the jobs of earlier fires of this decision, which the next fire would cancel at once.
func (d *Decision) drop() {
	for k := range d.Jobs {
		d.After.Progress.Fired--
		d.After.Progress.Skipped++
		if f := d.of(k); f != nil {
			f.Job, f.Result, f.State = sluice.ID{}, Skipped, ""
		}
	}
	d.Jobs = nil
}

// add adds a job and its fire.
func (d *Decision) add(job sluice.Insert, f Fire) {
	d.After.Progress.Fired++
	d.After.Progress.keep(f)
	d.Jobs = append(d.Jobs, job)
}

// keep adds a fire to the last ones. The oldest whose job has ended makes room: the rule for overlaps needs the others. If no job
// has ended, a fire in the middle makes room, because the oldest jobs end next.
func (p *Progress) keep(f Fire) {
	p.Recent = append(p.Recent, f)
	if len(p.Recent) <= RecentFires {
		return
	}
	place := slices.IndexFunc(p.Recent, func(f Fire) bool { return !f.open() })
	if place < 0 {
		place = RecentFires / 2
	}
	p.Recent = slices.Delete(p.Recent, place, place+1)
}

// of returns the fire of a job of the decision. Nil: the schedule does not keep it.
func (d *Decision) of(job int) *Fire {
	recent := d.After.Progress.Recent
	for i, f := range slices.Backward(recent) {
		if f.Job == d.Jobs[job].ID && !d.listed {
			return &recent[i]
		}
	}
	return nil
}

// Receive takes over the receipts of Jobs, in their order. A fire whose job is a duplicate has made no job.
func (d *Decision) Receive(receipts []sluice.Receipt) {
	for k, r := range receipts {
		if !r.Duplicate {
			continue
		}
		if d.Hand != nil {
			f := &d.Hand[d.hand[k]]
			f.Job, f.Result, f.State = r.ID, Duplicate, ""
		} else {
			d.After.Progress.Fired--
			d.After.Progress.Skipped++
		}
		if f := d.of(k); f != nil {
			f.Job, f.Result, f.State = r.ID, Duplicate, ""
		}
	}
	d.goOn()
}

// refuse takes back jobs that their queue does not take, by their places.
func (d *Decision) refuse(reasons map[int]error) {
	if d.Hand != nil {
		d.refuseByHand(reasons)
		return
	}
	p := &d.After.Progress
	var jobs []sluice.Insert
	for k, job := range d.Jobs {
		reason := reasons[k]
		if reason == nil {
			jobs = append(jobs, job)
			continue
		}
		d.refusal = sluice.Brief(reason.Error())
		p.Fired, p.Refused, p.Failures = p.Fired-1, p.Refused+1, p.Failures+1
		if f := d.of(k); f != nil {
			f.Job, f.Result, f.State, f.Reason = sluice.ID{}, Refused, "", d.refusal
		}
	}
	if d.Jobs = jobs; len(jobs) == 0 {
		d.Cancel = nil // the job that runs stays
	}
	d.goOn()
}

// goOn restores the next fire of a schedule that seemed to have made all its jobs.
func (d *Decision) goOn() {
	if d.Hand == nil && !d.After.spent() && d.After.NextAt.IsZero() {
		d.After.NextAt = d.next
	}
}
