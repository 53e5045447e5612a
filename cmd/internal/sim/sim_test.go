package sim_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/sim"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// run simulates a scenario.
func run(t *testing.T, text string) sim.Report {
	t.Helper()
	report, err := sim.Run(t.Context(), parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestARunTellsHowFarItIs watches the progress of a simulation.
func TestARunTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	var last sim.Progress
	told := 0
	_, err := sim.Watch(t.Context(), parse(t, shipped(t, "noisy-tenant")), func(p sim.Progress) {
		if p.At < last.At || p.Jobs < last.Jobs || p.Ended < last.Ended || p.Ended > p.Jobs {
			t.Errorf("%+v comes after %+v", p, last)
		}
		last = p
		told++
	})
	if err != nil || told < 2 || last.Ended == 0 {
		t.Errorf("it told %d times, the last %+v; %v", told, last, err)
	}
}

// shipped returns a scenario that comes with the program.
func shipped(t *testing.T, name string) string {
	t.Helper()
	text, ok := sim.Text(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	return string(text)
}

// near reports whether two figures differ by at most a share.
func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

func TestShippedScenariosAreRight(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(sim.Shipped()); got != "[noisy-tenant payments-16h three-tiers]" {
		t.Errorf("there are %s", got)
	}
	for _, name := range sim.Shipped() {
		if s := parse(t, shipped(t, name)); s.Name != name || s.About == "" || len(s.Expect) == 0 {
			t.Errorf("%s: got %+v, want its name, a text about it and expectations", name, s)
		}
	}
}

// TestPaymentsAt16 runs the shipped scenario with a twentieth of its payments, which takes a twentieth of the time.
func TestPaymentsAt16(t *testing.T) {
	t.Parallel()
	report := run(t, strings.Replace(shipped(t, "payments-16h"), "500_000", "25_000", 1))
	q := report.Queues[0]
	if !report.Holds || q.Completed != 25_000 || q.Unfinished != 0 || q.Failed == 0 {
		t.Errorf("want all 25,000 payments completed, some after failures, and all checks kept: %+v", report.Checks)
	}
	// All jobs and their retries go at 100/s, and the last retries wait some seconds longer.
	if want := float64(25_000-5+q.Failed) / 100; *q.Drain < want || *q.Drain > want+90 {
		t.Errorf("it took %.1fs, want %.1fs and a few more", *q.Drain, want)
	}
	for _, w := range q.Windows {
		if float64(w.Most) > w.Allowed || w.Most == 0 {
			t.Errorf("want starts, and no more than allowed: %+v", w)
		}
	}
	if *q.RateUsed < 0.98 || *q.Fairness < 0.99 || len(report.Tenants) != 2000 {
		t.Errorf("want the rate used and fair shares for 2,000 tenants: %+v", q)
	}
}

// TestScenariosOfTenants runs the shipped scenarios about limits of tenants. All their expectations must hold.
func TestScenariosOfTenants(t *testing.T) {
	t.Parallel()
	for name, jobs := range map[string]int{"noisy-tenant": 1160, "three-tiers": 0} {
		text := shipped(t, name)
		if name == "three-tiers" { // a tenth of the jobs, which takes a tenth of the time
			text = strings.NewReplacer("75_000", "7_500", "at: 2h", "at: 10m", "to: 9h", "to: 54m").Replace(text)
		}
		report := run(t, text)
		if !report.Holds {
			t.Errorf("%s: a check fails: %+v", name, report.Checks)
		}
		if q := report.Queues[0]; q.Unfinished > 0 || jobs > 0 && q.Completed != jobs {
			t.Errorf("%s: want all jobs completed: %+v", name, q)
		}
	}
}

// mixed uses all parts of a scenario that depend on chance.
const mixed = `
queues: {a: {rate: 30/s, burst: 5, fair: true, tenant_concurrency: 2}, b: {concurrency: 7}}
tiers: [{name: PRO, concurrency: 4, weight: 3}]
tenants: [{name: t, count: 9, tier: PRO}, {name: u, count: 2, rate: 1/s}]
until: 10m
arrivals:
  - {queue: a, tenant: t, rate: 20/s}
  - {queue: a, tenant: t, jobs: 3000, at: 2m, priority: 8}
  - {queue: a, tenant: u, jobs: 200}
  - {queue: b, rate: 5/s, priority: 1}
  - {queue: b, rate: 5/s, pattern: steady, priority: 9}
workers:
  - {processes: 3, slots: 8, duration: {mean: 500ms, shape: lognormal}, failures: 0.2}
  - {queues: [b], duration: {mean: 2s, shape: exponential}}
`

func TestSameSeedGivesTheSameReport(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, seed := range []string{"seed: 5", "seed: 5", "seed: 6"} {
		report := run(t, seed+mixed)
		if !report.Holds {
			t.Errorf("a limit was broken: %+v", report.Checks)
		}
		report.Seed = 0
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("two reports of one seed differ:\n%s\n%s", texts[0], texts[1])
	}
	if texts[0] == texts[2] {
		t.Error("two seeds have one report")
	}
}

// TestWorkersOfTheSimulationActLikeRealOnes runs the same jobs through package worker, on the fake clock of
// testing/synctest.
func TestWorkersOfTheSimulationActLikeRealOnes(t *testing.T) {
	for name, at := range map[string]struct {
		processes, slots int
		takes            time.Duration
		settings         string
	}{
		"held by the slots":             {1, 7, 200 * time.Millisecond, ""},
		"held by the rate":              {2, 20, 300 * time.Millisecond, "rate: 25/s, burst: 3"},
		"held by the concurrency limit": {3, 4, 150 * time.Millisecond, "concurrency: 5"},
		"slow and rare":                 {2, 2, 5 * time.Second, "rate: 20/m"},
		"held by batch and interval":    {2, 20, 300 * time.Millisecond, "batch: 10, interval: 5s"},
		"held by the interval alone":    {1, 20, 300 * time.Millisecond, "interval: 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			const jobs = 400
			text := fmt.Sprintf("queues: {q: {%s}}\narrivals: [{jobs: %d, due: 3s}]\nworkers: [{processes: %d, slots: %d, duration: %s}]",
				at.settings, jobs, at.processes, at.slots, at.takes)
			scenario := parse(t, text)
			report, err := sim.Run(t.Context(), scenario)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				took := drain(t, scenario.Queues[0].Settings, jobs, at.processes, at.slots, at.takes)
				if got := *report.Queues[0].Drain; !near(got, took.Seconds(), 0.02) {
					t.Errorf("the simulation took %.3fs, real workers took %.3fs", got, took.Seconds())
				}
			})
		})
	}
}

// drain runs jobs, all due in three seconds, through real workers. It returns the time from then to the last end.
func drain(t *testing.T, settings sluice.Settings, jobs, processes, slots int, takes time.Duration) time.Duration {
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	queue := sluice.QueueOf[int]("q")
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(3 * time.Second)
	for range jobs {
		job, err := queue.NewJob(1, sluice.EnqueueOptions{DueAt: due})
		if err == nil {
			_, err = client.Enqueue(t.Context(), job)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	left := jobs
	var ended time.Time
	var workers sync.WaitGroup
	for range processes {
		w := worker.New(store, worker.Options{Slots: slots, Logger: slog.New(slog.DiscardHandler)})
		worker.Handle(w, queue, func(context.Context, *worker.Job[int]) error {
			time.Sleep(takes)
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				ended = time.Now()
				stop()
			}
			return nil
		}, worker.QueueOptions{})
		workers.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	return ended.Sub(due)
}

func TestJobsStartLaterByTheirJitter(t *testing.T) {
	t.Parallel()
	q := run(t, "queues: {q: {jitter: 40s}}\narrivals: [{jobs: 1000}]\nworkers: [{slots: 1000, duration: 1s}]").Queues[0]
	if !near(*q.Wait.Mean, 20, 0.1) || !near(q.Wait.Max, 40, 0.05) || !near(*q.Drain, 41, 0.05) {
		t.Errorf("the mean wait is %.1fs, the longest %.1fs, and all took %.1fs; want 20s, 40s and 41s", *q.Wait.Mean, q.Wait.Max, *q.Drain)
	}
}

func TestWhatBecomesOfFailures(t *testing.T) {
	t.Parallel()
	q := run(t, `
queues: {q: {max_attempts: 3, backoff_base: 1m, backoff_factor: 2, backoff_max: 1h, backoff_jitter: 0s}}
arrivals: [{jobs: 50}]
workers: [{slots: 50, duration: 1s, failures: 1}]
`).Queues[0]
	if q.Dead != 50 || q.Completed != 0 || q.Failed != 150 || q.Wait.Max > 1 {
		t.Errorf("want 50 dead jobs after 150 failures: %+v", q)
	}
	if !near(*q.Drain, 3+60+120, 0.01) {
		t.Errorf("three attempts and two waits took %.1fs", *q.Drain)
	}
	q = run(t, "queues: {q: {timeout: 10s, max_attempts: 1}}\narrivals: [{jobs: 5, duration: 11s}, {jobs: 5, duration: 9s}]\nworkers: [{}]").Queues[0]
	if q.Dead != 5 || q.Completed != 5 || !near(*q.Drain, 10, 0.01) {
		t.Errorf("attempts that took longer than the timeout: %+v", q)
	}
}

func TestJobsThatNeverStartCountAsWaiting(t *testing.T) {
	t.Parallel()
	report := run(t, "queues: {q: {paused: true}}\narrivals: [{jobs: 3}]\nworkers: [{poll: 1m}]\nexpect: [{max_wait: <= 1h, p50_wait: <= 1h, drain: <= 1h}]")
	q := report.Queues[0]
	if q.Drain != nil || q.Unfinished != 3 || q.Wait.P50 != nil || q.Wait.Max < 30*24*3600 || report.Holds {
		t.Errorf("a paused queue: %+v", q)
	}
	for _, c := range report.Checks {
		if c.Holds {
			t.Errorf("it holds: %+v", c)
		}
	}
	q = run(t, "until: 1h\nqueues: {q: {timeout: 0s}}\narrivals: [{jobs: 3}]\nworkers: [{slots: 1, duration: 40m}]\n").Queues[0]
	if q.Completed != 1 || q.Unfinished != 2 || q.Wait.Max != 3600 || q.SlotsUsed != 1 {
		t.Errorf("cut off after an hour: %+v", q)
	}
}

func TestNoPriorityStarves(t *testing.T) {
	t.Parallel()
	text := `
until: 30m
queues: {q: {rate: 10/s, ageing: %s}}
arrivals:
  - {rate: 12/s, priority: 1, tenant: first}
  - {jobs: 30, priority: 9, tenant: last}
workers: [{slots: 50, duration: 1s}]
`
	for ageing, served := range map[string]bool{"0.05": true, "0": false} {
		for _, row := range run(t, fmt.Sprintf(text, ageing)).Tenants {
			if row.Tenant == "last" && (row.Completed == 30) != served {
				t.Errorf("ageing %s: %+v", ageing, row)
			}
		}
	}
}

func TestExpectationsAreChecked(t *testing.T) {
	t.Parallel()
	text := `
queues: {q: {}}
tiers: [{name: PRO}]
tenants: [{name: a, count: 2, tier: PRO}, {name: b}]
arrivals: [{tenant: a, jobs: 20}, {tenant: b, jobs: 5}, {tenant: c, jobs: 5}]
workers: [{slots: 5, duration: 1s}]
expect:
  - {drain: "%s 6s"}
`
	for bound, holds := range map[string]bool{"<": false, "<=": false, ">": true, ">=": true, "=": false} {
		report := run(t, fmt.Sprintf(text, bound))
		if report.Holds != holds || len(report.Checks) != 1 || report.Checks[0].Holds != holds {
			t.Errorf("6.0-odd seconds %s 6s: %+v", bound, report.Checks)
		}
	}
	for subject, want := range map[string]struct {
		got   string
		holds bool
	}{
		"tenant: a, completed: '>= 10'":    {"10", true},
		"tenant: a, completed: '= 10'":     {"10", true},
		"tenant: a-1, completed: '> 10'":   {"10", false},
		"tenant: c, completed: '= 5'":      {"5", true},
		"tier: PRO, completed: '= 20'":     {"20", true},
		"queue: q, tenant: b, dead: '= 0'": {"0", true},
		"slots_used: '>= 99%'":             {"99.9%", true},
		"queue: q, rate_used: '<= 100%'":   {"none", false},
		"queue: q, fairness: '> 0.99'":     {"1.000", true},
	} {
		report := run(t, strings.Replace(text, `drain: "%s 6s"`, subject, 1))
		if c := report.Checks[0]; want.got != "" && c.Got != want.got || c.Holds != want.holds {
			t.Errorf("%s: %+v", subject, c)
		}
	}
}

// TestAFullQueueRefusesJobs simulates producers that meet a full queue.
func TestAFullQueueRefusesJobs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		// At once, before any starts.
		`{queues: {q: {max_waiting: 10}}, arrivals: [{jobs: 12_030}], workers: [{slots: 5, duration: 1s}]}`: "q: 12030 jobs, 10 completed, 12020 refused",
		// The first have ended when the others come.
		`{queues: {q: {max_waiting: 3}}, arrivals: [{jobs: 3}, {jobs: 20, at: 1500ms}], workers: [{slots: 5, duration: 1s}]}`: "q: 23 jobs, 6 completed, 17 refused",
		// Jobs that fall due later wait, too.
		`{queues: {q: {max_waiting: 3}}, arrivals: [{jobs: 2, due: 1h}, {jobs: 2, at: 1s}], workers: [{}]}`: "q: 4 jobs, 3 completed, 1 refused",
		// Each tenant has its own limit, and jobs without a tenant have none.
		`{queues: {q: {tenant_max_waiting: 3}}, arrivals: [{tenant: a, jobs: 10}, {tenant: b, jobs: 2}, {jobs: 4}], workers: [{}]}`: "q: 16 jobs, 9 completed, 7 refused; a: 10 jobs, 3 completed, 7 refused; b: 2 jobs, 2 completed, 0 refused",
	} {
		report := run(t, text)
		var rows []string
		for _, r := range append(report.Queues, report.Tenants...) {
			rows = append(rows, fmt.Sprintf("%s: %d jobs, %d completed, %d refused", cmp.Or(r.Tenant, r.Queue), r.Jobs, r.Completed, r.Refused))
			if r.Drain == nil || r.Unfinished != 0 {
				t.Errorf("%s: want all jobs ended: %+v", text, r)
			}
		}
		if got := strings.Join(rows, "; "); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	_, err := sim.Parse([]byte(`{queues: {q: {max_waiting: 10, shed: true}}, arrivals: [{jobs: 1}], workers: [{}]}`))
	if err == nil || !strings.Contains(err.Error(), "leave shed out") {
		t.Errorf("shed: %v", err)
	}
}

func TestEndedContextEndsTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sim.Run(ctx, parse(t, small)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
