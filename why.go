package sluice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gate is one of the things that a job must pass before it runs.
type Gate struct {
	// Name is a word for the gate: state, blocked, expiry, due, paused, rate, in_flight, order,
	// workers.
	Name string `json:"gate"`
	// Open says that the job may pass.
	Open bool `json:"open"`
	// Says is one sentence for people.
	Says string `json:"says"`
	// Until is when a closed gate opens by itself, as far as can be known; zero: that depends on
	// something else.
	Until time.Time `json:"until,omitzero"`
}

// Explanation says why a job is not running, and when it should be.
type Explanation struct {
	Job Job `json:"job"`
	// Gates are in the order in which a claim looks at them.
	Gates []Gate `json:"gates"`
	// Start is when the job should start if nothing changes; zero: that cannot be said, or it is
	// running or finished.
	Start time.Time `json:"start,omitzero"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// Outlook is what a store knows of a queued job's turn. Finding it reads a bounded number of rows.
type Outlook struct {
	// Now is the store's clock.
	Now time.Time
	// Ahead counts the due jobs of the queue that are claimed before it, at most OutlookLimit.
	Ahead int
	// InFlight counts the claimed and dispatched jobs of the queue, at most OutlookLimit.
	InFlight int
	// TokenWait is how long until the queue's rate has a token; 0: it has one, or there is no rate.
	TokenWait time.Duration
}

// OutlookLimit is where the counting of an Outlook stops.
const OutlookLimit = 10_000

// Why explains a job: the gates that it must pass, which of them are closed, and when it should start.
// It works for every job; an unknown one is an ErrNotFound.
func (c *Client) Why(ctx context.Context, id ID) (Explanation, error) {
	job, err := c.store.Job(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	outlook, err := c.store.Outlook(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{Job: job, Now: outlook.Now}
	if job.State != StateQueued {
		out.Gates = []Gate{stateGate(job)}
		return out, nil
	}
	queues, err := c.store.Queues(ctx)
	if err != nil {
		return Explanation{}, err
	}
	queue := Queue{Name: job.Queue, Settings: DefaultSettings()}
	if at := slices.IndexFunc(queues, func(q Queue) bool { return q.Name == job.Queue }); at >= 0 {
		queue = queues[at]
	}
	holders, err := c.store.Holders(ctx)
	if err != nil {
		return Explanation{}, err
	}
	out.Gates = []Gate{
		stateGate(job), blockedGate(job), expiryGate(job, outlook), dueGate(job, outlook), pausedGate(queue, outlook),
		rateGate(queue, outlook), inFlightGate(queue, outlook), orderGate(outlook), workersGate(job, holders, outlook),
	}
	out.Start = startOf(out.Gates, queue, outlook)
	return out, nil
}

// Closed lists the gates that the job does not pass.
func (e Explanation) Closed() []Gate {
	return slices.DeleteFunc(slices.Clone(e.Gates), func(g Gate) bool { return g.Open })
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func stateGate(j Job) Gate {
	g := Gate{Name: "state"}
	switch j.State {
	case StateQueued:
		g.Open, g.Says = true, "it is queued"
	case StateClaimed:
		g.Says = fmt.Sprintf("it is running: %s claimed it, and holds it until %s if the lease is not renewed", j.Holder, instant(j.LeaseUntil))
	case StateDispatched:
		g.Says = fmt.Sprintf("it is running: the engine has it as %q", j.Ref)
	case StateUncertain:
		g.Says = "whether its run happened is not known; a person decides, and «sluice requeue» runs it again"
	case StateDead:
		g.Says = fmt.Sprintf("it is dead since %s: %s; «sluice requeue» gives it a new life", instant(j.FinishedAt), firstLine(j.Error))
	default:
		g.Says = fmt.Sprintf("it is %s since %s", j.State, instant(j.FinishedAt))
	}
	return g
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func blockedGate(j Job) Gate {
	if j.BlockedBy.IsZero() {
		return Gate{Name: "blocked", Open: true, Says: "it waits for no other job"}
	}
	return Gate{Name: "blocked", Says: fmt.Sprintf("it waits for job %s, which holds its key, to end", j.BlockedBy)}
}

func expiryGate(j Job, o Outlook) Gate {
	switch {
	case j.ExpiresAt.IsZero():
		return Gate{Name: "expiry", Open: true, Says: "it does not expire"}
	case j.ExpiresAt.After(o.Now):
		return Gate{Name: "expiry", Open: true, Says: "it expires at " + instant(j.ExpiresAt)}
	}
	return Gate{Name: "expiry", Says: "it expired at " + instant(j.ExpiresAt) + ", and upkeep will cancel it"}
}

func dueGate(j Job, o Outlook) Gate {
	if !j.DueAt.After(o.Now) {
		return Gate{Name: "due", Open: true, Says: "it is due since " + instant(j.DueAt)}
	}
	says := "it is due at " + instant(j.DueAt)
	if j.Attempts > 0 {
		says += fmt.Sprintf(", after failed attempt %d: %s", j.Attempts, firstLine(j.Error))
	}
	return Gate{Name: "due", Says: says, Until: j.DueAt}
}

func pausedGate(q Queue, o Outlook) Gate {
	if !q.Settings.PausedAt(o.Now) {
		return Gate{Name: "paused", Open: true, Says: fmt.Sprintf("queue %q is not paused", q.Name)}
	}
	if until := q.Settings.PausedUntil; !until.IsZero() {
		return Gate{Name: "paused", Says: fmt.Sprintf("queue %q is paused until %s: %s", q.Name, instant(until), q.Reason), Until: until}
	}
	return Gate{Name: "paused", Says: fmt.Sprintf("%s paused queue %q at %s: %s; «sluice resume %s» goes on", q.ChangedBy, q.Name, instant(q.ChangedAt), q.Reason, q.Name)}
}

func rateGate(q Queue, o Outlook) Gate {
	switch {
	case q.Settings.Rate <= 0:
		return Gate{Name: "rate", Open: true, Says: "the queue has no rate"}
	case o.TokenWait <= 0:
		return Gate{Name: "rate", Open: true, Says: fmt.Sprintf("the rate of %s has a token", q.Settings.Rate)}
	}
	until := o.Now.Add(o.TokenWait)
	return Gate{Name: "rate", Says: fmt.Sprintf("the rate of %s has its next token at %s", q.Settings.Rate, until.UTC().Format(time.RFC3339Nano)), Until: until}
}

func inFlightGate(q Queue, o Outlook) Gate {
	limit := q.Settings.InFlightLimit
	switch {
	case limit == 0:
		return Gate{Name: "in_flight", Open: true, Says: fmt.Sprintf("%s in flight, without a limit", counted(o.InFlight))}
	case o.InFlight < limit:
		return Gate{Name: "in_flight", Open: true, Says: fmt.Sprintf("%d of %d in flight", o.InFlight, limit)}
	}
	return Gate{Name: "in_flight", Says: fmt.Sprintf("%s in flight, and %d are allowed; one has to end first", counted(o.InFlight), limit)}
}

func counted(n int) string {
	if n >= OutlookLimit {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

func orderGate(o Outlook) Gate {
	if o.Ahead == 0 {
		return Gate{Name: "order", Open: true, Says: "no due job comes before it"}
	}
	return Gate{Name: "order", Says: counted(o.Ahead) + " due jobs come before it"}
}

// silence is how long a worker may say nothing before it counts as gone.
const silence = time.Minute

func workersGate(j Job, holders []Holder, o Outlook) Gate {
	workers, slots, busy := 0, 0, 0
	for _, h := range holders {
		if slices.Contains(h.Queues, j.Queue) && o.Now.Sub(h.Seen) < silence {
			workers, slots, busy = workers+1, slots+h.Slots, busy+h.Busy
		}
	}
	if workers == 0 {
		return Gate{Name: "workers", Says: fmt.Sprintf("no worker of queue %q was seen in the last minute; «sluice holders» lists who works", j.Queue)}
	}
	return Gate{Name: "workers", Open: true, Says: fmt.Sprintf("%d workers serve the queue, with %d of %d slots busy", workers, busy, slots)}
}

// startOf estimates when a job starts: when the last gate opens that opens by itself. Those that come
// before it take their tokens first.
func startOf(gates []Gate, q Queue, o Outlook) time.Time {
	start := o.Now
	for _, g := range gates {
		switch {
		case g.Open:
		case g.Name == "order" && q.Settings.Rate > 0:
			start = start.Add(time.Duration(float64(o.Ahead) / float64(q.Settings.Rate) * float64(time.Second)))
		case g.Until.IsZero():
			return time.Time{}
		case g.Until.After(start):
			start = g.Until
		}
	}
	return start
}
