package httpapi

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// operations adds the routes of acts on everything that matches.
func (a *API) operations() {
	add(a, Route{
		Method: "POST", Path: "/operations", Name: "start-operation", Group: "operations", Summary: "act on all jobs that match",
		Text: "Upkeep carries the operation out. With dry_run it only counts. The filter must name something.",
		// The acts with --all do the same.
		Needs: access.Operate, Commands: []string{"dead redrive"}, scope: ofJobs, noun: "operation",
	}, startOperation)
	add(a, Route{
		Method: "GET", Path: "/operations", Name: "list-operations", Group: "operations", Summary: "list operations",
		Needs: access.Look, Commands: []string{"operations", "operations ls"}, noun: "operation",
	}, func(ctx context.Context, c *call, in *operationsInput) (wire.OperationList, error) {
		found, err := operation.List(ctx, c.api.store, operation.Filter{Open: in.Open, Before: in.Before, Limit: in.Limit})
		out := wire.OperationList{Operations: []wire.OperationView{}}
		for _, o := range found {
			out.Operations = append(out.Operations, wire.OperationViewOf(o))
		}
		return out, err
	})
	add(a, Route{
		Method: "GET", Path: "/operations/{id}", Name: "get-operation", Group: "operations", Summary: "read an operation",
		Needs: access.Look, Commands: []string{"operations get", "operations watch"}, scope: ofJobs, noun: "operation",
	}, func(ctx context.Context, c *call, in *JobInput) (wire.OperationView, error) {
		found, err := c.operation(ctx, in.ID)
		return wire.OperationViewOf(found), err
	})
	add(a, Route{
		Method: "PUT", Path: "/operations/{id}", Name: "save-operation", Group: "operations", Summary: "store an operation",
		Text:  "For programs that make operations themselves. Stores a new operation, or the state and the rate of one whose version is still that of the body.",
		Needs: access.Operate, Commands: []string{"operations"}, scope: ofJobs, noun: "operation",
	}, saveOperation)
	for _, s := range []struct {
		verb string
		do   func(context.Context, sluice.Store, sluice.ID, sluice.Act) (operation.Operation, error)
	}{{"pause", operation.Pause}, {"resume", operation.Resume}, {"stop", operation.Stop}} {
		add(a, Route{
			Method: "POST", Path: "/operations/{id}/" + s.verb, Name: s.verb + "-operation", Group: "operations", Summary: s.verb + " an operation",
			Needs: access.Operate, Commands: []string{"operations " + s.verb}, scope: ofJobs, noun: "operation",
		}, func(ctx context.Context, c *call, in *reasonInput) (operation.Operation, error) {
			if found, err := c.operation(ctx, in.ID); err != nil {
				return found, err
			}
			return s.do(ctx, c.api.store, in.ID, c.act(in.Body.Reason))
		})
	}
	add(a, Route{
		Method: "POST", Path: "/operations/{id}/pace", Name: "pace-operation", Group: "operations", Summary: "change the rate of an operation",
		Needs: access.Operate, Commands: []string{"operations pace"}, scope: ofJobs, noun: "operation",
	}, func(ctx context.Context, c *call, in *paceInput) (operation.Operation, error) {
		if found, err := c.operation(ctx, in.ID); err != nil {
			return found, err
		}
		rate, err := sluice.ParseRate(in.Body.Rate)
		if err != nil {
			return operation.Operation{}, &sluice.InvalidError{Field: "rate", Rule: "must be a rate such as 50/s, or 0"}
		}
		return operation.SetRate(ctx, c.api.store, in.ID, rate, c.act(in.Body.Reason))
	})
}

// operation reads an operation that acts only on jobs that the caller knows. Another one is a [sluice.ErrNotFound].
func (c *call) operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	found, err := operation.Read(ctx, c.api.store, id)
	if err == nil && !c.covers(found.Query) {
		return operation.Operation{}, sluice.ErrNotFound
	}
	return found, err
}

// covers reports whether a query was narrowed to the bounds of the caller.
func (c *call) covers(q search.Query) bool {
	for _, bound := range c.within(search.Query{}).Terms {
		if !slices.ContainsFunc(q.Terms, func(t search.Term) bool { return reflect.DeepEqual(t, bound) }) {
			return false
		}
	}
	return true
}

// saveOperation stores an operation. As startOperation does, it narrows a new one to the bounds of the caller.
func saveOperation(ctx context.Context, c *call, in *saveOperationInput) (wire.OperationView, error) {
	o := in.Body.Operation.Read(in.ID)
	if err := c.mayMove(o.Edit); err != nil {
		return wire.OperationView{}, err
	}
	switch {
	case o.Version > 0:
		if _, err := c.operation(ctx, in.ID); err != nil {
			return wire.OperationView{}, err
		}
	case o.Backfill != nil && !c.caller.None():
		return wire.OperationView{}, outOfBounds("the token is bounded, and schedules are not")
	case o.Backfill == nil && reflect.DeepEqual(o.Query, search.Query{States: o.Query.States}):
		return wire.OperationView{}, choosesAll("query")
	default:
		o.Query = c.within(o.Query)
	}
	saved, err := operation.Save(ctx, c.api.store, o, c.act(in.Body.Reason))
	if err == nil && !c.covers(saved.Query) { // the act is that of somebody else
		return wire.OperationView{}, sluice.ErrConflict
	}
	return wire.OperationViewOf(saved), err
}

// operationsInput chooses operations.
type operationsInput struct {
	BeforeInput
	Open bool `query:"open" doc:"only those that have not ended"`
}

// saveOperationInput stores an operation.
type saveOperationInput struct {
	JobInput
	Body wire.SaveOperationBody
}

// reasonInput acts on an operation.
type reasonInput struct {
	JobInput
	Body wire.ReasonBody
}

// paceInput changes the rate of an operation.
type paceInput struct {
	JobInput
	Body paceBody
}

// paceBody is a new rate.
type paceBody struct {
	// Rate is how many jobs per time, such as 50/s. 0: as fast as upkeep can.
	Rate string `json:"rate" maxLength:"20"`
	wire.ReasonBody
}

// operationInput starts an operation.
type operationInput struct{ Body operationBody }

// operationBody is an act on all jobs that match.
type operationBody struct {
	// Kind is the act: requeue, cancel, reschedule, edit, delete, hold or release.
	Kind operation.Kind `json:"kind" enum:"requeue,cancel,reschedule,edit,delete,hold,release"`
	// Where chooses the jobs, such as state:dead queue:mail.*.
	Where string `json:"where" minLength:"1" maxLength:"8192"`
	// DueAt is the new due time of a reschedule.
	DueAt time.Time `json:"due_at,omitzero"`
	// Priority is the new priority of an edit, from 1 (first) to 10 (last). Default: no change.
	Priority int `json:"priority,omitempty" minimum:"0" maximum:"10"`
	// Tenant is the new tenant of an edit; an empty one is none. Default: no change.
	Tenant *string `json:"tenant,omitempty"`
	// Postpone is by how much later an edit makes each job due, such as 10m. Default: not at all.
	Postpone string `json:"postpone,omitempty" maxLength:"20"`
	// Spread is by how much more an edit makes jobs due, each by a share of it by chance, such as 30m. Default: not at all.
	Spread string `json:"spread,omitempty" maxLength:"20"`
	// Limit is the most jobs. 0: all.
	Limit int `json:"limit,omitempty" minimum:"0"`
	PaceBody
	// Canary is how many jobs to requeue first.
	Canary int `json:"canary,omitempty" minimum:"0" maximum:"1000"`
	// StopIfFailed is the greatest share, 0 to 1, of requeued jobs that may fail again.
	StopIfFailed float64 `json:"stop_if_failed,omitempty" minimum:"0" maximum:"1"`
	// DryRun counts the jobs and shows some, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	wire.ReasonBody
}

// edit is what an edit changes. Nil: the body names none of it.
func (b operationBody) edit() (*operation.Edit, error) {
	e := operation.Edit{Priority: b.Priority, Tenant: b.Tenant}
	var err error
	if b.Postpone != "" {
		e.Postpone, err = positive("postpone", b.Postpone)
	}
	if b.Spread != "" && err == nil {
		e.Spread, err = positive("spread", b.Spread)
	}
	if err != nil || e == (operation.Edit{}) {
		return nil, err
	}
	return &e, nil
}

// started is an operation that began, or the preview of one.
type started struct {
	// Operation is the operation. Missing: of a dry run.
	Operation *operation.Operation `json:"operation,omitempty"`
	// Matched counts the jobs that match now. More says that jobs are left uncounted.
	Matched int  `json:"matched"`
	More    bool `json:"more"`
	// Samples are some of them, of a dry run.
	Samples []ShownJob `json:"samples,omitempty"`
	// States counts them by state, of a dry run.
	States map[sluice.State]int `json:"states,omitempty"`
}

// mayMove refuses an edit that moves jobs to a tenant beyond the bounds of the caller.
func (c *call) mayMove(e *operation.Edit) error {
	if e == nil || e.Tenant == nil {
		return nil
	}
	return c.mayOwn(*e.Tenant)
}

// choosesAll refuses a filter that names nothing.
func choosesAll(field string) error {
	return &sluice.InvalidError{Field: field, Rule: "must name something; an empty filter would choose every job"}
}

// samples is how many jobs a dry run shows.
const samples = 5

func startOperation(ctx context.Context, c *call, in *operationInput) (started, error) {
	b, now := in.Body, time.Now()
	q, err := search.Parse(b.Where, now)
	if err != nil {
		return started{}, err
	}
	if len(q.Terms) == 0 {
		return started{}, choosesAll("where")
	}
	q = c.within(q)
	op := operation.Operation{Kind: b.Kind, Query: q, DueAt: b.DueAt, Limit: b.Limit, Canary: b.Canary, StopIfFailed: b.StopIfFailed}
	if op.Rate, err = b.rate(); err != nil {
		return started{}, err
	}
	if op.Edit, err = b.edit(); err != nil {
		return started{}, err
	}
	if err := c.mayMove(op.Edit); err != nil {
		return started{}, err
	}
	found, err := operation.Preview(ctx, c.api.store, op, samples)
	if err != nil {
		return started{}, err
	}
	out := started{Matched: found.Matched, More: found.More}
	if b.DryRun {
		out.States = found.States
		for _, job := range found.Jobs {
			out.Samples = append(out.Samples, ShownJob{c.withhold(job), job.Label(now)})
		}
		return out, nil
	}
	op.Expected, op.ExpectedMore = found.Matched, found.More
	if op, err = operation.Start(ctx, c.api.store, op, c.act(b.Reason)); err != nil {
		return started{}, err
	}
	if !c.covers(op.Query) { // the act is that of somebody else
		return started{}, sluice.ErrConflict
	}
	out.Operation = &op
	return out, nil
}
