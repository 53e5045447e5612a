package sim

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/near"
)

// Parse reads a scenario. Unknown names and wrong values return a *Fault with the line.
func Parse(text []byte) (Scenario, error) {
	root, err := document(text)
	if err != nil {
		return Scenario{}, err
	}
	p := parsing{Scenario: Scenario{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Seed: 1}}
	if err := p.read(root); err != nil {
		return Scenario{}, err
	}
	if err := p.settle(); err != nil {
		return Scenario{}, err
	}
	return p.Scenario, p.check()
}

// parsing is a scenario under construction, with the moments that need its start.
type parsing struct {
	Scenario
	until   *moment
	arrival []arrivalMoments
}

type arrivalMoments struct{ at, due, from, to *moment }

func (p *parsing) read(root *yaml.Node) error {
	var seed int64
	err := readFields(root, "a scenario",
		field{"name", text(&p.Name)},
		field{"about", text(&p.About)},
		field{"start", instant(&p.Start)},
		field{"until", readMoment(&p.until)},
		field{"seed", whole(&seed, 1, 1<<53)},
		field{"queues", p.readQueues},
		field{"tiers", readList("tiers", p.readTier)},
		field{"tenants", readList("tenants", p.readTenants)},
		field{"arrivals", readList("arrivals", p.readArrival)},
		field{"workers", readList("workers", p.readWorkers)},
		field{"expect", readList("expectations", p.readExpectation)},
	)
	if seed > 0 {
		p.Seed = uint64(seed)
	}
	return err
}

func readMoment(into **moment) reader {
	return pointer(into, func(m *moment) reader { return m.read })
}

func (p *parsing) readQueues(n *yaml.Node) error {
	return readNames(n, "queues", func(name, value *yaml.Node) error {
		if err := sluice.CheckQueueName(name.Value); err != nil {
			return faultAt(name, "%v", err)
		}
		q := Queue{Name: name.Value, Settings: sluice.DefaultSettings(), Given: make(map[string]string)}
		if value.Kind != yaml.ScalarNode || value.Tag != "!!null" { // a queue with the defaults has no value
			if err := readNames(value, "settings", q.readSetting); err != nil {
				return err
			}
		}
		if err := q.Settings.Check(); err != nil {
			return faultAt(name, "queue %q: %v", q.Name, err)
		}
		if q.Settings.Shed {
			return faultAt(name, "queue %q: a simulation sheds no jobs; leave shed out, and the report counts the jobs that the full queue refuses", q.Name)
		}
		p.Queues = append(p.Queues, q)
		return nil
	})
}

func (q *Queue) readSetting(name, value *yaml.Node) error {
	if value.Kind != yaml.ScalarNode {
		return faultAt(value, "the setting %s has one value", name.Value)
	}
	q.Given[name.Value] = value.Value
	setting, err := near.Setting(name.Value)
	if err != nil {
		return faultAt(name, "%v", err)
	}
	if err := setting.Parse(&q.Settings, value.Value); err != nil {
		return faultAt(value, "%v", err)
	}
	return nil
}

func (l *Limits) fields() []field {
	return []field{
		{"concurrency", pointer(&l.Concurrency, func(n *int) reader { return whole(n, 0, 1_000_000) })},
		{"rate", pointer(&l.Rate, rate)},
		{"burst", pointer(&l.Burst, func(n *int) reader { return whole(n, 1, 1_000_000) })},
		{"weight", pointer(&l.Weight, func(n *int) reader { return whole(n, 1, 1000) })},
	}
}

func (p *parsing) readTier(n *yaml.Node) error {
	var t Tier
	err := readFields(n, "a tier", append([]field{{"name", text(&t.Name)}}, t.Limits.fields()...)...)
	if err == nil && t.Name == "" {
		err = faultAt(n, "a tier needs a name")
	}
	p.Tiers = append(p.Tiers, t)
	return err
}

func (p *parsing) readTenants(n *yaml.Node) error {
	var t Tenants
	err := readFields(n, "tenants", append([]field{
		{"name", text(&t.Name)}, {"count", whole(&t.Count, 1, maxTenants)}, {"tier", text(&t.Tier)},
	}, t.Limits.fields()...)...)
	if err == nil && t.Name == "" {
		err = faultAt(n, "tenants need a name")
	}
	p.Tenants = append(p.Tenants, t)
	return err
}

func (p *parsing) readArrival(n *yaml.Node) error {
	a := Arrival{Pattern: poisson, Priority: sluice.DefaultPriority, line: n.Line}
	var m arrivalMoments
	var work Work
	err := readFields(n, "an arrival", append([]field{
		{"queue", text(&a.Queue)},
		{"tenant", text(&a.Tenant)},
		{"priority", whole(&a.Priority, 1, 10)},
		{"jobs", whole(&a.Jobs, 1, maxJobs)},
		{"at", readMoment(&m.at)},
		{"due", readMoment(&m.due)},
		{"rate", rate(&a.Rate)},
		{"pattern", oneOf(&a.Pattern, poisson, steady)},
		{"from", readMoment(&m.from)},
		{"to", readMoment(&m.to)},
	}, work.fields()...)...)
	if err == nil && work != (Work{}) {
		if work.Shape == "" && work.Mean == 0 {
			return faultAt(n, "failures of an arrival need its duration beside them")
		}
		work.complete()
		a.Work = &work
	}
	p.Arrivals, p.arrival = append(p.Arrivals, a), append(p.arrival, m)
	return err
}

func (p *parsing) readWorkers(n *yaml.Node) error {
	w := Workers{Processes: 1, Slots: 10, Poll: time.Second, line: n.Line}
	err := readFields(n, "workers", append([]field{
		{"processes", whole(&w.Processes, 1, maxProcesses)},
		{"slots", whole(&w.Slots, 1, maxBuckets)},
		{"queues", readList("queues", func(n *yaml.Node) error {
			var name string
			err := text(&name)(n)
			w.Queues = append(w.Queues, name)
			return err
		})},
		{"poll", duration(&w.Poll)},
	}, w.Work.fields()...)...)
	if err == nil && w.Poll < 10*time.Millisecond {
		err = faultAt(n, "poll is shorter than 10ms")
	}
	w.Work.complete()
	p.Workers = append(p.Workers, w)
	return err
}

func (w *Work) fields() []field {
	return []field{{"duration", w.readDuration}, {"failures", number(&w.Failures, 0, 1)}}
}

// readDuration reads a duration such as `200ms`, or a mean and a shape.
func (w *Work) readDuration(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		w.Shape = fixed
		return duration(&w.Mean)(n)
	}
	return readFields(n, "a duration",
		field{"mean", duration(&w.Mean)}, field{"shape", oneOf(&w.Shape, fixed, exponential, lognormal)}, field{"sigma", number(&w.Sigma, 0, 5)})
}

func (w *Work) complete() {
	if w.Shape == "" && w.Mean == 0 {
		w.Mean = 100 * time.Millisecond
	}
	if w.Shape == "" {
		w.Shape = fixed
	}
	if w.Sigma == 0 {
		w.Sigma = 0.5
	}
}
