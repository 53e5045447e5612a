package sim_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/sim"
)

// parse reads a scenario that must be valid.
func parse(t *testing.T, text string) sim.Scenario {
	t.Helper()
	scenario, err := sim.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scenario
}

func TestScenarioIsReadWhole(t *testing.T) {
	t.Parallel()
	s := parse(t, `
name: whole
about: all there is
start: 2026-12-01T15:30:00+01:00
until: 8h
seed: 7
queues:
  payments: {rate: 500/5s, burst: 7, backoff_jitter: 0s}
  mail:
tiers: [{name: PRO, concurrency: 10, rate: 5/s, burst: 2, weight: 3}]
tenants:
  - {name: shop, count: 12, tier: PRO}
  - {name: acme, weight: 9}
arrivals:
  - {queue: payments, tenant: shop, jobs: 1_000, at: 10m, due: 2026-12-01T15:00:00Z, priority: 2, duration: 3s, failures: 0.5}
  - {queue: mail, rate: 2/m, pattern: steady, from: 1h}
workers:
  - {processes: 3, slots: 4, queues: [mail, payments], poll: 2s, duration: {mean: 1s, shape: exponential}, failures: 0.1}
  - {duration: {mean: 1s, shape: lognormal, sigma: 0.8}}
expect:
  - {queue: payments, drain: "<= 90m", fairness: ">= 0.9", dead: "= 0"}
  - {tenant: shop, max_wait: "< 1d"}
  - {tenant: shop-07, max_wait: "< 1d"}
`)
	names := s.Tenants[0].Names()
	for what, right := range map[string]bool{
		"start":    s.Start.Equal(time.Date(2026, 12, 1, 14, 30, 0, 0, time.UTC)),
		"until":    s.Until == 8*time.Hour,
		"seed":     s.Seed == 7,
		"queue":    s.Queues[0].Name == "payments" && s.Queues[0].Settings.Rate == sluice.Rate{Jobs: 500, Per: 5 * time.Second} && s.Queues[0].Settings.Burst == 7,
		"defaults": s.Queues[1].Settings == sluice.DefaultSettings(),
		"tier":     *s.Tiers[0].Limits.Concurrency == 10 && *s.Tiers[0].Limits.Rate == sluice.RatePerSecond(5) && *s.Tiers[0].Limits.Burst == 2 && *s.Tiers[0].Limits.Weight == 3,
		"group":    len(names) == 12 && names[0] == "shop-01" && names[11] == "shop-12",
		"tenant":   s.Tenants[1].Names()[0] == "acme" && *s.Tenants[1].Limits.Weight == 9,
		"bulk":     s.Arrivals[0].Jobs == 1000 && s.Arrivals[0].At == 10*time.Minute && s.Arrivals[0].Due == 30*time.Minute && s.Arrivals[0].Priority == 2,
		"work":     *s.Arrivals[0].Work == sim.Work{Mean: 3 * time.Second, Shape: "fixed", Sigma: 0.5, Failures: 0.5},
		"stream":   s.Arrivals[1].From == time.Hour && s.Arrivals[1].To == 8*time.Hour && s.Arrivals[1].Pattern == "steady" && s.Arrivals[1].Work == nil,
		"workers":  s.Workers[0].Processes == 3 && s.Workers[0].Slots == 4 && s.Workers[0].Queues[0] == "mail" && s.Workers[0].Poll == 2*time.Second,
		"others":   s.Workers[1].Processes == 1 && s.Workers[1].Slots == 10 && len(s.Workers[1].Queues) == 2 && s.Workers[1].Work.Sigma == 0.8,
		"expect":   len(s.Expect) == 3 && len(s.Expect[0].Bounds) == 3 && s.Expect[0].Bounds[0].Value == 5400,
	} {
		if !right {
			t.Errorf("%s was not read: %+v", what, s)
		}
	}
}

// small is a valid scenario of seven lines.
const small = `name: small
queues: {q: {}}
arrivals:
  - {jobs: 5}
workers:
  - {slots: 2}
expect: []
`

func TestFaultsOfAScenarioNameTheirLine(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ old, new, says string }{
		"an unknown field":         {"name:", "title:", `line 1: "title" is not a field of a scenario; there are: name, about, start`},
		"an unknown setting":       {"{q: {}}", "{q: {speed: 9}}", `line 2: setting "speed": not found; the nearest are shed, paused, rate`},
		"a wrong setting":          {"{q: {}}", "{q: {rate: fast}}", `line 2: invalid rate: "fast" is not a rate`},
		"settings in conflict":     {"{q: {}}", "{q: {backoff_base: 5m}}", `line 2: queue "q": invalid backoff_max`},
		"a wrong name":             {"{q: {}}", "{q/: {}}", `line 2: invalid queue`},
		"settings in a list":       {"{q: {}}", "{q: [rate]}", `line 2: settings is written as names and values`},
		"a setting in parts":       {"{q: {}}", "{q: {rate: [1]}}", `line 2: the setting rate has one value`},
		"a field twice":            {"name: small", "name: small\nname: more", `line 2: "name" is there twice`},
		"no list":                  {"  - {jobs: 5}", "  jobs: 5", `line 4: arrivals are written as a list`},
		"neither jobs nor rate":    {"{jobs: 5}", "{priority: 5}", `line 4: an arrival has either jobs`},
		"jobs and a rate":          {"{jobs: 5}", "{jobs: 5, rate: 1/s}", `line 4: an arrival has either jobs`},
		"a stream without end":     {"{jobs: 5}", "{rate: 1/s}", `line 4: a stream needs an end`},
		"a stream with a due":      {"{jobs: 5}", "{rate: 1/s, due: 1h}", `line 4: at and due are of jobs that come at once`},
		"a moment without zone":    {"{jobs: 5}", "{jobs: 5, at: 16:00}", `line 4: "16:00" is not an instant with its zone`},
		"a moment before":          {"{jobs: 5}", "{jobs: 5, due: 2020-01-01T00:00:00Z}", `line 4: 2020-01-01T00:00:00Z is not within ten years`},
		"no whole number":          {"{jobs: 5}", "{jobs: many}", `line 4: "many" is not a whole number from 1 to 20000000`},
		"too many":                 {"{jobs: 5}", "{jobs: 99999999}", `line 4: "99999999" is not a whole number`},
		"a slow stream of much":    {"{jobs: 5}", "{rate: 1000000/s, to: 300d}", `are the most`},
		"failures alone":           {"{jobs: 5}", "{jobs: 5, failures: 0.5}", `line 4: failures of an arrival need its duration`},
		"no share":                 {"{slots: 2}", "{failures: 2}", `line 6: "2" is not a number from 0 to 1`},
		"no pattern":               {"{jobs: 5}", "{rate: 1/s, to: 1h, pattern: waves}", `line 4: "waves" must be one of [poisson steady]`},
		"an unknown queue":         {"{jobs: 5}", "{jobs: 5, queue: r}", `line 4: the queue "r" is not among the queues`},
		"workers of another queue": {"{slots: 2}", "{queues: [r]}", `no workers serve the queue "q"`},
		"a list for a value":       {"{slots: 2}", "{slots: [2]}", `line 6: a whole number from 1 to 100000 is expected here`},
		"an unknown tier":          {"expect: []", "tenants: [{name: a, tier: PRO}]", `the tier "PRO" is not among the tiers`},
		"a tenant twice":           {"expect: []", "tenants: [{name: a-1}, {name: a, count: 3}]", `the tenant "a-1" is there twice`},
		"a nameless tenant":        {"expect: []", "tenants: [{count: 3}]", `line 7: tenants need a name`},
		"a nameless tier":          {"expect: []", "tiers: [{weight: 3}]", `line 7: a tier needs a name`},
		"no measure":               {"expect: []", "expect: [{queue: q}]", `line 7: an expectation needs a measure`},
		"no such measure":          {"expect: []", "expect: [{speed: '> 1'}]", `line 7: "speed" is not a field of an expectation`},
		"no operator":              {"expect: []", "expect: [{drain: 5m}]", `line 7: "5m" is no bound of drain`},
		"no bound":                 {"expect: []", "expect: [{drain: <= soon}]", `line 7: "<= soon" is no bound of drain`},
		"a tenant without jobs":    {"expect: []", "expect: [{tenant: x, dead: = 0}]", `line 7: no jobs of the tenant "x" come in`},
		"fairness of a tenant":     {"expect: []", "expect: [{tenant: '', tier: '', queue: r, dead: = 0}]", `line 7: the queue "r" is not among the queues`},
		"a queue's measure":        {"{jobs: 5}", "{jobs: 5, tenant: x}\nexpect: [{tenant: x, fairness: '> 0.5'}]\n#", `fairness is of a queue`},
		"two documents":            {"expect: []", "---\nname: more", `more than one document`},
		"no YAML":                  {"name: small", "name: {", `line`},
		"an alias":                 {"{slots: 2}", "&a {slots: 2}\n  - *a", `workers is written as names and values`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(small, fault.old, fault.new, 1)
			if strings.HasPrefix(fault.new, "{jobs: 5, tenant") {
				text = strings.Replace(text, "expect: []\n", "", 1)
			}
			_, err := sim.Parse([]byte(text))
			var says *sim.Fault
			if !errors.As(err, &says) || !strings.Contains(err.Error(), fault.says) {
				t.Errorf("the error is %q, want %q, of\n%s", err, fault.says, text)
			}
		})
	}
	if _, err := sim.Parse(nil); err == nil || err.Error() != "the scenario is empty" {
		t.Errorf("nothing at all: %v", err)
	}
}

// FuzzParse: any file is either a scenario or a Fault.
func FuzzParse(f *testing.F) {
	f.Add(small)
	for _, name := range sim.Shipped() {
		text, _ := sim.Text(name)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var fault *sim.Fault
		if _, err := sim.Parse([]byte(text)); err != nil && !errors.As(err, &fault) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// TestScenariosOfTheDocsAreRight parses every scenario that the guide shows.
func TestScenariosOfTheDocsAreRight(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guide/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(guide, -1)
	for _, block := range blocks {
		if report := run(t, string(block[1])); !report.Holds {
			t.Errorf("%+v", report.Checks)
		}
	}
	if len(blocks) == 0 {
		t.Error("the guide shows no scenario")
	}
}
