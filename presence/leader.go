package presence

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// TaskUpkeep is the task of upkeep: recover, expire, prune, evaluate alerts.
const TaskUpkeep = "upkeep"

// followTask begins the names of the tasks that follow runs.
const followTask = "follow "

// FollowTask returns the name of the task that follows the runs at an engine, by its name in the settings of queues.
func FollowTask(engine string) string { return followTask + engine }

// Leader is the process that does a task which one process does at a time.
type Leader struct {
	// Task is TaskUpkeep, or FollowTask of an engine.
	Task string `json:"task"`
	// Holder is the process that leads or led last. Since is when it began to.
	Holder string    `json:"holder"`
	Since  time.Time `json:"since"`
	// Until is when the lease ends unless the process renews it. Held says that the lease holds, by the store's clock.
	Until time.Time `json:"until"`
	Held  bool      `json:"held"`
}

// Task is a task that one process must lead, and its leader.
type Task struct {
	// Name is TaskUpkeep, or FollowTask of Engine.
	Name   string `json:"name"`
	Engine string `json:"engine,omitempty"`
	// Queues name the engine, or have runs there. Runs says that some runs are open.
	Queues []string `json:"queues,omitempty"`
	Runs   bool     `json:"runs,omitempty"`
	// Leader is the last one. Zero: nobody has led.
	Leader Leader `json:"leader"`
}

// Unfollowed returns the condition that open runs wait for the task and nobody does it. False: somebody does, or no run waits.
func (t Task) Unfollowed() (Condition, bool) {
	if t.Engine == "" || t.Leader.Held || !t.Runs {
		return Condition{}, false
	}
	text := "nobody follows the runs at the engine " + t.Engine + " (queues: " + strings.Join(t.Queues, ", ") + ")"
	return NewCondition(ConditionUnfollowed, "", t.Engine, time.Time{}, text), true
}

// Tasks lists the tasks that one process must lead: upkeep, and following the runs at each engine that a queue names or has
// runs at. It reads a few rows, and 1 or 2 of each queue with an engine.
func Tasks(ctx context.Context, store sluice.Store) ([]Task, error) {
	leads, err := Given(store).Leaders(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := store.Queues(ctx, sluice.QueueFilter{Engined: true})
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
		away, err := engine.Given(store).Dispatches(ctx, engine.DispatchFilter{Queue: q.Name, Limit: 1, ReadOnly: true})
		if err != nil {
			return nil, err
		}
		for _, claim := range away {
			engine, _ := engine.TargetAt(q.Name, q.Settings, claim.Engine)
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
		if at := slices.IndexFunc(leads, func(l Leader) bool { return l.Task == all[i].Name }); at >= 0 {
			all[i].Leader = leads[at]
		}
	}
	return all, nil
}
