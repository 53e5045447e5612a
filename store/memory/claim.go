package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/internal/storing"
)

// Claim hands out due jobs by priority, then by due time.
func (s *Store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	if err := request.Check(); err != nil {
		return sluice.Claimed{}, err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Claimed{}, err
	}
	defer leave()
	if request.Again {
		if jobs := s.claimedBefore(request.Token); len(jobs) > 0 {
			return sluice.Claimed{Jobs: jobs, Paced: request.ReportsBegun}, nil
		}
	}
	if len(request.Queues) > 0 {
		return s.claimTogether(request), nil
	}
	l := s.backlog(request.Queue)
	settings := s.settings(request.Queue)
	if err := request.CheckRunner(settings.Engine); err != nil {
		return sluice.Claimed{}, err
	}
	now := s.now()
	s.hear(&l.pace, request, settings, now)
	shared := s.shared(settings)
	for _, of := range shared {
		s.hear(of.pace, request, of.figures, now)
	}
	if settings.PausedAt(now) || request.Limit == 0 {
		return sluice.Claimed{NextDue: -1}, nil
	}
	s.sortOut(l, request.Queue)
	s.letIn(l, judging(shared), now, request.ClaimAhead)
	bucket := l.bucket.Filled(settings, now)
	room := flow.RoomFor(request.Limit, settings, bucket, &l.window, now, l.inFlight())
	for _, of := range shared {
		room = room.Least(s.roomOf(of, request.Limit, now))
	}
	jobs, err := s.claimFrom(l, request, room.Jobs, now)
	if err != nil {
		return sluice.Claimed{}, err
	}
	paced := l.take(request, len(jobs), settings, now)
	for _, of := range shared {
		paced = of.take(request, len(jobs), of.figures, now) || paced
	}
	if l.stopped != nil {
		room = *l.stopped
		room.Jobs = len(jobs)
	}
	letIn := s.untilLetIn(l, now)
	untilNext := func() (time.Duration, error) {
		return sooner(s.untilNext(l, now, request.ClaimAhead, room.Jobs > 0), letIn), nil
	}
	out, err := room.Answer(len(jobs), request.Limit, untilNext)
	if l.byTenant && !out.Limited && len(jobs) < request.Limit {
		out.NextDue, _ = untilNext()
		out.Full = l.full()
	}
	if len(l.parked) > 0 && len(jobs) < request.Limit && !out.Limited {
		out.Full, out.NextDue = true, sooner(out.NextDue, letIn)
	}
	s.tally.Claimed(jobs)
	out.Jobs, out.Paced = jobs, paced
	return out, err
}

// claimedBefore returns the jobs that a claim still has, in the order of claims.
func (s *Store) claimedBefore(token sluice.Token) (jobs []*sluice.Claim) {
	for _, l := range s.backlogs {
		for _, j := range l.claimed {
			if token.Proves(j.token) {
				jobs = append(jobs, &sluice.Claim{Job: j.copy(), Token: j.token})
			}
		}
	}
	slices.SortFunc(jobs, func(a, b *sluice.Claim) int { return inClaimOrder(&a.Job, &b.Job) })
	return jobs
}

// inClaimOrder compares jobs by priority, then by due time, then by id.
func inClaimOrder(a, b *sluice.Job) int {
	return cmp.Or(a.Priority-b.Priority, a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:]))
}

// claimTogether claims from several queues, and skips queues that have limits.
func (s *Store) claimTogether(request sluice.ClaimRequest) sluice.Claimed {
	out, now := sluice.Claimed{NextDue: -1}, s.now()
	for _, q := range request.Queues {
		settings := s.settings(q.Queue)
		l := s.backlog(q.Queue)
		s.sortOut(l, q.Queue)
		s.letIn(l, nil, now, request.ClaimAhead)
		if settings.PausedAt(now) || settings.Engine != "" || flow.Limited(settings) || l.byTenant {
			continue
		}
		one := request.Of(q, request.Limit-len(out.Jobs))
		out.Jobs = append(out.Jobs, s.take(&l.waiting, one, one.Limit, now)...)
	}
	s.tally.Claimed(out.Jobs)
	return out
}

// hear records when the jobs of earlier claims began, for a rate.
func (s *Store) hear(l *pace, request sluice.ClaimRequest, settings sluice.Settings, now time.Time) {
	if settings.Rate.IsZero() {
		return
	}
	if by := l.bucket.SetBack(now); by > 0 {
		l.window.SetBack(by, now)
		l.bucket = l.bucket.Filled(settings, now)
	}
	l.window.Hear(request.Begun, settings, now)
	for _, p := range l.window.Overdue(now) {
		l.window.Held(p, s.heldBy(p.Token), settings, now, request.Lease/2)
	}
	l.window.Forget(now.Add(-flow.Kept(settings)))
}

// heldBy returns how many jobs of a claim its holder still has.
func (s *Store) heldBy(token sluice.Token) (held int) {
	for _, l := range s.backlogs {
		for _, j := range l.claimed {
			if j.token == token {
				held++
			}
		}
	}
	return held
}

// take counts claimed jobs against a rate, and reports whether there is one.
func (p *pace) take(request sluice.ClaimRequest, jobs int, settings sluice.Settings, now time.Time) (paced bool) {
	if settings.Rate.IsZero() {
		return false
	}
	p.bucket = p.bucket.Filled(settings, now).Take(jobs)
	if jobs > 0 {
		p.window.Take(request, jobs, settings, now, now)
	}
	return true
}

// claimFrom claims up to limit jobs of a queue.
func (s *Store) claimFrom(l *backlog, request sluice.ClaimRequest, limit int, now time.Time) ([]*sluice.Claim, error) {
	if l.byTenant {
		return s.claimByTenant(l, request, limit, now)
	}
	return s.take(&l.waiting, request, limit, now), nil
}

// take claims up to limit of the waiting jobs.
func (s *Store) take(w *waiting, request sluice.ClaimRequest, limit int, now time.Time) []*sluice.Claim {
	var jobs []*sluice.Claim
	for _, priority := range request.Priorities() {
		for len(jobs) < limit {
			j := s.nextDue(&w[priority], now, request.ClaimAhead)
			if j == nil {
				break
			}
			w[priority].drop()
			if held, perKey := s.admits(j, now); perKey {
				s.park(j)
				continue
			} else if held.Jobs == 0 {
				w[priority].add(j.DueAt, j.ID)
				s.backlog(j.Queue).stopped = &held
				return jobs
			}
			jobs = append(jobs, s.claim(j, request, now))
		}
	}
	return jobs
}

// nextDue finds the first job of a heap that may be claimed, and drops stale and expired entries on
// the way. A job that will have expired when it falls due is not claimed early.
func (s *Store) nextDue(h *dueHeap, now time.Time, lead time.Duration) *job {
	for {
		w, ok := h.first()
		if !ok || w.at.After(now.Add(lead)) {
			return nil
		}
		if j := s.fresh(w); j != nil && !expired(j, later(now, w.at)) {
			return j
		}
		h.drop()
	}
}

// fresh returns the job of an entry, or nil if the job has moved since.
func (s *Store) fresh(w place) *job {
	j := s.jobs[w.id]
	if j == nil || !j.live || j.State != sluice.StateQueued || !j.DueAt.Equal(w.at) || !j.BlockedBy.IsZero() {
		return nil
	}
	return j
}

func expired(j *job, now time.Time) bool {
	return !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(now)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *Store) claim(j *job, request sluice.ClaimRequest, now time.Time) *sluice.Claim {
	from := j.State
	j.State, j.token, j.Holder = sluice.StateClaimed, request.Token, request.Holder
	j.ClaimedAt, j.LeaseUntil = now, now.Add(request.Lease)
	l := s.backlog(j.Queue)
	l.claimed[j.ID] = j
	l.held[j.Tenant]++
	s.takeFromKey(j, now)
	if s.settings(j.Queue).Audit == sluice.AuditFull {
		s.tell(j, sluice.EventClaim, from, sluice.Act{By: request.Holder})
	}
	return &sluice.Claim{Job: j.copy(), Token: j.token}
}

// untilNext returns how long until a job may be claimed, so long before it is due. Served: the claim has looked at the tenant queues
// that wake until then. Negative: no job waits for a time.
func (s *Store) untilNext(l *backlog, now time.Time, ahead time.Duration, served bool) time.Duration {
	due, some := l.wakesAt()
	if !l.byTenant {
		due, some = s.firstDue(&l.waiting)
	}
	switch {
	case !some:
		return -1
	case l.byTenant:
		return flow.UntilWake(due.Sub(now), ahead, served)
	}
	return max(due.Sub(now)-ahead, 0)
}

// firstDue returns when the first waiting job is due, if one waits.
func (s *Store) firstDue(w *waiting) (due time.Time, some bool) {
	for priority := range w {
		if first, waits := s.firstOf(&w[priority]); waits && (!some || first.Before(due)) {
			due, some = first, true
		}
	}
	return due, some
}

// firstOf is firstDue of one priority, and drops stale entries.
func (s *Store) firstOf(h *dueHeap) (due time.Time, some bool) {
	for {
		w, ok := h.first()
		if !ok {
			return time.Time{}, false
		}
		if s.fresh(w) != nil {
			return w.at, true
		}
		h.drop()
	}
}

// NextDue returns how long until the first waiting job of each queue is due.
func (s *Store) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now, out := s.now(), make(map[string]time.Duration)
	for _, name := range queues {
		settings := s.settings(name)
		due, waits := s.firstOfAll(s.backlog(name))
		if settings.PausedAt(now) {
			due, waits = later(due, settings.PausedUntil), waits && !settings.PausedUntil.IsZero()
		}
		if waits {
			out[name] = due.Sub(now)
		}
	}
	return out, nil
}

// firstOfAll is firstDue of a queue, its tenant queues, and its jobs that wait for their limit keys.
func (s *Store) firstOfAll(l *backlog) (due time.Time, some bool) {
	due, some = s.firstDue(&l.waiting)
	for _, line := range l.tenantQueues {
		if first, waits := s.firstDue(&line.waiting); waits && (!some || first.Before(due)) {
			due, some = first, true
		}
	}
	for _, lane := range l.parked {
		if j := s.firstParked(lane); j != nil && (!some || j.DueAt.Before(due)) {
			due, some = j.DueAt, true
		}
	}
	return due, some
}

// Renew extends claims, and returns the lost ones.
func (s *Store) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var lost []sluice.ID
	for _, r := range renewals {
		j := s.jobs[r.ID]
		if j == nil || !j.live || j.State != sluice.StateClaimed || !r.Token.Proves(j.token) {
			lost = append(lost, r.ID)
			continue
		}
		j.LeaseUntil = s.now().Add(r.Lease)
	}
	return lost, nil
}

// RecordIntent records the runs that a dispatcher is about to request from an engine.
func (s *Store) RecordIntent(ctx context.Context, intents []engine.Intent) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	errs := make([]error, len(intents))
	for i, in := range intents {
		errs[i] = s.intend(in)
	}
	return errs, nil
}

func (s *Store) intend(in engine.Intent) error {
	if err := in.Check(); err != nil {
		return err
	}
	j := s.jobs[in.ID]
	switch {
	case j == nil || !j.live || j.State != sluice.StateClaimed || !in.Token.Proves(j.token):
		s.tellLost(in.ID, j, "intend", "")
		return sluice.ErrLost
	case j.Engine != "" && (j.Engine != in.Engine || j.Ref != in.Ref):
		return engine.OtherRun(in)
	}
	j.Ref, j.Engine, j.LeaseUntil = in.Ref, in.Engine, s.now().Add(in.Lease)
	return nil
}

// SaveCheckpoint stores the progress of a claimed job.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	if err := sluice.CheckResult("checkpoint", checkpoint); err != nil {
		return err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil || !j.live || j.State != sluice.StateClaimed || !token.Proves(j.token) {
		s.tellLost(id, j, "checkpoint", "")
		return sluice.ErrLost
	}
	j.Checkpoint = bytes.Clone(checkpoint)
	return nil
}

// copy returns a copy of the job that callers may keep.
func (j *job) copy() sluice.Job {
	out := j.Job
	out.Payload = bytes.Clone(j.Payload)
	out.Checkpoint = bytes.Clone(j.Checkpoint)
	out.Result, _ = storing.Result(bytes.Clone(j.Result))
	out.Labels = maps.Clone(j.Labels)
	out.After = slices.Clone(j.After)
	return out
}
