package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/cmd/httpapi"
)

func simulatorPages() []page {
	return []page{{name: "simulator", path: "/simulator", title: "Simulator", letter: "z", still: true, load: loadSimulator}}
}

// simulatorView is the view of /simulator: two scenarios side by side. Both are in the URL.
type simulatorView struct {
	Included []scenario
	Sides    []simulated
	// May says that the viewer may simulate.
	May bool
}

// Example is a scenario with most of what one can have.
func (simulatorView) Example() string {
	return `name: month-end
until: 2h                          # default: when nothing is left to do
queues:
  invoices: {rate: 20/s, concurrency: 100}   # settings, by their names
tiers:
  - {name: PRO, concurrency: 10, weight: 4}
tenants:
  - {name: acme, tier: PRO}
  - {name: shop, count: 30}        # shop-01 to shop-30
arrivals:
  - {queue: invoices, tenant: shop, jobs: 600, at: 30m}
  - {queue: invoices, tenant: acme, rate: 30/m, pattern: poisson, to: 30m}
workers:
  - {processes: 3, slots: 20, duration: 800ms, failures: 0.02}
expect:
  - {queue: invoices, drain: "<= 1h"}
`
}

// scenario is a scenario that comes with the program.
type scenario struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Refused says why the server does not simulate it. Empty: it does.
	Refused string `json:"refused"`
}

// simulated is a scenario and what came of it.
type simulated struct {
	Name, Label, Text string
	Report            *simReport
	Problem           *httpapi.Problem
}

// simReport is the result of a simulation.
type simReport struct {
	Seconds   float64    `json:"seconds"`
	SlotsUsed float64    `json:"slots_used"`
	Queues    []simRow   `json:"queues"`
	Tenants   []simRow   `json:"tenants"`
	Checks    []simCheck `json:"checks"`
	Holds     bool       `json:"holds"`
}

// simRow is a queue or a tenant of a simulation.
type simRow struct {
	Queue      string   `json:"queue"`
	Tenant     string   `json:"tenant"`
	Jobs       int      `json:"jobs"`
	Completed  int      `json:"completed"`
	Dead       int      `json:"dead"`
	Unfinished int      `json:"unfinished"`
	Refused    int      `json:"refused"`
	Drain      *float64 `json:"drain_seconds"`
	Wait       struct {
		P50 *float64 `json:"p50_seconds"`
		P99 *float64 `json:"p99_seconds"`
		Max float64  `json:"max_seconds"`
	} `json:"wait"`
	InFlight int      `json:"in_flight"`
	RateUsed *float64 `json:"rate_used"`
	Fairness *float64 `json:"fairness"`
}

// simCheck is a check of a simulation.
type simCheck struct {
	What  string `json:"what"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Holds bool   `json:"holds"`
}

// longestTenants is how many tenants are shown.
const longestTenants = 10

func loadSimulator(ctx context.Context, v *visit) (any, error) {
	view := simulatorView{May: v.may("simulate")}
	var read struct {
		Scenarios []scenario `json:"scenarios"`
	}
	v.cli("sluice sim -f FILE")
	if err := v.get(ctx, "/simulations", nil, &read); err != nil {
		return nil, err
	}
	view.Included = read.Scenarios
	first := v.query.Get("a")
	switch name, queue := v.query.Get("scenario"), v.query.Get("queue"); {
	case first != "":
	case queue != "":
		text, err := liveScenario(ctx, v, queue)
		if err != nil {
			return nil, err
		}
		first = text
	case name != "":
		i := slices.IndexFunc(read.Scenarios, func(s scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, missing("scenario", name)
		}
		first = read.Scenarios[i].Text
	}
	view.Sides = []simulated{{Name: "a", Label: "Scenario", Text: first}, {Name: "b", Label: "The same with other settings", Text: v.query.Get("b")}}
	if !v.query.Has("run") {
		return view, nil
	}
	for i := range view.Sides {
		v.simulate(ctx, &view.Sides[i])
	}
	return view, nil
}

// simulate runs a scenario, unless it is empty.
func (v *visit) simulate(ctx context.Context, s *simulated) {
	if strings.TrimSpace(s.Text) == "" {
		return
	}
	body, err := v.caller.send(ctx, http.MethodPost, "/simulations", nil, map[string]string{"scenario": s.Text})
	s.Report = &simReport{}
	if err == nil {
		err = json.Unmarshal(body, s.Report)
	}
	if err != nil {
		s.Report, s.Problem = nil, problemOf(err)
		return
	}
	s.Report.Tenants = s.Report.Tenants[:min(len(s.Report.Tenants), longestTenants)]
}

// simulatedSettings are the settings that a simulation obeys.
var simulatedSettings = []string{
	"rate", "burst", "concurrency", "batch", "interval", "jitter", "claim_ahead", "fair", "ageing", "tenant_concurrency", "tenant_rate", "tenant_burst", "max_waiting", "tenant_max_waiting",
	"max_attempts", "backoff_base", "backoff_factor", "backoff_jitter", "backoff_max", "lease",
}

// liveScenario is a scenario of a queue as it is now: its settings, its workers, and the jobs that wait.
func liveScenario(ctx context.Context, v *visit, name string) (string, error) {
	var queue queueRow
	if err := v.get(ctx, "/queues/"+url.PathEscape(name), nil, &queue); err != nil {
		return "", err
	}
	var working workersView
	if err := v.get(ctx, "/holders", nil, &working); err != nil {
		return "", err
	}
	var stats struct {
		Run *struct {
			P50 float64 `json:"p50"`
		} `json:"run_seconds"`
	}
	if err := v.get(ctx, "/queues/"+url.PathEscape(name)+"/stats", nil, &stats); err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: now\nqueues:\n  %s:\n", name)
	for _, setting := range simulatedSettings {
		if value, is := queue.Settings[setting]; is {
			fmt.Fprintf(&text, "    %s: %s\n", setting, value)
		}
	}
	processes, slots := 0, 0
	for _, h := range working.Holders {
		if h.Role == "worker" && slices.Contains(h.Queues, name) {
			processes, slots = processes+1, slots+h.Slots
		}
	}
	if processes == 0 {
		processes, slots = 1, 10
	}
	fmt.Fprintf(&text, "arrivals:\n  - {queue: %s, jobs: %d}\n", name, max(1, queue.Depth.Ready+queue.Depth.Scheduled))
	duration := "100ms"
	if stats.Run != nil && stats.Run.P50 > 0 {
		duration = fmt.Sprintf("%.0fms", max(1, 1000*stats.Run.P50))
	}
	fmt.Fprintf(&text, "workers:\n  - {processes: %d, slots: %d, duration: %s}\n", processes, max(1, slots/processes), duration)
	return text.String(), nil
}
