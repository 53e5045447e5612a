package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// Claim hands out jobs that are due.
func (s *Store) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Claimed{}, err
	}
	defer leave()
	l := s.lane(request.Queue)
	settings := s.settings(request.Queue)
	now := s.now()
	if settings.PausedAt(now) {
		return sluice.Claimed{NextDue: -1}, nil
	}
	bucket := l.bucket.Filled(settings, now)
	room := flow.RoomFor(request.Limit, settings, bucket, l.inFlight())
	var jobs []*sluice.Claim
	for _, priority := range request.Priorities() {
		for len(jobs) < room.Jobs {
			j := s.nextDue(&l.waiting[priority], now)
			if j == nil {
				break
			}
			l.waiting[priority].drop()
			jobs = append(jobs, s.claim(j, request, now))
		}
	}
	if settings.Rate > 0 {
		l.bucket = bucket.Take(len(jobs))
	}
	out, err := room.Answer(len(jobs), request.Limit, func() (time.Duration, error) { return s.untilNext(l, now), nil })
	out.Jobs = jobs
	return out, err
}

// nextDue looks at the first job of a heap that may be claimed, past stale and expired entries.
func (s *Store) nextDue(h *dueHeap, now time.Time) *job {
	for {
		w, ok := h.first()
		if !ok || w.at.After(now) {
			return nil
		}
		if j := s.fresh(w); j != nil && !expired(j, now) {
			return j
		}
		h.drop()
	}
}

// fresh gives the job of an entry, unless the job has moved since.
func (s *Store) fresh(w waiting) *job {
	j := s.jobs[w.id]
	if j == nil || !j.live || j.State != sluice.StateQueued || !j.DueAt.Equal(w.at) || !j.BlockedBy.IsZero() {
		return nil
	}
	return j
}

func expired(j *job, now time.Time) bool {
	return !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(now)
}

func (s *Store) claim(j *job, request sluice.ClaimRequest, now time.Time) *sluice.Claim {
	from := j.State
	j.State, j.token, j.Holder = sluice.StateClaimed, request.Token, request.Holder
	j.ClaimedAt, j.LeaseUntil = now, now.Add(request.Lease)
	s.lane(j.Queue).claimed[j.ID] = j
	if s.settings(j.Queue).Audit == sluice.AuditFull {
		s.tell(j, sluice.EventClaim, from, sluice.Act{By: request.Holder})
	}
	return &sluice.Claim{Job: j.copy(), Token: j.token}
}

func (s *Store) untilNext(l *lane, now time.Time) time.Duration {
	next := time.Duration(-1)
	for priority := range l.waiting {
		h := &l.waiting[priority]
		for {
			w, ok := h.first()
			if !ok {
				break
			}
			if s.fresh(w) == nil {
				h.drop()
				continue
			}
			if wait := max(w.at.Sub(now), 0); next < 0 || wait < next {
				next = wait
			}
			break
		}
	}
	return next
}

// Renew gives claims more time.
func (s *Store) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var lost []sluice.ID
	for _, r := range renewals {
		j := s.jobs[r.ID]
		if j == nil || !j.live || j.State != sluice.StateClaimed || j.token != r.Token {
			lost = append(lost, r.ID)
			continue
		}
		j.LeaseUntil = s.now().Add(r.Lease)
	}
	return lost, nil
}

// SaveCheckpoint keeps how far a claimed job has come.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil || !j.live || j.State != sluice.StateClaimed || j.token != token {
		s.tellLost(id, j, "checkpoint", "")
		return sluice.ErrLost
	}
	j.Checkpoint = bytes.Clone(checkpoint)
	return nil
}

// copy gives the job as callers may keep it.
func (j *job) copy() sluice.Job {
	out := j.Job
	out.Payload = bytes.Clone(j.Payload)
	out.Checkpoint = bytes.Clone(j.Checkpoint)
	out.Result = bytes.Clone(j.Result)
	out.Labels = maps.Clone(j.Labels)
	return out
}
