package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/sim"
)

// printSim prints a report: queues, tiers, tenants and checks.
func (a *app) printSim(report sim.Report, top int) error {
	for _, q := range report.Queues {
		if err := a.printSimQueue(q); err != nil {
			return err
		}
	}
	tenants := report.Tenants[:min(max(top, 0), len(report.Tenants))]
	for _, rows := range [][]sim.Row{report.Tiers, tenants} {
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(a.stdout)
		if err := printTable(a, rows, simColumns(report, rows[0])); err != nil {
			return err
		}
	}
	if left := len(report.Tenants) - len(tenants); left > 0 {
		fmt.Fprintf(a.stdout, "… and %s who waited less\n", draw.Plural(left, "tenant"))
	}
	fmt.Fprintln(a.stdout)
	for _, c := range report.Checks {
		fmt.Fprintf(a.stdout, "%s %s: %s (%s)\n", mark(c.Holds), c.What, c.Got, c.Want)
	}
	return nil
}

func mark(holds bool) string {
	if holds {
		return "✔"
	}
	return "✖"
}

// printSimQueue prints a queue's figures one below the other; a row has no room for them.
func (a *app) printSimQueue(q sim.Row) error {
	type row struct{ name, value, note string }
	outcomes := fmt.Sprintf("%s completed, %s dead, %s unfinished", draw.Count(q.Completed), draw.Count(q.Dead), draw.Count(q.Unfinished))
	if q.Refused > 0 {
		outcomes += fmt.Sprintf(", %s refused by the full queue", draw.Count(q.Refused))
	}
	rows := []row{
		{"jobs", draw.Count(q.Jobs), outcomes},
		{"failed attempts", draw.Count(q.Failed), ""},
		{"drain", orNever(q.Drain), "from when the last job fell due until all had ended"},
		{"wait", orNone(q.Wait.P50), fmt.Sprintf("half waited less; mean %s, p99 %s, longest %s", orNone(q.Wait.Mean), orNone(q.Wait.P99), seconds(q.Wait.Max))},
		{"in flight", draw.Count(q.InFlight), "at most"},
		{"slots used", percent(q.SlotsUsed), "from the first due to the last end"},
	}
	if q.RateUsed != nil {
		rows = append(rows, row{"rate used", percent(*q.RateUsed), "of the tokens that came while jobs waited"})
	}
	for _, w := range q.Windows {
		rows = append(rows, row{"starts in " + seconds(w.Seconds), draw.Count(w.Most), fmt.Sprintf("at most; allowed are %s", draw.Count(int(w.Allowed)))})
	}
	if q.Fairness != nil {
		rows = append(rows, row{"fairness", fmt.Sprintf("%.3f", *q.Fairness), fmt.Sprintf("1 is best; the least that a tenant got of its fair share is %s", percent(*q.LeastShare))})
	}
	return printTable(a, rows, []column[row]{
		{"QUEUE " + q.Queue, func(r row) string { return r.name }, false},
		{"", func(r row) string { return r.value }, true},
		{"", func(r row) string { return r.note }, false},
	})
}

// simColumns are the columns of tiers or tenants. The queue appears only if there are several.
func simColumns(report sim.Report, first sim.Row) []column[sim.Row] {
	columns := []column[sim.Row]{
		{"TIER", func(r sim.Row) string { return orDash(r.Tier) }, false},
		{"JOBS", func(r sim.Row) string { return draw.Count(r.Jobs) }, true},
		{"COMPLETED", func(r sim.Row) string { return draw.Count(r.Completed) }, true},
		{"DEAD", func(r sim.Row) string { return draw.Count(r.Dead) }, true},
		{"IN FLIGHT", func(r sim.Row) string { return draw.Count(r.InFlight) }, true},
		{"DRAIN", func(r sim.Row) string { return orNever(r.Drain) }, true},
		{"WAIT P50", func(r sim.Row) string { return orNone(r.Wait.P50) }, true},
		{"P99", func(r sim.Row) string { return orNone(r.Wait.P99) }, true},
		{"LONGEST", func(r sim.Row) string { return seconds(r.Wait.Max) }, true},
	}
	if slices.ContainsFunc(report.Queues, func(q sim.Row) bool { return q.Refused > 0 }) {
		columns = slices.Insert(columns, 4, column[sim.Row]{"REFUSED", func(r sim.Row) string { return draw.Count(r.Refused) }, true})
	}
	if len(report.Tiers) == 0 {
		columns = columns[1:]
	}
	if first.Tenant != "" {
		columns = append([]column[sim.Row]{{"TENANT", func(r sim.Row) string { return r.Tenant }, false}}, columns...)
	}
	if len(report.Queues) > 1 {
		columns = append([]column[sim.Row]{{"QUEUE", func(r sim.Row) string { return r.Queue }, false}}, columns...)
	}
	return columns
}

func percent(part float64) string { return draw.Percent(1, part) + "%" }

// seconds formats a number of seconds.
func seconds(s float64) string { return draw.Duration(time.Duration(s * float64(time.Second))) }

func orNone(s *float64) string {
	if s == nil {
		return "-"
	}
	return seconds(*s)
}

func orNever(s *float64) string {
	if s == nil {
		return "never"
	}
	return seconds(*s)
}
