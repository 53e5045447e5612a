package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-queue/sluice/apps/payments/books"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

//go:embed sql/payments.sql
var paymentsSQL string

//go:embed sql/jobs.sql
var jobsSQL string

//go:embed sql/pace.sql
var paceSQL string

// Proof is what SQL finds when all is over.
type Proof struct {
	// Payments are stored. Once were executed by one run, Never by none, Twice by more.
	Payments, Once, Never, Twice int
	// Early were executed before they were due, Unfinished are not PROCESSING, and of Misposted the ledger, the settlement
	// or the notices are not what they should be.
	Early, Unfinished, Misposted int
	// Astray do not say what became of their jobs.
	Astray int
	// TookSeconds is from when they were due to when the last was executed.
	TookSeconds float64
	// Jobs are those of the payments, Completed of them to their end, and Misnamed ran under another name than
	// exec-payment-{id}.
	Jobs, Completed, Misnamed int
	// Attempts are the failed ones. Releases and Recoveries were not counted against anybody.
	Attempts, Releases, Recoveries int
	// Claims were made in so many seconds, at most Fullest more than the rate gave in any stretch of time; Burst is what
	// is allowed.
	Claims       int
	ClaimSeconds float64
	Fullest      float64
	Burst        float64
	Rate         float64
}

// prove reads the database.
func prove(ctx context.Context, b *books.Books, d domain.Domain) (Proof, error) {
	db := b.DB()
	astray, astrayErr := b.Astray(ctx, d.Astray)
	p := Proof{Astray: len(astray)}
	var micros int64
	err := errors.Join(
		astrayErr,
		db.QueryRowContext(ctx, paymentsSQL).Scan(&p.Payments, &p.Once, &p.Never, &p.Twice, &p.Early, &p.Unfinished, &p.Misposted, &micros),
		db.QueryRowContext(ctx, jobsSQL, d.Queue).Scan(&p.Jobs, &p.Completed, &p.Misnamed, &p.Attempts, &p.Releases, &p.Recoveries),
		db.QueryRowContext(ctx, paceSQL, d.Queue).Scan(&p.Claims, &p.ClaimSeconds, &p.Fullest, &p.Burst, &p.Rate),
	)
	p.TookSeconds = float64(micros) / 1e6
	if err != nil {
		return p, fmt.Errorf("prove: %w", err)
	}
	return p, nil
}

// check is a line of the proof.
type check struct {
	what string
	is   int
	want int
	note string
}

// rounding is by how much sums of microseconds may be off.
const rounding = 0.01

func (p Proof) checks(payments int) []check {
	tooFast := 0
	if p.Fullest > p.Burst+rounding {
		tooFast = int(p.Fullest-p.Burst) + 1
	}
	return []check{
		{"payments stored", p.Payments, payments, ""},
		{"executed by exactly one run", p.Once, payments, fmt.Sprintf("the last %.1f s after all were due", p.TookSeconds)},
		{"never executed", p.Never, 0, ""},
		{"executed by more than one run", p.Twice, 0, ""},
		{"executed before they were due", p.Early, 0, ""},
		{"not PROCESSING at the end", p.Unfinished, 0, ""},
		{"booked, settled or told wrongly", p.Misposted, 0, ""},
		{"that differ from their jobs", p.Astray, 0, ""},
		{"jobs completed", p.Completed, p.Payments, fmt.Sprintf("of %d", p.Jobs)},
		{"runs not named exec-payment-{id}", p.Misnamed, 0, ""},
		{"claims beyond the plan", tooFast, 0, fmt.Sprintf("%d claims in %.1f s; the plan is %.0f/s and %.0f at once", p.Claims, p.ClaimSeconds, p.Rate, p.Burst)},
		{"attempts burnt", p.Attempts, 0, fmt.Sprintf("%d releases and %d recoveries, which do not count", p.Releases, p.Recoveries)},
	}
}

// Holds reports whether all is as it must be for so many payments.
func (p Proof) Holds(payments int) bool {
	for _, c := range p.checks(payments) {
		if c.is != c.want {
			return false
		}
	}
	return p.Jobs == p.Payments
}

func (p Proof) print(out io.Writer, file string) {
	fmt.Fprintf(out, "\nThe proof, by SQL on %s:\n\n", file)
	for _, c := range p.checks(p.Payments) {
		mark := "ok"
		if c.is != c.want {
			mark = "WRONG"
		}
		line := fmt.Sprintf("  %-5s  %6d  %-34s  %s", mark, c.is, c.what, c.note)
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}
