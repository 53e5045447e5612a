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
)

// StoreAnswers looks whether a store answers: it reads the store's clock.
func StoreAnswers(store sluice.Store) Check {
	store = sluice.GivenStore(store)
	return Check{Name: "store", Look: func(ctx context.Context) (string, error) {
		begun := time.Now()
		if _, err := store.Now(ctx); err != nil {
			return "", fmt.Errorf("the store does not answer: %w", err)
		}
		return "it answers in " + time.Since(begun).Round(100*time.Microsecond).String(), nil
	}}
}

// schemaChecker is a store that can tell whether its schema is one that this program works with. Those in databases are.
type schemaChecker interface {
	CheckSchema(ctx context.Context) error
}

// SchemaIsUpToDate looks every ten seconds whether the schema of a store is one that this program works with: another
// program may have changed it, or a backup may have been restored. ok: the store has one.
func SchemaIsUpToDate(store sluice.Store) (check Check, ok bool) {
	checker, ok := sluice.StoreAs[schemaChecker](store)
	if !ok {
		return Check{}, false
	}
	return Check{Name: "schema", Every: 10 * time.Second, Look: func(ctx context.Context) (string, error) {
		return "it is up to date", checker.CheckSchema(ctx)
	}}, true
}

// Silence is from when on an upkeep or a dispatcher whose heartbeat the store did not take is not well: six times as long
// as one takes to come.
const Silence = 30 * time.Second

// Beats looks whether the store took a heartbeat lately of what this process runs, such as its upkeep, which does the
// work or stands by, ready to. It reads nothing.
func Beats(name string, status func() sluice.HolderStatus) Check {
	return ofStatus(name, status, func(s sluice.HolderStatus) (string, error) {
		if s.Beaten.IsZero() {
			return "", errors.New("the store has had no heartbeat of it yet")
		}
		silent := time.Since(s.Beaten)
		if silent > Silence {
			return "", fmt.Errorf("the store has had no heartbeat of it for %s", silent.Round(time.Second))
		}
		if len(s.Tasks) > 0 {
			return "it leads: " + strings.Join(s.Tasks, ", "), nil
		}
		return "it runs", nil
	})
}

// Led looks every fifteen seconds who leads upkeep, and who follows the runs at each engine: it is not well if nobody does
// upkeep, or if runs are at an engine that nobody follows.
func Led(store sluice.Store) Check {
	client := sluice.NewClient(store, sluice.ClientOptions{})
	return Check{Name: "leaders", Every: 15 * time.Second, Look: func(ctx context.Context) (string, error) {
		tasks, err := client.Tasks(ctx)
		if err != nil {
			return "", fmt.Errorf("not known, because the store does not answer: %w", err)
		}
		var led []string
		var faults []error
		for _, task := range tasks {
			unfollowed, is := task.Unfollowed()
			switch {
			case task.Lead.Held:
				led = append(led, task.Name+" by "+task.Lead.Holder)
			case task.Engine == "":
				faults = append(faults, errors.New("nobody leads upkeep"))
			case is:
				faults = append(faults, errors.New(unfollowed.Text))
			}
		}
		return strings.Join(led, ", "), errors.Join(faults...)
	}}
}

// Untroubled looks whether anything keeps what this process runs from its work, such as an open breaker. It reads
// nothing.
func Untroubled(name string, status func() sluice.HolderStatus) Check {
	return ofStatus(name, status, func(s sluice.HolderStatus) (string, error) {
		if trouble := s.Trouble(); trouble != "" {
			return "", errors.New(trouble)
		}
		return "nothing keeps it from its work", nil
	})
}

// ofStatus is a check that looks at what a part of this process says of itself. Without a status it is not well.
func ofStatus(name string, status func() sluice.HolderStatus, judge func(sluice.HolderStatus) (string, error)) Check {
	return Check{Name: name, Look: func(context.Context) (string, error) {
		if err := sluice.CheckGiven("status", status); err != nil {
			return "", err
		}
		return judge(status())
	}}
}

// EngineAnswers looks every fifteen seconds whether the engines of queues can be reached, by asking each about one of the
// queues that name it, all at once.
func EngineAnswers(store sluice.Store, engines map[string]sluice.Engine) Check {
	store = sluice.GivenStore(store)
	return Check{Name: "engine", Every: 15 * time.Second, Look: func(ctx context.Context) (string, error) {
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

// askAll asks engines about a queue of each, all at once: one that hangs takes the time of no other.
func askAll(ctx context.Context, engines map[string]sluice.Engine, names []string, about map[string]sluice.Queue) error {
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

// askSafely makes a panic of an engine its answer.
func askSafely(ctx context.Context, engine sluice.Engine, q sluice.Queue) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("its check panicked: %v", panicked)
		}
	}()
	_, err = engine.Check(ctx, sluice.TargetOf(q.Name, q.Settings))
	return err
}
