package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/proof.sql
var proofSQL string

//go:embed sql/mentions.sql
var mentionsSQL string

//go:embed sql/victim.sql
var victimSQL string

// What the source design asks for: 50 jobs in five minutes, and a wait of less than five minutes for 95 of 100.
const (
	sloJobs    = 50
	sloSeconds = 300
)

// Proof is what SQL finds when all is over.
type Proof struct {
	// Mentions were taken in with Jobs, of which Completed and Dead ended so.
	Mentions, Jobs, Completed, Dead int
	// Once were decided once, Never although their job is completed, Twice more than once, Undone although their job is
	// not completed.
	Once, Never, Twice, Undone int
	// WithoutReason are on hold or failed and nobody knows why. Of Disagree the job says something else than the mention,
	// and Miscounted have other failed attempts than they met outages.
	WithoutReason, Disagree, Miscounted int
	// Confirmed were on hold until a second source agreed. Faults is how many outages there were.
	Confirmed, Faults int
	// Python, Node and Go decided so many.
	Python, Node, Go int
	// MedianWait and P95Wait are seconds from the enqueue to the claim, SlowestFifty how long any 50 jobs took that
	// ended one after another, Took all of it.
	MedianWait, P95Wait, SlowestFifty, Took float64

	// Wrong were decided otherwise than was meant, Garbage have no name, Twins are in doubt alone.
	Wrong, Garbage, Twins int `db:"-"`
	// Killed processes held so many jobs, of which Recovered were finished by others.
	Killed, Held, Recovered int `db:"-"`
}

// prove reads the database.
func (d *demo) prove(ctx context.Context) (p Proof, err error) {
	pool := d.kitchen.Pool()
	rows, err := pool.Query(ctx, proofSQL)
	if err != nil {
		return p, err
	}
	if p, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByNameLax[Proof]); err != nil {
		return p, err
	}
	for _, v := range d.victims {
		rows, err := pool.Query(ctx, victimSQL, v.held, strconv.Itoa(v.pid))
		if err != nil {
			return p, err
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return p, err
		}
		for _, job := range left {
			d.tell("the matcher in %s that was killed held job %s", v.language, job)
		}
		p.Killed, p.Held, p.Recovered = p.Killed+1, p.Held+len(v.held), p.Recovered+len(v.held)-len(left)
	}
	return p, d.compare(ctx, pool, &p)
}

// found is what became of a mention.
type found struct{ State, Ingredient string }

// compare looks at what was found beside what was meant.
func (d *demo) compare(ctx context.Context, pool *pgxpool.Pool, p *Proof) error {
	rows, err := pool.Query(ctx, mentionsSQL)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[found])
	if err != nil {
		return err
	}
	if len(all) != len(d.made) {
		return errors.New("there are not as many mentions as were made")
	}
	for i, m := range d.made {
		switch m.kind {
		case garbage:
			p.Garbage++
		case twin:
			p.Twins++
		}
		if !m.fits(all[i]) {
			p.Wrong++
			d.tell("%s %q is %s %s, expected %s", m.kind, m.Raw, all[i].State, all[i].Ingredient, m.expected)
		}
	}
	return nil
}

// fits reports whether a mention became what was meant.
func (m made) fits(f found) bool {
	right := f.State == "matched" && f.Ingredient == m.expected
	switch m.kind {
	case typo:
		return right || f.State == "on hold"
	case single:
		return f.State == "on hold"
	case decoy:
		return f.State == "not food"
	case garbage:
		return f.State == "failed"
	}
	return right
}

// check is a line of the proof.
type check struct {
	what string
	is   int
	want int
	note string
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p Proof) checks(mentions int) []check {
	return []check{
		{"mentions taken in, each with a job", p.Mentions, mentions, fmt.Sprintf("%d jobs", p.Jobs)},
		{"jobs more or fewer than mentions", p.Jobs - p.Mentions, 0, ""},
		{"jobs neither completed nor dead", p.Jobs - p.Completed - p.Dead, 0, ""},
		{"decided exactly once", p.Once, p.Completed, fmt.Sprintf("Python %d, Node %d, Go %d", p.Python, p.Node, p.Go)},
		{"completed and never decided", p.Never, 0, ""},
		{"decided more than once", p.Twice, 0, ""},
		{"decided, and not completed", p.Undone, 0, ""},
		{"languages that decided something", yes(p.Python > 0) + yes(p.Node > 0) + yes(p.Go > 0), 3, ""},
		{"processes killed in the middle of a job", p.Killed, 3, fmt.Sprintf("%d jobs", p.Held)},
		{"of those jobs, not finished by others", p.Held - p.Recovered, 0, "recovered when their leases had run out"},
		{"dead, as those without any name", p.Dead, p.Garbage, "at their first attempt"},
		{"failed attempts other than the outages", p.Miscounted, 0, fmt.Sprintf("%d outages, each tried again", p.Faults)},
		{"on hold or failed without a reason", p.WithoutReason, 0, ""},
		{"mentions and jobs that disagree", p.Disagree, 0, ""},
		{"decided wrongly", p.Wrong, 0, ""},
		{"confirmed by a second source", p.Confirmed, p.Twins / 2, "the other half found them confirmed"},
	}
}

// Holds reports whether all is as it must be for so many mentions.
func (p Proof) Holds(mentions int) bool {
	for _, c := range p.checks(mentions) {
		if c.is != c.want {
			return false
		}
	}
	return p.Held > 0 && p.P95Wait < sloSeconds && p.SlowestFifty < sloSeconds
}

func (p Proof) print(out io.Writer) {
	fmt.Fprint(out, "\nThe proof, by SQL:\n\n")
	for _, c := range p.checks(p.Mentions) {
		mark := "ok"
		if c.is != c.want {
			mark = "WRONG"
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-5s  %5d  %-42s  %s", mark, c.is, c.what, c.note), " "))
	}
	mark := "ok"
	if p.P95Wait >= sloSeconds || p.SlowestFifty >= sloSeconds {
		mark = "WRONG"
	}
	fmt.Fprintf(out, "  %-5s  the objective: %d jobs in %d s: the slowest took %.1f s (%.0f times better), and all %d took %.1f s\n", mark, sloJobs, sloSeconds, p.SlowestFifty, sloSeconds/max(p.SlowestFifty, 0.001), p.Jobs, p.Took)
	fmt.Fprintf(out, "  %-5s  the objective: a p95 of the wait below %d s: %.2f s (%.0f times better), with a median of %.2f s\n", mark, sloSeconds, p.P95Wait, sloSeconds/max(p.P95Wait, 0.001), p.MedianWait)
}
