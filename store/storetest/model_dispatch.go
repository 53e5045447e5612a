package storetest

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
)

// intend intends a run of any claim that was ever made.
func (m *machine) intend(t *rapid.T) {
	if len(m.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	m.tick()
	claim := m.pickClaim(t)
	in := sluice.Intent{
		ID: claim.id, Token: claim.token, Ref: rapid.SampledFrom([]string{"first", "first", "second"}).Draw(t, "ref"),
		Engine: rapid.SampledFrom([]string{"temporal", "temporal", "local"}).Draw(t, "engine"), Lease: 150 * time.Second,
	}
	errs, err := m.store(t).Intend(m.ctx, []sluice.Intent{in})
	m.must(err)
	m.agreeOn("intend", errs[0], m.modelIntend(in))
}

func (m *machine) modelIntend(in sluice.Intent) error {
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
	filter := sluice.DispatchFilter{Queue: m.queue, Overdue: rapid.Bool().Draw(t, "overdue"), Limit: rapid.IntRange(1, 4).Draw(t, "limit")}
	if len(m.order) > 0 && rapid.Bool().Draw(t, "go on behind one") {
		filter.After, _ = m.pickJob(t)
	}
	found, err := m.store(t).Dispatches(m.ctx, filter)
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
