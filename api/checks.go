package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// StoreAnswers checks that a store answers: it reads the store's clock.
func StoreAnswers(store sluice.Store) Check {
	store = sluice.GivenStore(store)
	return Check{Name: "store", Examine: func(ctx context.Context) (string, error) {
		begun := time.Now()
		if _, err := store.Now(ctx); err != nil {
			return "", fmt.Errorf("the store does not answer: %w", err)
		}
		return "it answers in " + time.Since(begun).Round(100*time.Microsecond).String(), nil
	}}
}

// schemaChecker is a store that can tell whether this program supports its schema, as stores in databases can.
type schemaChecker interface {
	CheckSchema(ctx context.Context) error
}

// SchemaIsUpToDate checks every 10 s that this program supports the store's schema. Another program may have
// changed the schema, or somebody may have restored a backup. ok is false if the store has no schema.
func SchemaIsUpToDate(store sluice.Store) (check Check, ok bool) {
	checker, ok := sluice.StoreAs[schemaChecker](store)
	if !ok {
		return Check{}, false
	}
	return Check{Name: "schema", Every: 10 * time.Second, Examine: func(ctx context.Context) (string, error) {
		return "it is up to date", checker.CheckSchema(ctx)
	}}, true
}

// Silence is the age of the last heartbeat at which an upkeep or a dispatcher is unhealthy: 6 heartbeat
// intervals.
const Silence = 30 * time.Second

// Beats checks that the store recently accepted a heartbeat from a part of this process. The part may be its
// upkeep, at work or on standby. The check reads only memory.
func Beats(name string, status func() presence.Status) Check {
	return ofStatus(name, status, func(s presence.Status) (string, error) {
		if s.Heartbeat.IsZero() {
			return "", errors.New("the store has had no heartbeat of it yet")
		}
		silent := time.Since(s.Heartbeat)
		if silent > Silence {
			return "", fmt.Errorf("the store has had no heartbeat of it for %s", silent.Round(time.Second))
		}
		if len(s.Tasks) > 0 {
			return "it leads: " + strings.Join(s.Tasks, ", "), nil
		}
		return "it runs", nil
	})
}

// Led checks every 15 s which processes lead upkeep and follow the runs at each engine. The check fails if no
// process leads upkeep, or if no process follows an engine that has runs.
func Led(store sluice.Store) Check {
	return Check{Name: "leaders", Every: 15 * time.Second, Examine: func(ctx context.Context) (string, error) {
		tasks, err := presence.Tasks(ctx, store)
		if err != nil {
			return "", fmt.Errorf("not known, because the store does not answer: %w", err)
		}
		var led []string
		var faults []error
		for _, task := range tasks {
			unfollowed, is := task.Unfollowed()
			switch {
			case task.Leader.Held:
				led = append(led, task.Name+" by "+task.Leader.Holder)
			case task.Engine == "":
				faults = append(faults, errors.New("nobody leads upkeep"))
			case is:
				faults = append(faults, errors.New(unfollowed.Text))
			}
		}
		return strings.Join(led, ", "), errors.Join(faults...)
	}}
}

// NoConditions checks that nothing keeps a part of this process from its work, such as an open breaker. The check
// reads only memory.
func NoConditions(name string, status func() presence.Status) Check {
	return ofStatus(name, status, func(s presence.Status) (string, error) {
		if trouble := s.Summary(); trouble != "" {
			return "", errors.New(trouble)
		}
		return "nothing keeps it from its work", nil
	})
}

// ofStatus makes a check of the status of a part of this process. Without a status function, the check fails.
func ofStatus(name string, status func() presence.Status, judge func(presence.Status) (string, error)) Check {
	return Check{Name: name, Examine: func(context.Context) (string, error) {
		if err := sluice.CheckGiven("status", status); err != nil {
			return "", err
		}
		return judge(status())
	}}
}

// EngineAnswers checks every 15 s that the engines of queues are reachable. Each engine is asked about one
// queue that names it, all in parallel.
func EngineAnswers(store sluice.Store, engines map[string]engine.Engine) Check {
	store = sluice.GivenStore(store)
	return Check{Name: "engine", Every: 15 * time.Second, Examine: func(ctx context.Context) (string, error) {
		if len(engines) == 0 {
			return "this process has no engine", nil
		}
		queues, err := store.Queues(ctx, sluice.QueueFilter{Engines: slices.Sorted(maps.Keys(engines))})
		if err != nil {
			return "", fmt.Errorf("not known, because the store does not answer: %w", err)
		}
		asked := make(map[string]sluice.Queue)
		for _, q := range queues {
			if _, is := asked[q.Settings.Engine]; !is && engines[q.Settings.Engine] != nil {
				asked[q.Settings.Engine] = q
			}
		}
		if len(asked) == 0 {
			return "no queue names an engine that this process has", nil
		}
		names := slices.Sorted(maps.Keys(asked))
		return "can be reached: " + strings.Join(names, ", "), askAll(ctx, engines, names, asked)
	}}
}

// askAll asks each engine about one queue, in parallel: a hanging engine delays no other.
func askAll(ctx context.Context, engines map[string]engine.Engine, names []string, about map[string]sluice.Queue) error {
	faults := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			q := about[name]
			if err := askSafely(ctx, engines[name], q); err != nil {
				faults[i] = fmt.Errorf("engine %q, asked about queue %q: %w", name, q.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// askSafely returns a panic of an engine as an error.
func askSafely(ctx context.Context, asked engine.Engine, q sluice.Queue) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("its check panicked: %v", panicked)
		}
	}()
	_, err = asked.Check(ctx, engine.TargetOf(q.Name, q.Settings))
	return err
}
