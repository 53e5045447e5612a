package storetest

import (
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
)

// agree makes sure, after every verb, that the store's jobs are the model's.
func (m *machine) agree(*rapid.T) {
	waitsFor := make(map[sluice.ID]sluice.ID)
	for _, id := range m.order {
		want := m.jobs[id]
		got, err := m.bench.Store.Job(m.ctx, id)
		m.must(err)
		waitsFor[id] = got.BlockedBy
		if m.parks(id, got.BlockedBy) {
			got.BlockedBy = sluice.ID{}
		}
		if got.State == sluice.StateQueued && got.BlockedBy != want.blockedBy {
			m.look(id) // a store may look again when it likes, and then tell of another of those that the job waits for
			m.waitAgain(want, got.BlockedBy)
		}
		if got.State != want.state || got.Attempts != want.attempts || got.Releases != want.releases || got.Recoveries != want.recoveries ||
			got.Generation != want.generation || got.BlockedBy != want.blockedBy || got.LimitKey != want.limitKey || got.Cost != want.cost || got.Ref != want.ref || got.ExpiresAt.IsZero() != (want.expires == 0) || !got.State.Finished() && got.Engine != want.engine {
			m.Fatalf("job %s is %s with attempts %d, releases %d, recoveries %d, generation %d, blocked by %s, limit key %q, cost %d, run %q at %q, expires_at %s; the model has %+v",
				id, got.State, got.Attempts, got.Releases, got.Recoveries, got.Generation, got.BlockedBy, got.LimitKey, got.Cost, got.Ref, got.Engine, got.ExpiresAt, *want)
		}
	}
	m.agreeOnWaits(waitsFor)
	m.agreeOnStrays()
	m.agreeOnHolds()
	m.agreeOnBatches()
	m.agreeOnFlows()
	if m.bench.Astray != nil {
		if astray := m.bench.Astray(); len(astray) > 0 {
			m.Fatalf("rows that do not agree with their jobs: %s", astray)
		}
	}
}

// waitAgain lets a queued job wait again for a job that it had passed: a store may look at all of them anew, and that one has
// been requeued since.
func (m *machine) waitAgain(job *modelJob, other sluice.ID) {
	if !slices.Contains(job.after, other) || slices.Contains(job.rest, other) || !m.lives(other) || m.jobs[other].generation < 2 {
		return
	}
	job.rest, job.blockedBy = append(job.rest, other), other
}

// agreeOnWaits makes sure that no jobs wait for each other in a circle.
func (m *machine) agreeOnWaits(waitsFor map[sluice.ID]sluice.ID) {
	for id := range waitsFor {
		for at, steps := id, 0; !waitsFor[at].IsZero() && waitsFor[at] != at; at, steps = waitsFor[at], steps+1 {
			if steps > len(waitsFor) {
				m.Fatalf("job %s waits for itself by way of %s", id, waitsFor[at])
			}
		}
	}
}

// agreeOnNextDue checks that a claim without a job says when to come again, at the latest when the next job may be claimed if
// nothing ends until then. One that found the queue at a limit may leave that open.
func (m *machine) agreeOnNextDue(claimed sluice.Claimed, request sluice.ClaimRequest) {
	open := (claimed.Limited || claimed.Full) && claimed.NextDue < 0
	if len(claimed.Jobs) > 0 || open || m.keyed() && !m.limit.Rate.IsZero() {
		return
	}
	next := time.Duration(math.MaxInt64)
	for _, j := range m.jobs {
		later := j.state == sluice.StateQueued && j.due > m.now+request.ClaimAhead && j.due < next
		if later && len(m.admitted(m.claimable(j.due-m.now), m.room(1))) > 0 {
			next = j.due
		}
	}
	wait := next - request.ClaimAhead - m.now
	if next < math.MaxInt64 && (claimed.NextDue < 0 || claimed.NextDue > wait+patience) {
		m.Fatalf("a claim of up to %d took %d; the next look is in %s, though a job may go in %s", request.Limit, len(claimed.Jobs), claimed.NextDue, wait)
	}
}

// patience is how long a step of the model may be under way.
const patience = 10 * time.Second
