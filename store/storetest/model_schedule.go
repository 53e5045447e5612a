package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// The model carries out on its own jobs what package schedule decides, and compares the stored schedules with that.

// scheduleNames are the schedules of a run. Their jobs differ in priority, because the order of jobs that are due at the same
// instant is nobody's promise.
func (m *machine) scheduleNames() []string { return []string{m.queue + "-a", m.queue + "-b"} }

// pickSchedule draws a schedule that is stored.
func (m *machine) pickSchedule(t *rapid.T) string {
	var stored []string
	for _, name := range m.scheduleNames() {
		if m.schedules[name] {
			stored = append(stored, name)
		}
	}
	if len(stored) == 0 {
		t.Skip("there are no schedules")
	}
	return rapid.SampledFrom(stored).Draw(t, "schedule")
}

func (m *machine) setSchedule(t *rapid.T) {
	place := rapid.IntRange(0, 1).Draw(t, "schedule")
	name := m.scheduleNames()[place]
	m.tick()
	saved, err := schedule.Set(m.ctx, m.store(t), name, schedule.Definition{
		Queue: m.queue, Every: time.Duration(rapid.SampledFrom([]int{5, 7, 60}).Draw(t, "minutes")) * minute, Priority: 4 + 2*place,
		Key:        rapid.SampledFrom([]string{"", "", "a"}).Draw(t, "key"),
		Overlap:    rapid.SampledFrom([]schedule.Overlap{schedule.Skip, schedule.QueueOne, schedule.QueueAll, schedule.CancelOther}).Draw(t, "overlap"),
		CatchUp:    rapid.SampledFrom([]schedule.CatchUp{schedule.Last, schedule.All, schedule.None}).Draw(t, "catch up"),
		MaxFires:   rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "most fires"),
		PauseAfter: rapid.SampledFrom([]int{0, 2}).Draw(t, "pause after"),
	}, person("model"))
	m.must(err)
	if m.schedules[name] = true; !saved.Paused && saved.MaxFires == 0 && saved.NextAt.IsZero() {
		m.Fatalf("schedule %s has no next fire", name)
	}
}

func (m *machine) pauseSchedule(t *rapid.T) {
	name := m.pickSchedule(t)
	m.tick()
	s, err := schedule.Pause(m.ctx, m.store(t), name, "model", person("model"))
	m.must(err)
	if rapid.Bool().Draw(t, "resume") {
		s, err = schedule.Resume(m.ctx, m.store(t), name, person("model"))
		m.must(err)
	}
	if s.Paused && !s.NextAt.IsZero() {
		m.Fatalf("the paused schedule %s fires at %s", name, s.NextAt)
	}
}

func (m *machine) deleteSchedule(t *rapid.T) {
	name := m.pickSchedule(t)
	m.tick()
	m.must(schedule.Delete(m.ctx, m.store(t), name, person("model")))
	delete(m.schedules, name)
}

// dropSchedules ends the schedules of a run, so that they do not fire in the next.
func (m *machine) dropSchedules() {
	for name := range m.schedules {
		_ = schedule.Delete(m.ctx, m.bench.Store, name, person("model"))
	}
}

// deleteQueue is refused while a schedule fires into the queue.
func (m *machine) deleteQueue(t *rapid.T) {
	m.pickSchedule(t)
	m.tick()
	err := m.store(t).DeleteQueue(m.ctx, m.queue, person("model"))
	var full *sluice.QueueNotEmptyError
	if !errors.As(err, &full) || len(full.Holds.Schedules) != len(m.schedules) {
		m.Fatalf("delete a queue with %d schedules: %v", len(m.schedules), err)
	}
}

func (m *machine) trigger(t *rapid.T) {
	name := m.pickSchedule(t)
	before := m.readSchedule(name)
	m.tick()
	fire, err := schedule.Trigger(m.ctx, m.store(t), name, person("model"), nil)
	m.must(err)
	d := schedule.DecideByHand(before, before.Now, nil, person("model"))
	options := d.Jobs[0].EnqueueOptions
	receipt := m.modelEnqueue(withID(options, fire.Job))
	if receipt.Duplicate != (fire.Result == schedule.Duplicate) || receipt.ID != fire.Job {
		m.Fatalf("trigger %s: %+v, the model has %+v", name, fire, receipt)
	}
}

// withID gives options an ID. A duplicate has the ID of its twin, and the model must not find the job under its own.
func withID(o sluice.EnqueueOptions, id sluice.ID) sluice.EnqueueOptions {
	o.ID = id
	return o
}

func (m *machine) readSchedule(name string) schedule.Schedule {
	s, err := schedule.Read(m.ctx, m.bench.Other, name)
	m.must(err)
	return s
}

// fireSchedules fires what is due, through one of two processes, as after a failover.
func (m *machine) fireSchedules(t *rapid.T) {
	var before []schedule.Schedule
	for _, name := range m.scheduleNames() {
		if m.schedules[name] {
			before = append(before, m.readSchedule(name))
		}
	}
	if len(before) == 0 {
		t.Skip("there are no schedules")
	}
	slices.SortStableFunc(before, func(a, b schedule.Schedule) int { return a.NextAt.Compare(b.NextAt) })
	m.tick()
	_, err := schedule.Given(m.store(t)).FireSchedules(m.ctx, 1000, nil)
	m.must(err)
	if len(before) == 2 && before[0].NextAt.Equal(before[1].NextAt) && m.lostKey(before[0], before[1]) {
		slices.Reverse(before)
	}
	var batch schedule.Batch
	for _, s := range before {
		after := m.readSchedule(s.Name)
		if s.NextAt.IsZero() || s.NextAt.After(after.Now) {
			m.sameCourse("a schedule that is not due", after, s)
			continue
		}
		d := schedule.Decide(s, after.Now, m.states(s.Open()))
		batch = append(batch, &d)
	}
	for _, id := range batch.Cancel() {
		if sluice.MoveOf(sluice.EventCancel).Allows(m.jobs[id].state) {
			m.noteStray(id)
			m.end(id, sluice.StateCancelled)
		}
	}
	for _, d := range batch {
		var receipts []sluice.Receipt
		for _, job := range d.Jobs {
			receipts = append(receipts, m.fireJob(job.EnqueueOptions))
		}
		d.Receive(receipts)
	}
	for _, d := range batch {
		m.sameCourse("a fire", m.readSchedule(d.After.Name), d.After)
	}
}

// lostKey reports whether the store gave a key to the second of two schedules that fired at one instant. Nobody promises which
// of them takes it: the model follows the store.
func (m *machine) lostKey(first, second schedule.Schedule) bool {
	var taken []sluice.ID
	for _, fire := range m.readSchedule(second.Name).Progress.Recent {
		if !fire.At.Before(second.NextAt) && fire.Result == schedule.Enqueued {
			taken = append(taken, fire.Job)
		}
	}
	return slices.ContainsFunc(m.readSchedule(first.Name).Progress.Recent, func(fire schedule.Fire) bool {
		return !fire.At.Before(first.NextAt) && fire.Result == schedule.Duplicate && slices.Contains(taken, fire.Job)
	})
}

// fireJob enqueues the job of a fire, unless the fire has made its job before.
func (m *machine) fireJob(o sluice.EnqueueOptions) sluice.Receipt {
	if m.jobs[o.ID] != nil {
		return sluice.Receipt{ID: o.ID, Duplicate: true}
	}
	return m.modelEnqueue(o)
}

func (m *machine) states(ids []sluice.ID) map[sluice.ID]sluice.State {
	states := make(map[sluice.ID]sluice.State)
	for _, id := range ids {
		states[id] = m.jobs[id].state
	}
	return states
}

// sameCourse makes sure that a stored schedule has the course of the model's.
func (m *machine) sameCourse(what string, got, want schedule.Schedule) {
	m.Helper()
	text := func(s schedule.Schedule) string {
		progress, err := json.Marshal(s.Progress)
		m.must(err)
		return fmt.Sprintf("next %s, version %d, paused %t %q: %s", s.NextAt, s.Version, s.Paused, s.Note, progress)
	}
	if text(got) != text(want) {
		m.Fatalf("%s: schedule %s\nhas %s\nwant %s", what, got.Name, text(got), text(want))
	}
}
