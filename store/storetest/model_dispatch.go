package storetest

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// intend intends a run of any claim that was ever made.
func (m *machine) intend(t *rapid.T) {
	if len(m.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	m.tick()
	claim := m.pickClaim(t)
	in := engine.Intent{
		ID: claim.id, Token: claim.token, Ref: rapid.SampledFrom([]string{"first", "first", "second"}).Draw(t, "ref"),
		Engine: rapid.SampledFrom([]string{"temporal", "temporal", "local"}).Draw(t, "engine"), Lease: 150 * time.Second,
	}
	errs, err := engine.Given(m.store(t)).RecordIntent(m.ctx, []engine.Intent{in})
	m.must(err)
	m.agreeOn("intend", errs[0], m.modelIntend(in))
}

func (m *machine) modelIntend(in engine.Intent) error {
	job := m.jobs[in.ID]
	switch {
	case job.token != in.Token || job.state != sluice.StateClaimed:
		return sluice.ErrLost
	case job.engine != "" && (job.engine != in.Engine || job.ref != in.Ref):
		return sluice.ErrNotAllowed
	}
	job.ref, job.engine, job.lease = in.Ref, in.Engine, m.now+in.Lease
	return nil
}

// dispatches lists runs that are intended or under way.
func (m *machine) dispatches(t *rapid.T) {
	m.tick()
	filter := engine.DispatchFilter{Queue: m.queue, Overdue: rapid.Bool().Draw(t, "overdue"), Limit: rapid.IntRange(1, 4).Draw(t, "limit")}
	if len(m.order) > 0 && rapid.Bool().Draw(t, "go on behind one") {
		filter.After, _ = m.pickJob(t)
	}
	found, err := engine.Given(m.store(t)).Dispatches(m.ctx, filter)
	m.must(err)
	var got, want []sluice.ID
	for _, c := range found {
		got = append(got, c.ID)
		if job := m.jobs[c.ID]; c.Token != job.token || c.Ref != job.ref || c.Engine != job.engine {
			m.Fatalf("the run of %s is listed as %q at %q, the model has %+v", c.ID, c.Ref, c.Engine, *job)
		}
	}
	for id, j := range m.jobs {
		claimed := j.state == sluice.StateClaimed
		listed := claimed && (!filter.Overdue || j.lease < m.now) || j.state == sluice.StateDispatched && !filter.Overdue
		if listed && j.engine != "" && bytes.Compare(id[:], filter.After[:]) > 0 {
			want = append(want, id)
		}
	}
	slices.SortFunc(want, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	if want = want[:min(len(want), filter.Limit)]; !slices.Equal(got, want) {
		m.Fatalf("listed the runs of %v, want %v", got, want)
	}
}

// forgetRun is what becomes of a job's run when the job waits again.
func (j *modelJob) forgetRun() { j.ref, j.engine = "", "" }

// modelStray is what the model knows of a run whose job has ended, and which may be open.
type modelStray struct {
	job               sluice.ID
	ref               string
	generation        int
	started           bool
	beside, terminate bool
	limitKey          string // of the job when the run began, as its cost
	cost              int
}

// noteStray notes the run of a job that is about to end without its engine's word.
func (m *machine) noteStray(id sluice.ID) {
	job := m.jobs[id]
	run := modelStray{
		job: id, ref: job.ref, generation: job.generation, started: job.state == sluice.StateDispatched, limitKey: job.limitKey, cost: job.cost,
	}
	known := func(s modelStray) bool { return s.job == id && s.ref == job.ref }
	if job.engine != "" && !slices.ContainsFunc(m.strays, known) {
		m.strays = append(m.strays, run)
	}
}

// waitsForRun reports whether a run of a job may be open, and nobody has let the job run beside it.
func (m *machine) waitsForRun(id sluice.ID) bool {
	return slices.ContainsFunc(m.strays, func(s modelStray) bool { return s.job == id && !s.beside })
}

func (m *machine) letBeside(id sluice.ID, act sluice.Act) {
	for i := range m.strays {
		if m.strays[i].job == id && act.BesideOpenRun {
			m.strays[i].beside = true
		}
	}
}

// forget forgets one of the orphan runs.
func (m *machine) forget(t *rapid.T) {
	if len(m.strays) == 0 {
		t.Skip("there are no orphan runs")
	}
	m.tick()
	i := rapid.IntRange(0, len(m.strays)-1).Draw(t, "run")
	run := m.strays[i]
	m.must(engine.Given(m.store(t)).ForgetOrphanRuns(m.ctx, []engine.OrphanRun{{JobID: run.job, Ref: run.ref}}))
	m.strays = slices.Delete(m.strays, i, i+1)
	if m.jobs[run.job].blockedBy == run.job {
		m.look(run.job)
	}
}

// terminate wants the orphan runs of a job ended by force.
func (m *machine) terminate(t *rapid.T) {
	id, _ := m.pickJob(t)
	m.tick()
	errs, err := m.store(t).Terminate(m.ctx, []sluice.ID{id}, person("model"))
	m.must(err)
	want := sluice.ErrNotAllowed
	for i := range m.strays {
		if m.strays[i].job == id {
			m.strays[i].terminate, want = true, nil
		}
	}
	m.agreeOn("terminate", errs[0], want)
}

// agreeOnStrays makes sure that the store lists the model's orphan runs.
func (m *machine) agreeOnStrays() {
	runs, err := engine.Given(m.bench.Store).OrphanRuns(m.ctx, m.queue, engine.OrphanRun{}, 1000)
	m.must(err)
	got := make(map[modelStray]bool, len(runs))
	for _, run := range runs {
		got[modelStray{job: run.JobID, ref: run.Ref, generation: run.Generation, started: run.Started, beside: run.Beside, terminate: run.Terminate}] = true
	}
	for _, want := range m.strays {
		want.limitKey, want.cost = "", 0 // only claims tell of them
		if len(runs) != len(m.strays) || !got[want] {
			m.Fatalf("the store lists the orphan runs %+v, the model has %+v", runs, m.strays)
		}
	}
}
