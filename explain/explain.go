// Package explain says why a job does not run: the reasons that the job must pass, the closed ones among them, and
// the expected start.
//
// Begin with [Job]. [Store] is the port that SQLite, PostgreSQL and memory implement.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/presence"
)

// Reason is one condition that a job must pass before it runs.
type Reason struct {
	// Name is one of state, held, open_run, blocked, order_key, after, expiry, due, paused, rate, in_flight, limit, tenant,
	// concurrency, tenant_rate, order, workers and dispatchers.
	Name string `json:"reason"`
	// Open says that the job passes.
	Open bool `json:"open"`
	// Summary is one sentence for people.
	Summary string `json:"summary"`
	// Until is when a closed reason opens by itself. Zero: unknown, or it depends on something else than time.
	Until time.Time `json:"until,omitzero"`
	// Repair is the command or the act that opens a closed reason. Empty: time opens the reason, or no command is
	// known.
	Repair string `json:"repair,omitempty"`
}

// Explanation says why a job does not run, and when it should start.
type Explanation struct {
	// Job is the job, with its payload.
	Job sluice.Job `json:"job"`
	// Reasons are the reasons, in the order in which a claim checks them.
	Reasons []Reason `json:"reasons"`
	// Behind are some jobs that run after the job, or wait for it now; see [Position].
	Behind []sluice.ID `json:"behind,omitempty"`
	// Start is when the job should start if nothing changes. Zero: unknown, or the job runs or has ended.
	Start time.Time `json:"start,omitzero"`
	// Estimate says that Start is estimated, and how: by the jobs that must end first, how many of them run at once, and how long
	// jobs ran in the last hour. Empty: Start follows from instants and rates alone.
	Estimate string `json:"estimate,omitempty"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// Position is the knowledge of a store about a queued job's turn. A store reads a bounded number of rows for it.
type Position struct {
	// Now is the store's clock.
	Now time.Time
	// Ahead counts the due jobs that claims take before the job, at most [CountLimit].
	Ahead int
	// InFlight counts the queue's claimed and dispatched jobs and its orphan runs, at most [CountLimit].
	InFlight int
	// OrphanRuns are the job's own orphan runs, at most [HoldingLimit], the earliest cancelled first.
	OrphanRuns []engine.OrphanRun
	// Behind are jobs that run after the job, or wait for it now because of their key or their order, at most
	// [HoldingLimit]. A job that ran after others that had completed already is not behind them.
	Behind []sluice.ID
	// Tokens is how many starts the queue's rate allows now. It may be negative. TokenWait is how long until the
	// rate allows a start; 0: now, or the queue has no rate.
	Tokens    float64
	TokenWait time.Duration
	// ByTenant says that the queue serves its tenants in turns. Then Ahead counts only jobs of the job's own
	// tenant, and the fields below describe that tenant.
	ByTenant bool
	// EffectiveLimits are the tenant's limits in the queue.
	EffectiveLimits sluice.EffectiveLimits
	// Held counts the tenant's jobs in flight and its orphan runs, at most [CountLimit]. Holding are some of
	// these jobs, the longest in flight first.
	Held    int
	Holding []sluice.ID
	// TenantTokenWait is how long until the tenant's rate allows a claim. 0: now, or the tenant has no rate.
	TenantTokenWait time.Duration
}

// HoldingLimit is the most jobs in flight of a tenant that an [Position] names, the most jobs behind a job, and the most orphan runs.
const HoldingLimit = 10

// CountLimit is the highest count in an [Position].
const CountLimit = 10_000

// explainer is a store that explains by itself, such as one behind a server.
type explainer interface {
	Explain(ctx context.Context, id sluice.ID) (Explanation, error)
}

// Job explains a job: the reasons that the job must pass, which of them are closed, and when the job should start. It
// works in every state. An unknown ID is a [sluice.ErrNotFound].
func Job(ctx context.Context, store sluice.Store, id sluice.ID) (Explanation, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Explanation{}, err
	}
	if other, is := sluice.StoreAs[explainer](store); is {
		return other.Explain(ctx, id)
	}
	return Within(ctx, store, id, access.Bounds{})
}

// Within is [Job] for a reader who knows only the jobs within some bounds. Another job is a [sluice.ErrNotFound], as one that is not
// stored. Where the job waits for others, or has others before it, the explanation tells nothing of those outside.
func Within(ctx context.Context, store sluice.Store, id sluice.ID, bounds access.Bounds) (Explanation, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Explanation{}, err
	}
	s := sight{store, bounds}
	job, err := store.Job(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	if !s.of(job) {
		return Explanation{}, sluice.ErrNotFound
	}
	position, err := Given(store).Position(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{Job: job, Now: position.Now}
	if out.Behind, err = s.known(ctx, position.Behind); err != nil {
		return Explanation{}, err
	}
	if job.State == sluice.StateQueued {
		out, err = s.waiting(ctx, out, position)
		return s.withhold(out, position), err
	}
	state := stateReason(job, position)
	if job.State == sluice.StateDispatched || job.State == sluice.StateClaimed {
		holders, err := presence.Given(store).Holders(ctx)
		if err != nil {
			return Explanation{}, err
		}
		state.hindered(holders, job, position.Now)
	}
	out.Reasons = append([]Reason{state}, openRunReasons(job, position)...)
	out.Start = out.Reasons[0].Until
	return out, nil
}

// waiting explains a queued job.
func (s sight) waiting(ctx context.Context, out Explanation, position Position) (Explanation, error) {
	store, job := s.store, out.Job
	queue, err := queueOf(ctx, store, job)
	if err != nil {
		return Explanation{}, err
	}
	holders, err := presence.Given(store).Holders(ctx)
	if err != nil {
		return Explanation{}, err
	}
	holders = s.ownQueues(holders)
	paused, err := pausedReason(ctx, store, queue, position)
	if err != nil {
		return Explanation{}, err
	}
	waits, err := s.waitReasons(ctx, &out.Job)
	if err != nil {
		return Explanation{}, err
	}
	held, err := heldReasons(ctx, store, job)
	if err != nil {
		return Explanation{}, err
	}
	limits, err := limitReasons(ctx, store, queue, job, position)
	if err != nil {
		return Explanation{}, err
	}
	out.Reasons = slices.Concat(
		[]Reason{stateReason(job, position)}, held, openRunReasons(job, position), waits, []Reason{expiryReason(job, position), dueReason(job, position), paused},
		[]Reason{rateReason(queue, position), inFlightReason(queue, position)}, limits, tenantReasons(job, position),
		[]Reason{orderReason(position), servedReason(queue, holders, position)},
	)
	if c, stuck := followed(holders, job.Queue, position.Now); stuck { // nobody knows when the runs end
		blameRuns(out.Reasons, c)
		out.Start, out.Estimate = startOf(out.Reasons, queue, position, estimate{})
		return out, nil
	}
	var guess estimate
	if s.ofQueue() { // it counts jobs, and how long they ran, of the whole queue
		if guess, err = estimateOf(ctx, store, queue, out, position); err != nil {
			return Explanation{}, err
		}
	}
	out.Start, out.Estimate = startOf(out.Reasons, queue, position, guess)
	return out, nil
}

// queueOf returns the queue of a job. An unknown queue has the default settings.
func queueOf(ctx context.Context, store sluice.Store, job sluice.Job) (sluice.Queue, error) {
	found, err := store.Queues(ctx, sluice.QueueFilter{Names: []string{job.Queue}})
	switch {
	case err != nil:
		return sluice.Queue{}, err
	case len(found) == 0:
		return sluice.Queue{Name: job.Queue, Settings: sluice.DefaultSettings()}, nil
	}
	return found[0], nil
}

// Closed returns the closed reasons.
func (e Explanation) Closed() []Reason {
	return slices.DeleteFunc(slices.Clone(e.Reasons), func(g Reason) bool { return g.Open })
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// tokenAt is the text of when a rate has a token: many a rate has several a second.
func tokenAt(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func stateReason(j sluice.Job, o Position) Reason {
	g := Reason{Name: "state"}
	switch j.State {
	case sluice.StateQueued:
		g.Open, g.Summary = true, "it is queued"
	case sluice.StateClaimed:
		if j.Engine != "" {
			g.Summary = fmt.Sprintf("%s claimed it and has the engine %q start its run %q; ", j.Holder, j.Engine, j.Ref)
			if j.LeaseUntil.After(o.Now) {
				g.Summary += "if it is gone, upkeep asks the engine after " + moment(j.LeaseUntil)
				break
			}
			g.Summary += fmt.Sprintf("its lease ended at %s, and upkeep asks the engine", moment(j.LeaseUntil))
			break
		}
		if !j.LeaseUntil.After(o.Now) {
			g.Summary = fmt.Sprintf("%s claimed it, and its lease ended at %s; upkeep takes it back", j.Holder, moment(j.LeaseUntil))
			break
		}
		if j.DueAt.After(o.Now) {
			g.Summary = fmt.Sprintf("%s has claimed it ahead, and starts it when it is due at %s", j.Holder, moment(j.DueAt))
			g.Until = j.DueAt
			break
		}
		g.Summary = fmt.Sprintf("it is running: %s claimed it, and holds it until %s if the lease is not renewed", j.Holder, moment(j.LeaseUntil))
	case sluice.StateDispatched:
		g.Summary = fmt.Sprintf("it is running: the engine %q has it as %q", j.Engine, j.Ref)
	case sluice.StateUncertain:
		g.Summary = "whether its run happened is not known; a person decides, and `sluice requeue` runs it again"
		g.Repair = fmt.Sprintf("sluice ask-engine %s; or sluice resolve %s --completed --reason WHY", j.ID, j.ID)
	case sluice.StateDead:
		g.Summary = fmt.Sprintf("it is dead since %s: %s; `sluice requeue` gives it a new life", moment(j.FinishedAt), firstLine(j.Error))
		g.Repair = mendDead(j)
	default:
		g.Summary = fmt.Sprintf("it is %s since %s", j.State, moment(j.FinishedAt))
	}
	return g
}

// mendDead returns the act that gives a dead job a new life, and the repair before it.
func mendDead(j sluice.Job) string {
	switch j.Queue {
	case flow.EndQueue: // it dies again while a node has failed
		return fmt.Sprintf("sluice flows show %s; mend why nodes failed, and requeue the dead and cancelled ones first; then: sluice requeue %s", j.ID, j.ID)
	case flow.MapQueue:
		return fmt.Sprintf("mend the cause, and requeue the failed jobs of the map first; then: sluice requeue %s; at last the flow, if it has failed: sluice requeue %s", j.ID, j.Labels[flow.LabelFlow])
	}
	first := "mend the cause"
	switch class, _ := deadletter.Classify(j.Error); class {
	case deadletter.ClassPoison:
		first = fmt.Sprintf("look why its workers were lost; where it ran longer than its lease without a renewal: sluice settings set %s lease=TIME --reason WHY", j.Queue)
	case deadletter.ClassTimeout:
		first = fmt.Sprintf("let the handler be quicker, or have more time: sluice settings set %s timeout=TIME --reason WHY", j.Queue)
	case deadletter.ClassRunTimeout:
		first = fmt.Sprintf("let the run be quicker, or have more time: sluice settings set %s run_timeout=TIME --reason WHY", j.Queue)
	case deadletter.ClassPayload:
		first = "let the handler read the payload, or enqueue another"
	}
	return first + "; then: sluice requeue " + j.ID.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func blockedReason(j sluice.Job, foreign bool) Reason {
	switch {
	case foreign:
		return Reason{Name: "blocked", Summary: "it waits for " + outside + ", which holds its key, to end"}
	case j.BlockedBy.IsZero():
		return Reason{Name: "blocked", Open: true, Summary: "it waits for no other job"}
	}
	return Reason{Name: "blocked", Summary: fmt.Sprintf("it waits for job %s, which holds its key, to end", j.BlockedBy), Repair: "sluice why " + j.BlockedBy.String()}
}

func expiryReason(j sluice.Job, o Position) Reason {
	switch {
	case j.ExpiresAt.IsZero():
		return Reason{Name: "expiry", Open: true, Summary: "it does not expire"}
	case j.ExpiresAt.After(o.Now):
		return Reason{Name: "expiry", Open: true, Summary: "it expires at " + moment(j.ExpiresAt)}
	}
	return Reason{Name: "expiry", Summary: "it expired at " + moment(j.ExpiresAt) + ", and upkeep will cancel it"}
}

func dueReason(j sluice.Job, o Position) Reason {
	if !j.DueAt.After(o.Now) {
		return Reason{Name: "due", Open: true, Summary: "it is due since " + moment(j.DueAt)}
	}
	g := Reason{Name: "due", Summary: "it is due at " + moment(j.DueAt), Until: j.DueAt, Repair: "sluice run-now " + j.ID.String()}
	if j.Attempts > 0 {
		g.Summary += fmt.Sprintf(", after failed attempt %d: %s", j.Attempts, firstLine(j.Error))
		g.Repair = fmt.Sprintf("mend the cause; sluice run-now %s tries it at once", j.ID)
	}
	return g
}

// pausedReason says who paused the queue, when and why.
func pausedReason(ctx context.Context, store sluice.Store, q sluice.Queue, o Position) (Reason, error) {
	if !q.Settings.PausedAt(o.Now) {
		return Reason{Name: "paused", Open: true, Summary: fmt.Sprintf("queue %q is not paused", q.Name)}, nil
	}
	g := Reason{Name: "paused", Summary: fmt.Sprintf("queue %q is paused", q.Name), Until: q.Settings.PausedUntil, Repair: "sluice resume " + q.Name}
	by, err := PausedBy(ctx, store, q)
	if by.Actor != "" {
		g.Summary = fmt.Sprintf("%s paused queue %q at %s: %s", by.Actor, q.Name, moment(by.At), by.Reason)
	}
	if !g.Until.IsZero() {
		g.Summary += ", until " + moment(g.Until)
	}
	g.Summary += fmt.Sprintf("; `sluice resume %s` goes on", q.Name)
	return g, err
}

// pauseHistory is how many changes of a queue PausedBy searches.
const pauseHistory = 100

// PausedBy returns the audit entry of the change that paused a queue, or prolonged its pause. If the change is too
// old to find, PausedBy returns the zero value.
func PausedBy(ctx context.Context, store sluice.Store, q sluice.Queue) (sluice.AuditEntry, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return sluice.AuditEntry{}, err
	}
	changes, err := store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: q.Name, Event: audit.EventChange, Limit: pauseHistory})
	if err != nil {
		return sluice.AuditEntry{}, err
	}
	for _, change := range changes {
		var before, after sluice.Settings
		if len(change.Before) > 0 {
			if err := json.Unmarshal(change.Before, &before); err != nil {
				continue
			}
		}
		if err := json.Unmarshal(change.After, &after); err == nil && after.Paused &&
			(!before.Paused || after.PausedUntil != before.PausedUntil) {
			return change, nil
		}
	}
	return sluice.AuditEntry{}, nil
}

func rateReason(q sluice.Queue, o Position) Reason {
	switch {
	case q.Settings.Rate.IsZero():
		return Reason{Name: "rate", Open: true, Summary: "the queue has no rate"}
	case o.TokenWait <= 0:
		return Reason{Name: "rate", Open: true, Summary: fmt.Sprintf("the rate of %s has a token", q.Settings.Rate)}
	}
	until := o.Now.Add(o.TokenWait)
	return Reason{Name: "rate", Repair: mendRate(q, o), Summary: fmt.Sprintf("the rate of %s has its next token at %s", q.Settings.Rate, tokenAt(until)), Until: until}
}

// slowRate is how long the jobs ahead may take by the rate before a faster rate is worth a change.
const slowRate = 10 * time.Minute

// mendRate returns the command that raises a rate that is too low for the waiting jobs. Empty: the rate is high
// enough.
func mendRate(q sluice.Queue, o Position) string {
	if float64(o.Ahead) < q.Settings.Rate.PerSecond()*slowRate.Seconds() {
		return ""
	}
	return fmt.Sprintf("sluice settings set %s rate=N/s --reason WHY", q.Name)
}

func inFlightReason(q sluice.Queue, o Position) Reason {
	limit := q.Settings.Concurrency
	switch {
	case limit == 0:
		return Reason{Name: "in_flight", Open: true, Summary: fmt.Sprintf("%s in flight, without a limit", counted(o.InFlight))}
	case o.InFlight < limit:
		return Reason{Name: "in_flight", Open: true, Summary: fmt.Sprintf("%d of %d in flight", o.InFlight, limit)}
	}
	return Reason{
		Name: "in_flight", Summary: fmt.Sprintf("%s in flight, and %d are allowed; one has to end first", counted(o.InFlight), limit),
		Repair: fmt.Sprintf("sluice jobs --queue %s --state claimed,dispatched shows them; or sluice settings set %s concurrency=N --reason WHY", q.Name, q.Name),
	}
}

func counted(n int) string {
	if n >= CountLimit {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

func orderReason(o Position) Reason {
	whose := ""
	if o.ByTenant {
		whose = " of the same tenant"
	}
	if o.Ahead == 0 {
		return Reason{Name: "order", Open: true, Summary: "no due job" + whose + " comes before it"}
	}
	return Reason{Name: "order", Summary: counted(o.Ahead) + " due jobs" + whose + " come before it"}
}

// startOf returns when a job starts: when the last reason opens that opens by itself, or by the estimate. The jobs ahead
// take their tokens first. It returns how it estimated, if it did.
func startOf(reasons []Reason, q sluice.Queue, o Position, guess estimate) (at time.Time, estimated string) {
	start := o.Now
	if rate := q.Settings.Rate.PerSecond(); rate > 0 {
		missing := max(0, float64(o.Ahead)+1-o.Tokens)
		start = start.Add(time.Duration(missing / rate * float64(time.Second)))
	}
	if rate := o.EffectiveLimits.Rate.PerSecond(); rate > 0 {
		if own := o.Now.Add(o.TenantTokenWait + time.Duration(float64(o.Ahead)/rate*float64(time.Second))); own.After(start) {
			start = own
		}
	}
	for _, g := range reasons {
		switch {
		case g.Open, g.Name == "order" && (!q.Settings.Rate.IsZero() || !o.EffectiveLimits.Rate.IsZero()):
		case guess.opens(g):
			estimated = guess.how
			if guess.at.After(start) {
				start = guess.at
			}
		case g.Until.IsZero():
			return time.Time{}, ""
		case g.Until.After(start):
			start = g.Until
		}
	}
	return start, estimated
}
