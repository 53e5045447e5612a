package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
)

func fails(why string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", errors.New(why) }
}

func is(what string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return what, nil }
}

func TestReadinessSaysWhy(t *testing.T) {
	t.Parallel()
	readiness := api.NewReadiness(
		api.Check{Name: "store", Examine: is("it answers")},
		api.Check{Name: "engine", Examine: fails("it is away"), Informative: true},
	)
	if report := readiness.Report(); !report.Ready {
		t.Errorf("what is only told makes it unready: %v", report)
	}
	readiness.Watch(
		api.Check{Name: "store", Examine: fails("it is\n\taway " + strings.Repeat("ä", 1000))},
		api.Check{Name: "engine", Examine: fails("it is away"), Informative: true},
		api.Check{Name: "upkeep", Examine: is("it leads")},
	)
	for accept, kind := range map[string]string{"*/*": "text/plain; charset=utf-8", "text/html, application/json;q=0.9": "application/json"} {
		response := answer(readiness, "GET", "/readyz", "Accept", accept)
		if response.Code != 503 || response.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d, %s", accept, response.Code, response.Header().Get("Content-Type"))
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if kind != "application/json" {
			lines := strings.Split(string(text), "\n")
			if len(lines) != 5 || lines[0] != "not ready" || !strings.HasPrefix(lines[1], "✖ store      it is away äää") || !strings.HasSuffix(lines[1], "ä…") ||
				lines[2] != "! engine     it is away" || lines[3] != "✔ upkeep     it leads" {
				t.Errorf("it says:\n%s", text)
			}
			continue
		}
		var report api.Report
		if err := json.Unmarshal(text, &report); err != nil || report.Ready || len(report.Checks) != 3 || report.Checks[0].Well || !report.Checks[0].Needed ||
			report.Checks[1].Needed || !report.Checks[2].Well {
			t.Errorf("it says %s: %v", text, err)
		}
	}
}

func TestDrainingIsUnreadyAtOnce(t *testing.T) {
	t.Parallel()
	var looked atomic.Int32
	readiness := api.NewReadiness(api.Check{Name: "store", Examine: func(context.Context) (string, error) {
		looked.Add(1)
		return "", nil
	}})
	readiness.Drain()
	readiness.Watch(api.Check{Name: "store", Examine: is("well")})
	if text := readiness.Report().String(); !strings.HasPrefix(text, "not ready\n✖ process    it is draining") || looked.Load() != 0 {
		t.Errorf("it says:\n%s, after %d looks", text, looked.Load())
	}
}

func TestChecksLookOnceASecondHoweverOftenAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var often, seldom int
		readiness := api.NewReadiness(
			api.Check{Name: "often", Examine: func(context.Context) (string, error) { often++; return "", nil }},
			api.Check{Name: "seldom", Every: 10 * time.Second, Examine: func(context.Context) (string, error) { seldom++; return "", nil }},
		)
		for range 2000 { // 20 s
			readiness.Report()
			time.Sleep(10 * time.Millisecond)
		}
		if often != 20 || seldom != 2 {
			t.Errorf("it looked %d and %d times", often, seldom)
		}
	})
}

func TestWhoAsksMeanwhileWaitsForTheSameLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looked := 0
		readiness := api.NewReadiness(api.Check{Name: "store", Examine: func(context.Context) (string, error) {
			looked++
			time.Sleep(time.Second)
			return "well", nil
		}})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if report := readiness.Report(); !report.Ready {
					t.Error(report)
				}
			})
		}
		all.Wait()
		if looked != 1 {
			t.Errorf("it looked %d times", looked)
		}
	})
}

func TestALookThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var heeds, hangs atomic.Int32
		readiness := api.NewReadiness(
			api.Check{Name: "heeds", Examine: func(ctx context.Context) (string, error) {
				heeds.Add(1)
				<-ctx.Done()
				return "", ctx.Err()
			}},
			api.Check{Name: "hangs", Examine: func(context.Context) (string, error) {
				hangs.Add(1)
				<-goOn
				return "back", nil
			}},
			api.Check{Name: "well", Examine: is("well")},
		)
		for n := range 3 {
			begun := time.Now()
			report := readiness.Report()
			took := time.Since(begun)
			if report.Ready || !strings.Contains(report.Checks[0].What, "deadline") || report.Checks[1].What != "no answer within 2s" || !report.Checks[2].Well || took > 3*time.Second {
				t.Errorf("after %s: %v", took, report)
			}
			time.Sleep(time.Second)
			if hangs.Load() != 1 || heeds.Load() != int32(n+1) {
				t.Errorf("it looked %d and %d times", hangs.Load(), heeds.Load())
			}
		}
		close(goOn)
		synctest.Wait()
		if report := readiness.Report(); !report.Checks[1].Well {
			t.Error(report)
		}
	})
}

func TestBeatsThatStopAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var status presence.Status
		check := api.Beats("upkeep", func() presence.Status { return status })
		look := func() string {
			what, err := check.Examine(t.Context())
			if err != nil {
				return err.Error()
			}
			return what
		}
		for _, step := range []struct {
			beat, leads bool
			after       time.Duration
			want        string
		}{
			{false, false, 0, "the store has had no heartbeat of it yet"},
			{true, false, api.Silence, "it runs"},
			{true, true, time.Second, "it leads: upkeep, follow temporal"},
			{false, true, api.Silence, "the store has had no heartbeat of it for 31s"},
		} {
			if step.beat {
				status.Heartbeat = time.Now()
			}
			if step.leads {
				status.Tasks = []string{"upkeep", "follow temporal"}
			}
			time.Sleep(step.after)
			if got := look(); got != step.want {
				t.Errorf("it says %q, want %q", got, step.want)
			}
		}
	})
}

// dumb is an engine that cannot be reached.
type dumb struct {
	engine.Engine
	asked int
}

func (d *dumb) Check(context.Context, engine.Target) (engine.Report, error) {
	d.asked++
	return engine.Report{}, engine.ErrUnavailable
}

func TestEnginesAreAskedOnceForAllTheirQueues(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	runner := &dumb{}
	check := api.EngineAnswers(store, map[string]engine.Engine{"temporal": runner})
	if what, err := check.Examine(t.Context()); err != nil || runner.asked != 0 {
		t.Errorf("without queues: %q, %v", what, err)
	}
	for _, queue := range []string{"a", "b", "other"} {
		name := "temporal"
		if queue == "other" {
			name = "elsewhere"
		}
		settings := sluice.DefaultSettings()
		settings.Engine = name
		if _, err := client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := check.Examine(t.Context()); !errors.Is(err, engine.ErrUnavailable) || runner.asked != 1 {
		t.Errorf("asked %d times: %v", runner.asked, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.StoreAnswers(store).Examine(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("of a store that is closed: %v", err)
	}
}

// hanging is an engine whose Check returns only once its context ends.
type hanging struct{ engine.Engine }

func (hanging) Check(ctx context.Context, _ engine.Target) (engine.Report, error) {
	<-ctx.Done()
	return engine.Report{}, engine.ErrUnavailable
}

// answering is an engine that answers at once, unless its context has ended.
type answering struct{ engine.Engine }

func (answering) Check(ctx context.Context, _ engine.Target) (engine.Report, error) {
	return engine.Report{}, ctx.Err()
}

// panicking is an engine whose Check panics, as an engine that a user wrote may do.
type panicking struct{ engine.Engine }

func (panicking) Check(context.Context, engine.Target) (engine.Report, error) {
	panic("a fault")
}

func TestOnlyTheEngineThatIsAwayIsSaidToBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the time-out of hanging ends after the other engines have answered
		store := memory.New(memory.Options{})
		engines := map[string]engine.Engine{"a": hanging{}, "b": answering{}, "c": panicking{}}
		for name := range engines {
			settings := sluice.DefaultSettings()
			settings.Engine = name
			if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnsureQueue(t.Context(), "queue-"+name, settings, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		_, err := api.EngineAnswers(store, engines).Examine(ctx)
		const want = "engine \"a\", asked about queue \"queue-a\": engine unavailable\nengine \"c\", asked about queue \"queue-c\": its check panicked: a fault"
		if err == nil || err.Error() != want {
			t.Errorf("it says %v", err)
		}
		delete(engines, "a")
		delete(engines, "c")
		if what, err := api.EngineAnswers(store, engines).Examine(t.Context()); what != "can be reached: b" || err != nil {
			t.Errorf("of the one that answers it says %q, %v", what, err)
		}
	})
}

func TestCheckThatPanicsIsNotWell(t *testing.T) {
	t.Parallel()
	readiness := api.NewReadiness(api.Check{Name: "store", Examine: func(context.Context) (string, error) { panic("a fault") }})
	if text := readiness.Report().String(); !strings.HasPrefix(text, "not ready\n✖ store      the check panicked: a fault") {
		t.Errorf("it says:\n%s", text)
	}
}
