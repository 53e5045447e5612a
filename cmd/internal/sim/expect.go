package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Expectation is a scenario's expected result: bounds on measures of a queue, of a tier, or of each
// tenant with a name. Without a name, it concerns every queue.
type Expectation struct {
	Queue  string
	Tier   string
	Tenant string
	Bounds []Bound

	line int
}

// Bound is a measure and the value that it must have.
type Bound struct {
	Measure string
	// Operator is one of <, <=, =, >= and >.
	Operator string
	Value    float64
	// Text is the bound as the scenario writes it.
	Text string
}

// measure is a figure of a report that can have a bound.
type measure struct {
	name string
	read func(text string) (float64, error)
	show func(float64) string
	of   func(Row) float64
	// queueOnly means that only queues have the measure.
	queueOnly bool
}

func measures() []measure {
	wait := func(of func(Wait) *float64) func(Row) float64 {
		return func(r Row) float64 { return known(of(r.Wait)) }
	}
	return []measure{
		{"drain", readSeconds, showSeconds, func(r Row) float64 { return known(r.Drain) }, false},
		{"mean_wait", readSeconds, showSeconds, wait(func(w Wait) *float64 { return w.Mean }), false},
		{"p50_wait", readSeconds, showSeconds, wait(func(w Wait) *float64 { return w.P50 }), false},
		{"p99_wait", readSeconds, showSeconds, wait(func(w Wait) *float64 { return w.P99 }), false},
		{"max_wait", readSeconds, showSeconds, func(r Row) float64 { return r.Wait.Max }, false},
		{"completed", readCount, showCount, func(r Row) float64 { return float64(r.Completed) }, false},
		{"dead", readCount, showCount, func(r Row) float64 { return float64(r.Dead) }, false},
		{"failed", readCount, showCount, func(r Row) float64 { return float64(r.Failed) }, false},
		{"unfinished", readCount, showCount, func(r Row) float64 { return float64(r.Unfinished) }, false},
		{"refused", readCount, showCount, func(r Row) float64 { return float64(r.Refused) }, false},
		{"in_flight", readCount, showCount, func(r Row) float64 { return float64(r.InFlight) }, false},
		{"slots_used", readShare, showShare, func(r Row) float64 { return r.SlotsUsed }, true},
		{"rate_used", readShare, showShare, func(r Row) float64 { return known(r.RateUsed) }, true},
		{"fairness", readShare, showRatio, func(r Row) float64 { return known(r.Fairness) }, true},
		{"least_share", readShare, showShare, func(r Row) float64 { return known(r.LeastShare) }, true},
	}
}

// known returns a figure. A missing figure is larger than every bound.
func known(figure *float64) float64 {
	if figure == nil {
		return math.Inf(1)
	}
	return *figure
}

func readSeconds(text string) (float64, error) {
	d, err := sluice.ParseDuration(text)
	return d.Seconds(), err
}

func readCount(text string) (float64, error) {
	n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
	return float64(n), err
}

func readShare(text string) (float64, error) {
	percent, found := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(percent, 64)
	if found {
		n /= 100
	}
	return n, err
}

func showSeconds(v float64) string {
	if math.IsInf(v, 1) {
		return "never"
	}
	return time.Duration(math.Round(v*1e3) * 1e6).String()
}

func showCount(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func showShare(v float64) string {
	if math.IsInf(v, 1) {
		return "none"
	}
	return feature.Percent(1, v) + "%"
}

func showRatio(v float64) string {
	if math.IsInf(v, 1) {
		return "none"
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func (p *parsing) readExpectation(n *yaml.Node) error {
	e := Expectation{line: n.Line}
	fields := []field{{"queue", text(&e.Queue)}, {"tier", text(&e.Tier)}, {"tenant", text(&e.Tenant)}}
	for _, m := range measures() {
		fields = append(fields, field{m.name, func(n *yaml.Node) error {
			b, err := m.bound(n)
			e.Bounds = append(e.Bounds, b)
			return err
		}})
	}
	err := readFields(n, "an expectation", fields...)
	p.Expect = append(p.Expect, e)
	return err
}

// bound parses a bound such as `<= 90m`.
func (m measure) bound(n *yaml.Node) (Bound, error) {
	b := Bound{Measure: m.name, Text: n.Value}
	for _, operator := range []string{"<=", ">=", "<", ">", "="} {
		value, found := strings.CutPrefix(n.Value, operator)
		if !found || n.Kind != yaml.ScalarNode {
			continue
		}
		var err error
		if b.Value, err = m.read(strings.TrimSpace(value)); err != nil {
			break
		}
		b.Operator = operator
		return b, nil
	}
	return b, faultAt(n, "%.60q is no bound of %s; write one of <, <=, =, >= and > before the value, as in \"<= %s\"", n.Value, m.name, m.example())
}

func (m measure) example() string {
	return map[bool]string{true: "90m", false: "10"}[strings.HasSuffix(m.name, "wait") || m.name == "drain"]
}

// checkSubject returns an error if the subject of an expectation does not exist.
func (s Scenario) checkSubject(e Expectation) error {
	switch {
	case len(e.Bounds) == 0:
		return &Fault{e.line, "an expectation needs a measure, such as drain or max_wait"}
	case e.Tier != "" && e.Tenant != "":
		return &Fault{e.line, "an expectation is of a tier or of a tenant"}
	case e.Queue != "" && s.queue(e.Queue) == nil:
		return &Fault{e.line, fmt.Sprintf("the queue %q is not among the queues", e.Queue)}
	case e.Tier != "" && !s.tier(e.Tier):
		return &Fault{e.line, fmt.Sprintf("the tier %q is not among the tiers", e.Tier)}
	case e.Tenant != "" && !slices.ContainsFunc(s.Arrivals, func(a Arrival) bool { return slices.Contains(append(s.group(a.Tenant), a.Tenant), e.Tenant) }):
		return &Fault{e.line, fmt.Sprintf("no jobs of the tenant %q come in", e.Tenant)}
	}
	for _, b := range e.Bounds {
		if b.of().queueOnly && (e.Tier != "" || e.Tenant != "") {
			return &Fault{e.line, b.Measure + " is of a queue, not of a tier or a tenant"}
		}
	}
	return nil
}

func (b Bound) of() measure {
	all := measures()
	return all[slices.IndexFunc(all, func(m measure) bool { return m.name == b.Measure })]
}

func (b Bound) holds(v float64) bool {
	switch b.Operator {
	case "<":
		return v < b.Value
	case "<=":
		return v <= b.Value
	case ">":
		return v > b.Value
	case ">=":
		return v >= b.Value
	}
	return math.Abs(v-b.Value) < 1e-9
}

// Check is one check of a run, and whether it held.
type Check struct {
	// What was checked, Want is the bound and Got the figure. Holds reports whether the check held.
	What  string `json:"what"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Holds bool   `json:"holds"`
}

// check compares an expectation with a report. Of several subjects, the worst one counts.
func (e Expectation) check(r Report, tenants []string) []Check {
	rows := e.rows(r, tenants)
	var checks []Check
	for _, b := range e.Bounds {
		m := b.of()
		c := Check{What: b.Measure + " of " + e.subject(), Want: b.Text, Got: "no jobs"}
		if len(rows) > 0 {
			worst := m.of(slices.MaxFunc(rows, func(x, y Row) int { return cmp.Compare(b.strain(m.of(x)), b.strain(m.of(y))) }))
			c.Got, c.Holds = m.show(worst), b.holds(worst)
		}
		checks = append(checks, c)
	}
	return checks
}

// strain is the larger, the farther a value is from the bound.
func (b Bound) strain(v float64) float64 {
	switch b.Operator[0] {
	case '<':
		return v
	case '>':
		return -v
	}
	return math.Abs(v - b.Value)
}

// rows returns the rows of a report that an expectation concerns.
func (e Expectation) rows(r Report, tenants []string) []Row {
	all := r.Queues
	switch {
	case e.Tier != "":
		all = r.Tiers
	case e.Tenant != "":
		all = r.Tenants
	}
	var rows []Row
	for _, row := range all {
		if (e.Queue == "" || row.Queue == e.Queue) && (e.Tier == "" || row.Tier == e.Tier) && (e.Tenant == "" || slices.Contains(tenants, row.Tenant)) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (e Expectation) subject() string {
	var parts []string
	for _, part := range []struct{ kind, name string }{{"queue", e.Queue}, {"tier", e.Tier}, {"tenant", e.Tenant}} {
		if part.name != "" {
			parts = append(parts, part.kind+" "+part.name)
		}
	}
	if len(parts) == 0 {
		return "every queue"
	}
	return strings.Join(parts, ", ")
}
