package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/internal/wire"
)

// queueWriting adds the routes for programs that keep the settings of queues themselves, and count jobs.
func (a *API) queueWriting(queue func(Route) Route) {
	add(a, queue(Route{
		Method: "PUT", Path: "/queues/{queue}", Name: "save-queue", Summary: "store all settings of a queue",
		Text:  "Stores the queue if its version is still that of the body; 0 makes the queue. Settings that are missing get their defaults.",
		Needs: access.Operate, Commands: []string{"settings set"},
	}), saveQueue)
	add(a, queue(Route{
		Method: "GET", Path: "/queues/{queue}/depth", Name: "get-depth", Summary: "count the jobs of a queue",
		Text:  "A queue that nobody has used counts as empty.",
		Needs: access.Look | access.Work, Commands: []string{"queues"},
	}), func(ctx context.Context, c *call, in *depthInput) (sluice.Depth, error) {
		return c.api.store.Depth(ctx, in.Queue, in.Limit)
	})
	add(a, Route{
		Method: "POST", Path: "/queues/admit", Name: "admit-queues", Group: "queues", Summary: "make new queues for jobs",
		Text:  "Makes the queues that are new and may be made, as an enqueue does. It lists those that may not.",
		Needs: access.Enqueue, scope: ofJobs, noun: "queue",
	}, admitQueues)
	add(a, Route{
		Method: "GET", Path: "/time", Name: "get-time", Group: "about", Summary: "read the clock of the store",
		Needs: anyRight, scope: ofJobs,
	}, func(ctx context.Context, c *call, _ *nothing) (clockView, error) {
		now, err := c.api.store.Now(ctx)
		return clockView{now}, err
	})
}

// clockView is the store's clock.
type clockView struct {
	// Now is the time by the store's clock.
	Now time.Time `json:"now"`
}

// depthInput chooses what to count.
type depthInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Limit int    `query:"limit" doc:"the highest count" minimum:"1" maximum:"100000" default:"10000"`
}

// saveQueueInput stores a queue.
type saveQueueInput struct {
	Queue string `path:"queue" doc:"the queue, or a group such as mail.*" maxLength:"64"`
	Body  saveQueueBody
}

// saveQueueBody is a queue.
type saveQueueBody struct {
	// Version is that of the queue as the caller read it. 0: the queue is new.
	Version int64 `json:"version,omitempty"`
	// Settings are the settings by name, with values as people write them.
	Settings map[string]string `json:"settings" maxProperties:"100"`
	// Scheduled are the scheduled changes, as the queue has them.
	Scheduled []changes.Change `json:"scheduled,omitempty" maxItems:"1000"`
	wire.ReasonBody
}

func saveQueue(ctx context.Context, c *call, in *saveQueueInput) (queueView, error) {
	settings, err := settingsOf(in.Body.Settings)
	if err != nil {
		return queueView{}, err
	}
	q := sluice.Queue{Name: in.Queue, Version: in.Body.Version, Settings: settings}
	if len(in.Body.Scheduled) > 0 {
		text, err := json.Marshal(in.Body.Scheduled)
		if err != nil {
			return queueView{}, &sluice.InvalidError{Field: "scheduled", Rule: err.Error()}
		}
		q.Scheduled = text
	}
	act := c.act(in.Body.Reason)
	if err := c.checkQueue(q, act); err != nil {
		return queueView{}, err
	}
	defer c.api.forget() // also if the queue was saved, and only the answer failed
	saved, err := c.api.store.SaveQueue(ctx, q, act)
	if err != nil {
		return queueView{}, err
	}
	return c.viewOf(ctx, saved, false)
}

// settingsOf reads settings by name, as people write them. A missing one has its default.
func settingsOf(texts map[string]string) (sluice.Settings, error) {
	out := sluice.DefaultSettings()
	for name, text := range texts {
		setting, err := sluice.SettingNamed(name)
		if err != nil {
			return out, &sluice.InvalidError{Field: "settings", Rule: err.Error()}
		}
		if err := setting.Parse(&out, text); err != nil {
			return out, err
		}
	}
	return out, nil
}

// checkQueue returns the rule that a queue breaks which the caller wants to store.
func (c *call) checkQueue(q sluice.Queue, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	group := sluice.IsGroup(q.Name)
	switch {
	case group && q.Settings.Paused:
		return &sluice.InvalidError{Field: "paused", Rule: "a group cannot be paused; pause its queues instead"}
	case !group && q.Version == 0:
		if err := sluice.CheckOwnQueueName(q.Name); err != nil {
			return err
		}
	}
	return c.api.client().CheckSettings(q.Settings)
}

// admitInput names new queues.
type admitInput struct{ Body admitBody }

// admitBody names new queues.
type admitBody struct {
	// Queues are the queues, each once.
	Queues []string `json:"queues" minItems:"1" maxItems:"1000"`
	wire.ReasonBody
}

// admitted says which queues were refused.
type admitted struct {
	// Refused are the queues that were not made.
	Refused []refusedQueue `json:"refused"`
}

// refusedQueue is a queue that was not made.
type refusedQueue struct {
	// Queue is the name, and Error says why.
	Queue string   `json:"queue"`
	Error *Problem `json:"error"`
}

func admitQueues(ctx context.Context, c *call, in *admitInput) (admitted, error) {
	out := admitted{Refused: []refusedQueue{}}
	for _, queue := range in.Body.Queues {
		if !c.caller.Queue(queue) {
			return out, outOfBounds("the token is bounded to other queues")
		}
		if sluice.CheckOwnQueueName(queue) != nil {
			return out, &sluice.InvalidError{Field: "queues", Rule: fmt.Sprintf("%.80q must be the name of a queue", queue)}
		}
	}
	act := c.act(in.Body.Reason)
	if err := act.Check(); err != nil {
		return out, err
	}
	errs, err := c.api.store.Admit(ctx, in.Body.Queues, act)
	if err != nil {
		return out, err
	}
	for i, refused := range errs {
		if refused != nil {
			out.Refused = append(out.Refused, refusedQueue{in.Body.Queues[i], c.problem(refused)})
		}
	}
	return out, nil
}
