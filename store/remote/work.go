package remote

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// maxNames is the most queues of one request, and maxSettled the most outcomes.
const maxNames, maxSettled = 1000, 1000

// hexOf writes a token.
func hexOf(t sluice.Token) string { return hex.EncodeToString(t[:]) }

// NextDue asks when jobs are due.
func (s *Store) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	out := make(map[string]time.Duration)
	for from := 0; from < len(queues); from += maxNames {
		var answer struct {
			Seconds map[string]float64 `json:"seconds"`
		}
		err := s.call(ctx, request{
			verb: "read when jobs are due", method: http.MethodPost, path: "/work/next-due", out: &answer,
			body: asJSON(map[string]any{"queues": queues[from:min(from+maxNames, len(queues))]}),
		})
		if err != nil {
			return nil, err
		}
		for queue, wait := range answer.Seconds {
			out[queue] = seconds(wait)
		}
	}
	return out, nil
}

// claimBody is a claim as the API reads it.
type claimBody struct {
	Worker       string         `json:"worker"`
	Queues       []string       `json:"queues"`
	Limit        int            `json:"limit,omitempty"`
	Lease        string         `json:"lease,omitempty"`
	Proof        string         `json:"proof"`
	Again        bool           `json:"again,omitempty"`
	Limits       map[string]int `json:"limits,omitempty"`
	ClaimAhead   string         `json:"claim_ahead,omitempty"`
	Ageing       float64        `json:"ageing"`
	ReportsBegun bool           `json:"reports_begun,omitempty"`
	Begun        []begunBody    `json:"begun,omitempty"`
	OnlyReports  bool           `json:"only_reports,omitempty"`
}

type begunBody struct {
	Proof      string  `json:"proof"`
	Jobs       int     `json:"jobs"`
	Gone       int     `json:"gone,omitempty"`
	AgoSeconds float64 `json:"ago_seconds"`
}

// claimed is the answer to a claim.
type claimed struct {
	Jobs []struct {
		sluice.Job
		Token   string `json:"token"`
		OfQueue bool   `json:"max_attempts_of_queue"`
	} `json:"jobs"`
	NextDueSeconds float64 `json:"next_due_seconds"`
	Limited        bool    `json:"limited"`
	Full           bool    `json:"full"`
	Paced          bool    `json:"paced"`
	Unheard        bool    `json:"unheard"`
}

// Claim claims jobs for a worker. An engine's claim is an [*UnsupportedError].
func (s *Store) Claim(ctx context.Context, r sluice.ClaimRequest) (sluice.Claimed, error) {
	if err := r.Check(); err != nil {
		return sluice.Claimed{}, err
	}
	if r.Engine != "" {
		return sluice.Claimed{}, s.theDatabase("A claim for an engine")
	}
	body := claimBody{Worker: r.Holder, Queues: []string{r.Queue}, Limit: r.Limit, Lease: leaseText(r.Lease), Proof: hexOf(r.Token), Ageing: r.Ageing, ReportsBegun: r.ReportsBegun}
	if len(r.Queues) > 0 {
		body.Queues, body.Limits, body.Lease = nil, make(map[string]int), leaseText(r.Queues[0].Lease)
		for _, q := range r.Queues {
			if q.Lease != r.Queues[0].Lease {
				body.Lease = "" // those of the queues
			}
			body.Queues, body.Limits[q.Queue] = append(body.Queues, q.Queue), max(q.Limit, 1)
		}
		if r.Limit == 0 && !r.Again {
			return sluice.Claimed{}, nil
		}
		body.Limit = max(r.Limit, 1)
	} else {
		body.ClaimAhead, body.OnlyReports = lasting(r.ClaimAhead), r.Limit == 0
		for _, b := range r.Begun {
			body.Begun = append(body.Begun, begunBody{hexOf(b.Token), b.Jobs, b.Gone, b.Ago.Seconds()})
		}
	}
	var answer claimed
	err := s.call(ctx, request{
		verb: "claim jobs", method: http.MethodPost, path: "/work/claim", out: &answer,
		body: func(again bool) ([]byte, error) {
			answer, body.Again = claimed{}, r.Again || again && !body.OnlyReports
			return encode(body)
		},
	})
	if err != nil {
		return sluice.Claimed{}, err
	}
	return answer.read()
}

// read returns the answer of a claim.
func (a claimed) read() (sluice.Claimed, error) {
	out := sluice.Claimed{NextDue: seconds(a.NextDueSeconds), Limited: a.Limited, Full: a.Full, Paced: a.Paced, Unheard: a.Unheard}
	for i := range a.Jobs {
		job := &a.Jobs[i]
		claim := &sluice.Claim{Job: job.Job}
		raw, err := hex.DecodeString(job.Token)
		if err != nil || len(raw) != len(claim.Token) {
			return out, fmt.Errorf("claim jobs: the server answered no token for job %s: %w", job.ID, sluice.ErrUnavailable)
		}
		copy(claim.Token[:], raw)
		if job.OfQueue {
			claim.MaxAttempts = 0
		}
		out.Jobs = append(out.Jobs, claim)
	}
	return out, nil
}

// leaseText writes a lease: at least the second that the server allows.
func leaseText(d time.Duration) string { return sluice.FormatDuration(max(d, time.Second)) }

// heldJob names a claimed job.
type heldJob struct {
	ID    sluice.ID `json:"id"`
	Token string    `json:"token"`
}

// Renew extends claims.
func (s *Store) Renew(ctx context.Context, renewals []sluice.Renewal) (lost []sluice.ID, err error) {
	groups := make(map[time.Duration][]heldJob)
	var leases []time.Duration
	for _, r := range renewals {
		if groups[r.Lease] == nil {
			leases = append(leases, r.Lease)
		}
		groups[r.Lease] = append(groups[r.Lease], heldJob{r.ID, hexOf(r.Token)})
	}
	for _, lease := range leases {
		for jobs := range slices.Chunk(groups[lease], maxList) {
			var answer struct {
				Lost []struct {
					ID sluice.ID `json:"id"`
				} `json:"lost"`
			}
			err := s.call(ctx, request{
				verb: "renew leases", method: http.MethodPost, path: "/work/renew", out: &answer, body: asJSON(map[string]any{"lease": leaseText(lease), "jobs": jobs}),
			})
			if err != nil {
				return lost, err
			}
			for _, one := range answer.Lost {
				lost = append(lost, one.ID)
			}
		}
	}
	return lost, nil
}

// SaveCheckpoint saves the progress of a claimed job.
func (s *Store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) error {
	if err := sluice.CheckResult("checkpoint", checkpoint); err != nil {
		return err
	}
	return s.call(ctx, request{
		verb: "save a checkpoint", method: http.MethodPost, path: "/work/checkpoint",
		body: func(bool) ([]byte, error) { return withRaw(heldJob{id, hexOf(token)}, "checkpoint", checkpoint) },
	})
}

// outcome is how an attempt ended, without its result.
type outcome struct {
	heldJob
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	Stack   string `json:"stack,omitempty"`
	Delay   string `json:"delay,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// outcomes are the outcomes of the events that a worker settles with.
var outcomes = map[sluice.Event]string{
	sluice.EventComplete: "complete", sluice.EventRetry: "retry", sluice.EventBury: "bury", sluice.EventRelease: "release",
}

// outcomeOf writes a settlement.
func (s *Store) outcomeOf(in sluice.Settlement) (rawOutcome, error) {
	word, known := outcomes[in.Event]
	switch {
	case sluice.MoveOf(in.Event).To == "":
		return nil, fmt.Errorf("settle with %.40q: %w", in.Event, sluice.ErrNotAllowed)
	case in.InTx:
		return nil, s.theDatabase("To complete a job inside a transaction")
	case !known || in.Poison || in.Ref != "":
		return nil, s.theDatabase(fmt.Sprintf("To settle with %q", in.Event))
	}
	out := outcome{heldJob: heldJob{in.ID, hexOf(in.Token)}, Outcome: word, Reason: shortened(in.Reason, 900)}
	switch in.Event {
	case sluice.EventRetry, sluice.EventBury:
		out.Error, out.Stack = sluice.StoredText(in.Error), sluice.StoredText(in.Stack)
	case sluice.EventComplete:
		if err := sluice.CheckResult("result", in.Result); err != nil {
			return nil, err
		}
		return withRaw(out, "result", in.Result)
	}
	if in.Event != sluice.EventBury {
		out.Delay = lasting(max(in.Delay, 0))
	}
	return encode(out)
}

// rawOutcome is an outcome as the API reads it.
type rawOutcome = []byte

// settling is one request that settles.
type settling struct {
	holder string
	ids    map[sluice.ID]int // the place of each job
	bodies [][]byte
	bytes  int
}

// Settle writes how the runs of claimed jobs ended. An outcome that only an engine or a transaction has is an
// [*UnsupportedError].
func (s *Store) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	if err := s.opened("settle jobs"); err != nil {
		return nil, err
	}
	errs := make([]error, len(settlements))
	var all []*settling
	for i, in := range settlements {
		body, err := s.outcomeOf(in)
		if err != nil {
			errs[i] = err
			continue
		}
		at := slices.IndexFunc(all, func(one *settling) bool {
			_, has := one.ids[in.ID]
			return !has && one.holder == in.Holder && len(one.bodies) < maxSettled && one.bytes < maxBytes
		})
		if at < 0 {
			at, all = len(all), append(all, &settling{holder: in.Holder, ids: make(map[sluice.ID]int)})
		}
		one := all[at]
		one.ids[in.ID], one.bodies, one.bytes = i, append(one.bodies, body), one.bytes+len(body)
	}
	for _, one := range all {
		if err := s.settle(ctx, one, errs); err != nil {
			return nil, err
		}
	}
	return errs, nil
}

// settle sends one request, and fills in the errors of its jobs.
func (s *Store) settle(ctx context.Context, one *settling, errs []error) error {
	const verb = "settle jobs"
	worker, err := encode(cmp.Or(one.holder, "unknown"))
	if err != nil {
		return err
	}
	body := append([]byte(`{"worker":`), worker...)
	body = append(body, `,"jobs":[`...)
	for i, outcome := range one.bodies {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, outcome...)
	}
	body = append(body, "]}"...)
	var answer failed
	err = s.call(ctx, request{
		verb: verb, method: http.MethodPost, path: "/work/settle", out: &answer, check: answer.check,
		body: func(bool) ([]byte, error) { answer = failed{}; return body, nil },
	})
	if err != nil {
		return err
	}
	for _, f := range answer.Failed {
		if i, known := one.ids[f.ID]; known && f.Error != nil {
			errs[i] = f.Error.err(verb)
		}
	}
	return nil
}
