package httpapi

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/limit"
)

// limits adds the routes of limits that queues share, and of the rule for new queues.
func (a *API) limits() {
	route := func(r Route) Route { r.Group, r.noun = "limits", "limit"; return r }
	a.limitSaving(route)
	a.limitChanges(route)
	a.admissionRoutes()
	add(a, route(Route{
		Method: "GET", Path: "/limits", Name: "list-limits", Summary: "list limits that queues share", Needs: access.Look, Commands: []string{"limits ls"},
	}), func(ctx context.Context, c *call, _ *nothing) (wire.LimitList, error) {
		uses, err := limit.Uses(ctx, c.api.store)
		out := wire.LimitList{Limits: []wire.LimitView{}}
		for _, use := range uses {
			out.Limits = append(out.Limits, wire.LimitViewOf(use))
		}
		return out, err
	})
	add(a, route(Route{
		Method: "GET", Path: "/limits/{limit}", Name: "get-limit", Summary: "read a limit and its use", Needs: access.Look, Commands: []string{"limits get"},
	}), func(ctx context.Context, c *call, in *getLimitInput) (wire.LimitView, error) {
		return c.limit(ctx, in.Limit, in.Key...)
	})
}

// limitSaving adds the routes for programs that keep limits themselves.
func (a *API) limitSaving(route func(Route) Route) {
	add(a, route(Route{
		Method: "PUT", Path: "/limits/{limit}", Name: "save-limit", Summary: "store a limit",
		Text: "Stores the limit if its version is still that of the body; 0 makes the limit.", Needs: access.Operate, Commands: []string{"limits set"},
	}), func(ctx context.Context, c *call, in *saveLimitInput) (wire.LimitView, error) {
		l := in.Body.Limit
		l.Name, l.Version = in.Limit, in.Body.Version
		saved, err := limit.Save(ctx, c.api.store, l, c.act(in.Body.Reason))
		return wire.LimitViewOf(limit.Use{Limit: saved}), err
	})
	add(a, route(Route{
		Method: "PUT", Path: "/limits/{limit}/key", Name: "save-limit-key", Summary: "close a limit key until an instant, or open it",
		Needs: access.Operate, Commands: []string{"limits close", "limits open"},
	}), func(ctx context.Context, c *call, in *saveLimitKeyInput) (done, error) {
		b := in.Body
		return done{true}, limit.CloseKeyUntil(ctx, c.api.store, in.Limit, b.Key, b.ClosedUntil, c.act(b.Reason))
	})
}

func (a *API) limitChanges(route func(Route) Route) {
	add(a, route(Route{
		Method: "PATCH", Path: "/limits/{limit}", Name: "set-limit", Summary: "make or change a limit", Needs: access.Operate, Commands: []string{"limits set"},
	}), func(ctx context.Context, c *call, in *setLimitInput) (wire.LimitView, error) {
		_, err := limit.Change(ctx, c.api.store, in.Limit, c.act(in.Body.Reason), func(l *limit.Limit) error { return in.Body.Set.each(l.Set) })
		if err != nil {
			return wire.LimitView{}, err
		}
		return c.limit(ctx, in.Limit)
	})
	add(a, route(Route{
		Method: "POST", Path: "/limits/{limit}/close", Name: "close-limit", Summary: "close a limit",
		Text: "Stops the claims of all its queues, for a while or until it is opened. Needs a reason.", Needs: access.Operate, Commands: []string{"limits close"},
	}), func(ctx context.Context, c *call, in *closeLimitInput) (wire.LimitView, error) {
		while, err := optional("for", in.Body.For)
		switch {
		case err != nil:
		case in.Key != "":
			err = limit.CloseKey(ctx, c.api.store, in.Limit, in.Key, while, c.act(in.Body.Reason))
		default:
			_, err = limit.Close(ctx, c.api.store, in.Limit, while, c.act(in.Body.Reason))
		}
		if err != nil {
			return wire.LimitView{}, err
		}
		return c.limit(ctx, in.Limit)
	})
	add(a, route(Route{
		Method: "POST", Path: "/limits/{limit}/open", Name: "open-limit", Summary: "open a closed limit", Needs: access.Operate, Commands: []string{"limits open"},
	}), func(ctx context.Context, c *call, in *openLimitInput) (wire.LimitView, error) {
		var err error
		if in.Key != "" {
			err = limit.OpenKey(ctx, c.api.store, in.Limit, in.Key, c.act(in.Body.Reason))
		} else {
			_, err = limit.Open(ctx, c.api.store, in.Limit, c.act(in.Body.Reason))
		}
		if err != nil {
			return wire.LimitView{}, err
		}
		return c.limit(ctx, in.Limit)
	})
	add(a, route(Route{
		Method: "POST", Path: "/limits/{limit}/undo", Name: "undo-limit", Summary: "undo the last change of a limit", Needs: access.Operate, Commands: []string{"limits undo"},
	}), func(ctx context.Context, c *call, in *undoLimitInput) (wire.LimitView, error) {
		if _, err := limit.Undo(ctx, c.api.store, in.Limit, c.act(in.Body.Reason)); err != nil {
			return wire.LimitView{}, err
		}
		return c.limit(ctx, in.Limit)
	})
	add(a, route(Route{
		Method: "DELETE", Path: "/limits/{limit}", Name: "delete-limit", Summary: "delete a limit that no queue names", Needs: access.Operate, Commands: []string{"limits delete"},
	}), func(ctx context.Context, c *call, in *limitReasonInput) (done, error) {
		return done{true}, limit.Delete(ctx, c.api.store, in.Limit, c.act(in.Reason))
	})
}

// getLimitInput names a limit, and keys.
type getLimitInput struct {
	Limit string   `path:"limit" doc:"the limit" maxLength:"64"`
	Key   []string `query:"key,explode" doc:"limit keys to show; without, those that are closed or have waiting jobs" maxItems:"100"`
}

// limitReasonInput names a limit, and a reason.
type limitReasonInput struct {
	Limit  string `path:"limit" doc:"the limit" maxLength:"64"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// saveLimitInput stores a limit.
type saveLimitInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Body  wire.SaveLimitBody
}

// saveLimitKeyInput closes or opens a limit key.
type saveLimitKeyInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Body  wire.SaveLimitKeyBody
}

// setLimitInput changes a limit.
type setLimitInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Body  setLimitBody
}

// setLimitBody changes a limit.
type setLimitBody struct {
	wire.ReasonBody
	// Set has new values by name: rate, burst, concurrency, per and units, such as rate: 500/5s. A null removes a figure.
	Set figures `json:"set" minProperties:"1" maxProperties:"10"`
}

// closeLimitInput closes a limit.
type closeLimitInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Key   string `query:"key" doc:"close only this limit key, of a limit that is per key; needs for" maxLength:"255"`
	Body  PauseBody
}

// openLimitInput opens a limit.
type openLimitInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Key   string `query:"key" doc:"open only this limit key" maxLength:"255"`
	Body  wire.ReasonBody
}

// undoLimitInput undoes a change of a limit.
type undoLimitInput struct {
	Limit string `path:"limit" doc:"the limit" maxLength:"64"`
	Body  wire.ReasonBody
}

// limit reads a limit with its use, and that of keys.
func (c *call) limit(ctx context.Context, name string, keys ...string) (wire.LimitView, error) {
	if _, err := limit.Read(ctx, c.api.store, name); err != nil {
		return wire.LimitView{}, err
	}
	uses, err := limit.Uses(ctx, c.api.store, name)
	switch {
	case err != nil:
		return wire.LimitView{}, err
	case len(uses) == 0:
		return wire.LimitView{}, sluice.ErrNotFound
	}
	used, err := limit.KeyUses(ctx, c.api.store, name, keys...)
	return wire.LimitViewOf(uses[0], used...), err
}

func (a *API) admissionRoutes() {
	add(a, Route{
		Method: "GET", Path: "/admission", Name: "get-admission", Group: "queues", Summary: "read which new queues the store takes",
		Needs: access.Look, Commands: []string{"queues policy"},
	}, func(ctx context.Context, c *call, _ *nothing) (wire.AdmissionView, error) {
		p, err := admission.Of(ctx, c.api.store)
		return wire.AdmissionViewOf(p), err
	})
	add(a, Route{
		Method: "PATCH", Path: "/admission", Name: "change-admission", Group: "queues", Summary: "change which new queues the store takes",
		Needs: access.Administer, Commands: []string{"queues policy"},
	}, func(ctx context.Context, c *call, in *admissionInput) (wire.AdmissionView, error) {
		p, err := admission.Of(ctx, c.api.store)
		if err != nil {
			return wire.AdmissionView{}, err
		}
		if in.Body.Declared != nil {
			p.Declared = *in.Body.Declared
		}
		if in.Body.MaxQueues != 0 {
			p.MaxQueues = in.Body.MaxQueues
		}
		p, err = admission.Save(ctx, c.api.store, p, c.act(in.Body.Reason))
		return wire.AdmissionViewOf(p), err
	})
	add(a, Route{
		Method: "PUT", Path: "/admission", Name: "save-admission", Group: "queues", Summary: "store which new queues the store takes",
		Text:  "For programs. Stores it if its version is still that of the body.",
		Needs: access.Administer, Commands: []string{"queues policy"},
	}, func(ctx context.Context, c *call, in *saveAdmissionInput) (wire.AdmissionView, error) {
		b := in.Body
		p, err := admission.Save(ctx, c.api.store, admission.Policy{MaxQueues: b.MaxQueues, Declared: b.Declared, Version: b.Version}, c.act(b.Reason))
		return wire.AdmissionViewOf(p), err
	})
}

// saveAdmissionInput stores which new queues the store takes.
type saveAdmissionInput struct{ Body wire.SaveAdmissionBody }

// admissionInput changes which new queues the store takes.
type admissionInput struct{ Body admissionBody }

// admissionBody is a change. Fields that are missing stay as they are.
type admissionBody struct {
	wire.ReasonBody
	// Declared says that somebody must declare a queue before its first job.
	Declared *bool `json:"declared,omitempty"`
	// MaxQueues is the most queues of the store.
	MaxQueues int `json:"max_queues,omitempty" minimum:"0"`
}
