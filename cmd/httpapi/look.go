package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// look adds the routes of figures, lists and processes.
func (a *API) look() {
	add(a, Route{
		Method: "GET", Path: "/audit", Name: "list-audit", Group: "look", Summary: "list the audit",
		Text:  "The newest entries come first. A token with bounds reads the entries of one job.",
		Needs: access.Look, Commands: []string{"audit"}, scope: ofJobs,
	}, listAudit)
	add(a, Route{
		Method: "GET", Path: "/holds", Name: "list-holds", Group: "look", Summary: "list held jobs",
		Needs: access.Look, Commands: []string{"jobs"}, scope: ofJobs,
	}, func(ctx context.Context, c *call, in *holdsInput) (holdList, error) {
		var jobs []sluice.ID
		for _, text := range in.Jobs {
			id, err := sluice.ParseID(text)
			if err != nil {
				return holdList{}, err
			}
			jobs = append(jobs, id)
		}
		found, err := c.holds(ctx, hold.Filter{Jobs: jobs, Queue: in.Queue, Before: in.Before, Limit: in.Limit})
		return holdList{orEmpty(found)}, err
	})
	a.dead()
	add(a, Route{
		Method: "GET", Path: "/queues/{queue}/stats", Name: "get-stats", Group: "look", Summary: "read the statistics of a queue",
		Needs: access.Look, Commands: []string{"stats"}, scope: ofQueue, noun: "queue",
	}, getStats)
	a.series()
	a.forecasts()
	a.useRoute()
	add(a, Route{
		Method: "GET", Path: "/health", Name: "get-health", Group: "look", Summary: "read the health of the store",
		Needs: access.Look, Commands: []string{"doctor"},
	}, func(ctx context.Context, c *call, _ *nothing) (healthView, error) {
		report, err := health.Of(ctx, c.api.store, health.Options{})
		out := healthView{Kind: report.Kind, Ill: report.Ill(), Findings: orEmpty(report.Findings), Metrics: []metricView{}}
		for _, m := range report.Metrics {
			out.Metrics = append(out.Metrics, metricView{m.Name, m.Label.Name, m.Label.Value, m.Value, m.Unit})
		}
		return out, err
	})
	a.scrubRoute()
	a.holderRoutes()
	addRaw(a, Route{
		Method: "GET", Path: "/metrics", Name: "get-metrics", Group: "look", Summary: "read the metrics of the server, for Prometheus",
		Needs: access.Look,
	}, func(_ huma.API, op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {Description: "the metrics", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	}, func(w http.ResponseWriter, r *http.Request, _ *call) error {
		if a.options.Metrics == nil {
			return problemOf(http.StatusNotFound, "no_metrics", "the server has no metrics", "give Metrics of the options")
		}
		a.options.Metrics.ServeHTTP(w, r)
		return nil
	})
}

// listAuditInput chooses audit entries.
type listAuditInput struct {
	Object string    `query:"object" doc:"only this kind of thing, such as job or queue" maxLength:"20"`
	Name   string    `query:"name" doc:"only this thing; for jobs, their queue" maxLength:"200"`
	Job    sluice.ID `query:"job" doc:"only this job" format:"uuid"`
	Actor  string    `query:"actor" doc:"only acts of this person or program; ada finds ada by token shop, too" maxLength:"200"`
	Event  string    `query:"event" doc:"only this event, such as pause or cancel" maxLength:"40"`
	From   time.Time `query:"from" doc:"only entries from this instant on"`
	To     time.Time `query:"to" doc:"only entries before this instant"`
	Before int64     `query:"before" doc:"next of the page before" minimum:"0"`
	After  int64     `query:"after" doc:"a seq to stop before" minimum:"0"`
	Limit  int       `query:"limit" doc:"the most entries" minimum:"1" maximum:"1000" default:"100"`
}

// auditList lists audit entries.
type auditList = audit.Page

func listAudit(ctx context.Context, c *call, in *listAuditInput) (auditList, error) {
	if !c.caller.None() {
		if in.Job.IsZero() {
			return auditList{}, outOfBounds("the token is bounded to some queues or tenants")
		}
		if _, err := c.job(ctx, in.Job); err != nil {
			return auditList{}, err
		}
	}
	found, err := audit.Search(ctx, c.api.store, audit.Filter{AuditFilter: sluice.AuditFilter{
		Object: sluice.Object(in.Object), Name: in.Name, JobID: in.Job, Actor: in.Actor, Event: sluice.Event(in.Event), Before: in.Before, After: in.After, Limit: in.Limit,
	}, From: in.From, To: in.To})
	if !c.reads() {
		withoutPayloads(found.Entries)
	}
	return auditList{Entries: orEmpty(found.Entries), Next: found.Next}, err
}

// withoutPayloads removes what entries show of schedules, which have payloads. Other entries have none.
func withoutPayloads(entries []sluice.AuditEntry) {
	for i := range entries {
		if entries[i].Object == audit.ObjectSchedule {
			entries[i].Before, entries[i].After = nil, nil
		}
	}
}

// holdsInput chooses holds.
type holdsInput struct {
	Queue  string    `query:"queue" doc:"only this queue" maxLength:"64"`
	Jobs   []string  `query:"job,explode" doc:"only of these jobs" maxItems:"100"`
	Before sluice.ID `query:"before" doc:"the last job of the page before" format:"uuid"`
	Limit  int       `query:"limit" doc:"the most holds" minimum:"1" maximum:"1000" default:"100"`
}

// holds lists the holds of jobs that the caller knows.
func (c *call) holds(ctx context.Context, filter hold.Filter) (all []hold.Held, err error) {
	if len(filter.Jobs) > 0 && len(c.caller.Tenants) > 0 {
		return c.holdsOf(ctx, filter)
	}
	for {
		page, err := hold.List(ctx, c.api.store, filter)
		if err != nil || c.caller.None() {
			return page, err
		}
		for _, held := range page {
			switch known, err := c.knowsHeld(ctx, held); {
			case err != nil:
				return nil, err
			case known:
				all = append(all, held)
			}
		}
		if len(all) >= filter.Limit || len(page) < filter.Limit {
			return all[:min(len(all), filter.Limit)], nil
		}
		filter.Before = page[len(page)-1].JobID
	}
}

// holdsOf lists the holds of some jobs. It reads each job first, so that a foreign one costs what one that is not there costs.
func (c *call) holdsOf(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	var known []sluice.ID
	for _, id := range filter.Jobs {
		switch _, err := c.job(ctx, id); {
		case err == nil:
			known = append(known, id)
		case !errors.Is(err, sluice.ErrNotFound):
			return nil, err
		}
	}
	if filter.Jobs = known; len(known) == 0 {
		return nil, nil
	}
	return hold.List(ctx, c.api.store, filter)
}

// knowsHeld reports whether the job of a hold is one that the caller knows.
func (c *call) knowsHeld(ctx context.Context, held hold.Held) (bool, error) {
	if !c.caller.Queue(held.Queue) || len(c.caller.Tenants) == 0 {
		return c.caller.Queue(held.Queue), nil
	}
	_, err := c.job(ctx, held.JobID)
	if errors.Is(err, sluice.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// holdList lists holds.
type holdList struct {
	// Holds are the holds, the newest job first.
	Holds []hold.Held `json:"holds"`
}

// statsInput chooses statistics.
type statsInput struct {
	Queue  string `path:"queue" doc:"the queue" maxLength:"64"`
	Window string `query:"window" doc:"how far back, such as 1h" default:"1h" maxLength:"20"`
}

// statsView are the statistics of a queue in a window. Without counted, nobody counts, and the figures are missing.
type statsView struct {
	// Queue is the queue, and From and To the window in whole slots.
	Queue string    `json:"queue"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	// Depth counts the jobs now, and OldestSeconds is how long the oldest ready job has been due.
	Depth         sluice.Depth `json:"depth"`
	OldestSeconds float64      `json:"oldest_seconds"`
	// Counted says that the figures below are known.
	Counted bool `json:"counted"`
	// Counts are the counts of the window.
	Counts *stat.Counts `json:"counts,omitempty"`
	// PerSecond is how many jobs completed per second.
	PerSecond *float64 `json:"completed_per_second,omitempty"`
	// SuccessRate is completed / (completed + dead). Missing: no job ended, so that nobody knows.
	SuccessRate *float64 `json:"success_rate,omitempty"`
	// LeaseExpiryRate is recovered / claimed. Missing: no job was claimed.
	LeaseExpiryRate *float64 `json:"lease_expiry_rate,omitempty"`
	// Wait is from due to claim, Run from claim to end, and Total from due to end, of completed jobs. Missing: none completed.
	Wait  *quantiles `json:"wait_seconds,omitempty"`
	Run   *quantiles `json:"run_seconds,omitempty"`
	Total *quantiles `json:"total_seconds,omitempty"`
}

// quantiles are the times, in seconds, that a share of the jobs does not exceed.
type quantiles struct {
	// P50, P95 and P99 are those of 50 %, 95 % and 99 % of the jobs.
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

func quantilesOf(q stat.Quantiles) *quantiles {
	return &quantiles{q.P50.Seconds(), q.P95.Seconds(), q.P99.Seconds()}
}

func getStats(ctx context.Context, c *call, in *statsInput) (statsView, error) {
	window, err := positive("window", in.Window)
	if err != nil {
		return statsView{}, err
	}
	s, err := stat.Of(ctx, c.api.store, in.Queue, window)
	if err != nil {
		return statsView{}, err
	}
	out := statsView{Queue: s.Queue, From: s.From, To: s.To, Depth: s.Depth, OldestSeconds: s.OldestAge.Seconds(), Counted: s.Counted}
	if !s.Counted {
		return out, nil
	}
	out.Counts, out.PerSecond = &s.Counts, &s.Rate
	if s.Counts.Completed+s.Counts.Dead > 0 {
		out.SuccessRate = &s.SuccessRate
	}
	if s.Counts.Claimed > 0 {
		out.LeaseExpiryRate = &s.LeaseExpiryRate
	}
	if s.Counts.Completed > 0 {
		out.Wait, out.Run, out.Total = quantilesOf(s.Wait), quantilesOf(s.Run), quantilesOf(s.Total)
	}
	return out, nil
}

// healthView is the health of the store.
type healthView struct {
	// Kind is the kind of store: postgres, sqlite or memory.
	Kind string `json:"kind"`
	// Ill says that a finding needs a person.
	Ill bool `json:"ill"`
	// Findings are in the order in which to read them.
	Findings []health.Finding `json:"findings"`
	// Metrics are figures in no particular order. An unknown figure is missing.
	Metrics []metricView `json:"metrics"`
}

// metricView is a figure of the store.
type metricView struct {
	// Name is the name of the figure, such as dead_rows.
	Name string `json:"name"`
	// Label says what kind of part was measured, such as table, and Of names the part. Missing: the whole store.
	Label string `json:"label,omitempty"`
	Of    string `json:"of,omitempty"`
	// Value is the value in Unit: seconds, bytes, rows, pages, transactions or connections. Unit missing: a plain number.
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// scrubRoute adds the route that tries the redaction.
func (a *API) scrubRoute() {
	add(a, Route{
		Method: "POST", Path: "/scrub", Name: "scrub-text", Group: "look", Summary: "scrub a text as the server scrubs errors",
		Text: "Shows which secrets the server would find in an error before it stores and logs it. It keeps nothing of the text.", Needs: access.Look,
	}, func(_ context.Context, c *call, in *scrubInput) (scrubbed, error) {
		text := c.api.options.Clean(in.Body.Text)
		return scrubbed{Text: text, Changed: text != in.Body.Text}, nil
	})
}

// scrubInput scrubs a text.
type scrubInput struct{ Body scrubBody }

// scrubBody is a text to scrub.
type scrubBody struct {
	// Text is the text.
	Text string `json:"text" maxLength:"65536"`
}

// scrubbed is a text without its secrets.
type scrubbed struct {
	// Text is the text, with the kind of each secret in its place, such as [redacted:email].
	Text string `json:"text"`
	// Changed says that something was removed.
	Changed bool `json:"changed"`
}

// holderRoutes adds the routes of processes.
func (a *API) holderRoutes() {
	add(a, Route{
		Method: "GET", Path: "/holders", Name: "list-holders", Group: "holders", Summary: "list the processes that work",
		Needs: access.Look, Commands: []string{"holders"}, noun: "process",
	}, func(ctx context.Context, c *call, in *holdersInput) (holderList, error) {
		holders, err := presence.Holders(ctx, c.api.store)
		if err != nil {
			return holderList{}, err
		}
		list := presence.Instructions
		if in.Ended {
			list = func(ctx context.Context, store sluice.Store) ([]presence.Instruction, error) {
				return presence.Given(store).Instructions(ctx)
			}
		}
		told, err := list(ctx, c.api.store)
		if err != nil {
			return holderList{}, err
		}
		leaders, err := presence.Given(c.api.store).Leaders(ctx)
		return holderList{orEmpty(holders), orEmpty(told), orEmpty(leaders)}, err
	})
	add(a, Route{
		Method: "POST", Path: "/holders/instructions", Name: "instruct-holders", Group: "holders", Summary: "tell processes to quiesce, stop or work",
		Text:  "Needs a reason. Processes obey within seconds; ask what remains.",
		Needs: access.Operate, Commands: []string{"holders quiesce", "holders resume", "holders stop"}, noun: "process",
	}, func(ctx context.Context, c *call, in *instructInput) (presence.Instruction, error) {
		during := time.Duration(0)
		if in.Body.For != "" {
			var err error
			if during, err = positive("for", in.Body.For); err != nil {
				return presence.Instruction{}, err
			}
		}
		return presence.Instruct(ctx, c.api.store, in.Body.Target, in.Body.Wanted, during, c.act(in.Body.Reason))
	})
	add(a, Route{
		Method: "PUT", Path: "/holders/instructions", Name: "save-instruction", Group: "holders", Summary: "store an instruction to processes",
		Text:  "For programs. Stores the instruction if its version is still that of the body; without one it is the first to its target.",
		Needs: access.Operate, Commands: []string{"holders quiesce", "holders resume", "holders stop"}, noun: "process",
	}, func(ctx context.Context, c *call, in *saveInstructionInput) (wire.InstructionView, error) {
		saved, err := presence.Save(ctx, c.api.store, in.Body.Instruction, c.act(in.Body.Reason))
		return wire.InstructionViewOf(saved), err
	})
	add(a, Route{
		Method: "POST", Path: "/holders/jobs", Name: "list-held-jobs", Group: "holders", Summary: "list the claimed jobs of processes",
		Needs: access.Look, Commands: []string{"holders"}, noun: "process",
	}, func(ctx context.Context, c *call, in *heldJobsInput) (wire.HeldJobList, error) {
		found, err := presence.Given(c.api.store).HeldJobs(ctx, in.Body.Holders, in.Body.Limit)
		return wire.HeldJobList{Jobs: orEmpty(found)}, err
	})
	add(a, Route{
		Method: "POST", Path: "/holders/remaining", Name: "remaining-work", Group: "holders", Summary: "read the work that processes still have",
		Text:  "After an instruction: the processes that may still claim, and their jobs.",
		Needs: access.Look, Commands: []string{"holders drain"}, noun: "process",
	}, func(ctx context.Context, c *call, in *remainingInput) (presence.Remaining, error) {
		out, err := presence.Remains(ctx, c.api.store, in.Body)
		out.Holders, out.Claiming, out.Jobs = orEmpty(out.Holders), orEmpty(out.Claiming), orEmpty(out.Jobs)
		return out, err
	})
}

// holdersInput says what to tell of processes.
type holdersInput struct {
	Ended bool `query:"ended" doc:"also instructions that have ended"`
}

// saveInstructionInput stores an instruction.
type saveInstructionInput struct{ Body wire.SaveInstructionBody }

// heldJobsInput names processes.
type heldJobsInput struct{ Body wire.HeldJobsBody }

// holderList lists processes.
type holderList struct {
	// Holders are the processes, and Instructions what they were told.
	Holders      []presence.Holder      `json:"holders"`
	Instructions []presence.Instruction `json:"instructions"`
	// Leaders are the present or last leaders of the tasks that one process does at a time.
	Leaders []presence.Leader `json:"leaders"`
}

// instructInput tells processes something.
type instructInput struct{ Body instructBody }

// instructBody is an instruction.
type instructBody struct {
	// Target names the processes.
	Target presence.Target `json:"target"`
	// Wanted is quiesce, stop or work.
	Wanted presence.Wanted `json:"wanted" enum:"quiesce,stop,work"`
	// For is how long the instruction counts, such as 1h. Missing: until another one.
	For string `json:"for,omitempty" maxLength:"20"`
	// Reason says why, for the audit.
	Reason string `json:"reason" minLength:"1" maxLength:"1000"`
}

// remainingInput names processes.
type remainingInput struct{ Body presence.Target }
