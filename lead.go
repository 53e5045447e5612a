package sluice

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// TaskUpkeep is the task of the upkeep that recovers, expires, prunes and looks at alerts.
const TaskUpkeep = "upkeep"

// followTask begins the names of the tasks of those that follow runs.
const followTask = "follow "

// FollowTask names the task of following the runs at an engine, given by the name that queues have for it.
func FollowTask(engine string) string { return followTask + engine }

// Lead says who does a task that one process does at a time.
type Lead struct {
	// Task is TaskUpkeep, or FollowTask of an engine.
	Task string `json:"task"`
	// Holder is the process that leads, or led last, and Since when it began.
	Holder string    `json:"holder"`
	Since  time.Time `json:"since"`
	// Until is when its lease ends, unless it is renewed; Held says whether it has not ended, by the store's clock.
	Until time.Time `json:"until"`
	Held  bool      `json:"held"`
}

// Task is something that a process must lead, so that it is done, and who leads it.
type Task struct {
	// Name is TaskUpkeep, or FollowTask of Engine.
	Name   string `json:"name"`
	Engine string `json:"engine,omitempty"`
	// Queues name the engine, or have runs there. Runs says that some are under way.
	Queues []string `json:"queues,omitempty"`
	Runs   bool     `json:"runs,omitempty"`
	// Lead is who led last; a zero one: nobody did.
	Lead Lead `json:"lead"`
}

// Unfollowed is the condition that nobody does the task although runs wait for it; false: somebody does, or nothing waits.
func (t Task) Unfollowed() (Condition, bool) {
	if t.Engine == "" || t.Lead.Held || !t.Runs {
		return Condition{}, false
	}
	text := "nobody follows the runs at the engine " + t.Engine + " (queues: " + strings.Join(t.Queues, ", ") + ")"
	return NewCondition(ConditionUnfollowed, "", t.Engine, time.Time{}, text), true
}

// Leads lists who leads which task, or led it last.
func (c *Client) Leads(ctx context.Context) ([]Lead, error) { return c.store.Leads(ctx) }

// Tasks lists what a process must lead: upkeep, and following the runs at each engine that a queue names or has runs at.
// It reads a few rows, and one or two of each queue that has to do with an engine.
func (c *Client) Tasks(ctx context.Context) ([]Task, error) {
	leads, err := c.store.Leads(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := c.store.Queues(ctx, QueueFilter{Engined: true})
	if err != nil {
		return nil, err
	}
	engines := make(map[string]*Task)
	task := func(engine, queue string) *Task {
		t := engines[engine]
		if t == nil {
			t = &Task{Name: FollowTask(engine), Engine: engine}
			engines[engine] = t
		}
		if !slices.Contains(t.Queues, queue) {
			t.Queues = append(t.Queues, queue)
		}
		return t
	}
	for _, q := range queues {
		if q.Settings.Engine != "" {
			task(q.Settings.Engine, q.Name)
		}
		away, err := c.store.Dispatches(ctx, DispatchFilter{Queue: q.Name, Limit: 1, Look: true})
		if err != nil {
			return nil, err
		}
		for _, claim := range away {
			engine, _ := TargetAt(q.Name, q.Settings, claim.Engine)
			task(engine, q.Name).Runs = true
		}
	}
	all := []Task{{Name: TaskUpkeep}}
	for _, t := range engines {
		slices.Sort(t.Queues)
		all = append(all, *t)
	}
	slices.SortFunc(all[1:], func(a, b Task) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		if at := slices.IndexFunc(leads, func(l Lead) bool { return l.Task == all[i].Name }); at >= 0 {
			all[i].Lead = leads[at]
		}
	}
	return all, nil
}
